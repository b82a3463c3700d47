import { describe, expect, it } from '@jest/globals';
import { readdirSync, readFileSync } from 'node:fs';
import { fencesOf, pageOf, pages } from '#support/docs-snippets.js';
import { run } from '../../libs/debate-space-cli/src/testing/command-line.js';
import { optionsSchema } from '../../libs/debate-space/src/module/resolve-options.js';

const library = new URL('../../libs/debate-space/src/', import.meta.url);
const sources = ['debate-space', 'debate-space-cli', 'debate-space-simulator']
  .map((name) => new URL(`../../libs/${name}/src/`, import.meta.url))
  .flatMap((folder) =>
    readdirSync(folder, { recursive: true, encoding: 'utf8' })
      .filter((file) => file.endsWith('.ts') && !file.endsWith('.spec.ts'))
      .map((file) => readFileSync(new URL(file, folder), 'utf8')),
  )
  .join('\n');
const text = pages.map(pageOf).join('\n');

/** The names in a union of the plugin: its literals, or those of its members `type`. */
function namesIn(file: string, union: string): string[] {
  const source = readFileSync(new URL(file, library), 'utf8');
  const [, text = ''] = new RegExp(`export type ${union} =(.*?);\n\n`, 's').exec(source) ?? [];
  const types = [...text.matchAll(/readonly type: ([^;}]+)/g)].map(([, type]) => type);
  return (types.length > 0 ? types.join() : text).match(/(?<=')[\w-]+(?=')/g) ?? [];
}

it.each([
  ['error code', 'errors.ts', 'DebateSpaceErrorCode', ['docs/troubleshooting.md']],
  ['setup warning', 'events.ts', 'SetupWarningCode', ['docs/troubleshooting.md']],
  ['event', 'events.ts', 'DebateSpaceEvent', ['docs/operations.md', 'docs/erasure-recipes.md']],
])('each %s is on its page', (_what, file, name, places) => {
  const names = namesIn(file, name);
  expect(names.length).toBeGreaterThan(5);
  const found = places.map(pageOf).join('\n');
  expect(names.filter((each) => !found.includes(`\`${each}\``))).toEqual([]);
});

it('each log line and message of docs/troubleshooting.md is in the sources', () => {
  const joined = sources.replaceAll(/['`] \+\s*['`]/g, '').replaceAll('\\', '');
  const [, ours = ''] = /\n## Sessions\n(.*)\n## Causes\n/s.exec(pageOf('docs/troubleshooting.md')) ?? [];
  const lines = [...ours.matchAll(/`([^`\n]*…[^`\n]*)`|^(.*…; hint: …)$/gm)];
  const parts = lines.flatMap(([, inline, fenced = '']) => (inline ?? fenced).split(/…|[:;()=<]/));
  expect(parts.length).toBeGreaterThan(100);
  const isOurs = (part: string): boolean => part.trim().length < 16 || joined.includes(part.trim());
  expect(parts.filter((part) => !isOurs(part))).toEqual([]);
});

it('each warning and error of the event log is in docs/troubleshooting.md', () => {
  const log = readFileSync(new URL('module/event-log.ts', library), 'utf8');
  const lines = [...log.matchAll(/(?:\[|#once\()\s*'(?:warn|error)',\s*([`'])(.*?)\1/gs)].map(
    ([, , line = '']) => line,
  );
  expect(lines.length).toBeGreaterThan(15);
  const page = pageOf('docs/troubleshooting.md');
  const parts = lines.flatMap((line) => line.split(/\$\{[^}]*\}?|; hint:.*/s).map((part) => part.trim()));
  expect(parts.filter((part) => part.length >= 16 && !page.includes(part))).toEqual([]);
});

it('docs/options.md has the options that the plugin takes, and no others', () => {
  interface Schema {
    readonly entries?: Readonly<Record<string, Schema>>;
    readonly wrapped?: Schema;
  }
  const namesOf = ({ wrapped, entries = wrapped?.entries }: Schema, prefix = ''): string[] =>
    entries
      ? Object.entries(entries).flatMap(([name, schema]) =>
          namesOf(schema, prefix === '' ? name : `${prefix}.${name}`),
        )
      : [prefix];
  const rows = [...pageOf('docs/options.md').matchAll(/^\| `([\w.]+)` \| .+ \| .+ \| .+ \|$/gm)].map(
    ([, name]) => name,
  );
  expect(rows.toSorted()).toEqual(namesOf(optionsSchema as Schema).toSorted());
});

it('each variable of the pages is one that the packages read', () => {
  const variables = new Set(text.match(/\bDEBATE_SPACE_[A-Z_]*[A-Z](?=[^A-Z,])/g));
  expect(variables.size).toBeGreaterThan(10);
  expect([...variables].filter((name) => !sources.includes(name))).toEqual([]);
});

it('each npm script of the pages and of CONTRIBUTING.md exists', () => {
  const { scripts } = JSON.parse(pageOf('package.json')) as { scripts: object };
  const named = new Set(
    [...`${text}${pageOf('CONTRIBUTING.md')}`.matchAll(/npm run ([\w:]+)/g)].map(([, name]) => name),
  );
  expect(named.size).toBeGreaterThan(10);
  expect([...named].filter((name) => !Object.keys(scripts).includes(name ?? ''))).toEqual([]);
});

describe('each command of the pages', () => {
  const lines = pages.flatMap((page) => [
    ...fencesOf(page).flatMap(({ code }) => code.split(/\n|\||;/)),
    ...[...pageOf(page).matchAll(/`(npx debate-space [^`]+)`/g)].map(([, line = '']) => line),
  ]);
  const commands = lines.flatMap((line) => /npx debate-space ([^"|<>()]*)/.exec(line)?.[1]?.trim() ?? []);
  /** Its name, without arguments: `erasures status`, with the flags that pages give it. */
  const flagsOf = new Map<string, Set<string>>();
  for (const command of commands) {
    const [first = '', second = ''] = command.split(/\s+/);
    const name = ['users', 'erasures', 'outbox', 'storage'].includes(first) ? `${first} ${second}` : first;
    const flags = flagsOf.get(name) ?? new Set();
    for (const [flag] of command.matchAll(/--[\w-]+/g)) flags.add(flag);
    flagsOf.set(name, flags);
  }

  it.each([...flagsOf])('exists, with its options: %s', async (name, flags) => {
    const { code, out } = await run(`${name} --help`);
    expect([code, out]).toEqual([0, expect.stringContaining(`Usage: debate-space ${name}`)]);
    expect([...flags].filter((flag) => !out.includes(flag))).toEqual([]);
  });
});

it.each(['docs/architecture.md', 'CONTRIBUTING.md'])(
  'each file and each name of code in %s exists',
  (page) => {
    const folders = ['libs/debate-space/src', 'libs/debate-space-simulator/src', 'test', 'scripts', 'docs'];
    const files = folders.flatMap((folder) =>
      readdirSync(new URL(`../../${folder}`, import.meta.url), { recursive: true, encoding: 'utf8' }).map(
        (file) => `/${folder}/${file}`,
      ),
    );
    const text = pageOf(page);
    const named = [...text.matchAll(/(?<![*\w./-])(?:\.\.\/)?(\w[\w./-]*\.ts)\b/g)].map(
      ([, name = '']) => name,
    );
    expect(named.length).toBeGreaterThan(10);
    expect(named.filter((name) => !files.some((file) => file.endsWith(`/${name}`)))).toEqual([]);
    const words = [...text.matchAll(/`([a-zA-Z]+[A-Z]\w*)(?:\(\))?`/g)].map(([, name = '']) => name);
    expect(words.filter((name) => !sources.includes(name))).toEqual([]);
  },
);

it('each spec of the assembled plugin is in the table of promises, under its own name', () => {
  const page = pageOf('CONTRIBUTING.md');
  const specs = readdirSync(new URL('..', import.meta.url), { recursive: true, encoding: 'utf8' }).flatMap(
    (file) => /^(.*)\.spec\.ts$/.exec(file)?.[1] ?? [],
  );
  expect(specs.length).toBeGreaterThan(30);
  expect(specs.filter((name) => !page.includes(`[${name}](test/${name}.spec.ts)`))).toEqual([]);
});
