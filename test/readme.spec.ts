import { describe, expect, it } from '@jest/globals';
import { readdirSync, readFileSync } from 'node:fs';
import { fileURLToPath } from 'node:url';
import * as errors from 'nestjs-debate-space';
import ts from 'typescript';
import { optionsSchema } from '../libs/debate-space/src/options-schema.js';

const root = fileURLToPath(new URL('..', import.meta.url));
const readme = readFileSync(`${root}/README.md`, 'utf8');

const pages = readdirSync(`${root}/docs`).filter((name) => name.endsWith('.md'));

/**
 * The code that a page fences as `ts`, each under the name of a file: the one in its first line, so that it can import
 * its neighbors, or a number. What it fences as `typescript` needs a package that cannot live in this workspace:
 * scripts/check-recipes.mjs compiles and runs that.
 */
function snippets(page: string): (readonly [path: string, code: string])[] {
  const fences = readFileSync(`${root}/${page}`, 'utf8').matchAll(/^```ts\n(.*?)^```/gms);
  const name = page.replaceAll(/\W/g, '-');
  return [...fences].map(([, code = ''], index) => {
    const [, path = `${index}.ts`] = /^\/\/ (\S+\.ts)\n/.exec(code) ?? [];
    return [`${root}test/${name}/${path}`, code] as const;
  });
}

/** What jest and vitest give a test that imports nothing of them. */
const testGlobals = `import type * as jest from '@jest/globals';
declare global {
  const afterAll: typeof jest.afterAll;
  const beforeAll: typeof jest.beforeAll;
  const describe: typeof jest.describe;
  const expect: typeof jest.expect;
  const it: typeof jest.it;
}
`;

/** What the compiler has to say about files that exist in memory only, as part of this workspace. */
function problemsOf(sources: ReadonlyMap<string, string>): string[] {
  const { config } = ts.readConfigFile(`${root}/tsconfig.json`, (path) => ts.sys.readFile(path)) as {
    config: object;
  };
  const { options } = ts.parseJsonConfigFileContent(config, ts.sys, root);
  const host = ts.createCompilerHost(options);
  const disk = { readFile: host.readFile.bind(host), fileExists: host.fileExists.bind(host) };
  host.readFile = (path) => sources.get(path) ?? disk.readFile(path);
  host.fileExists = (path) => sources.has(path) || disk.fileExists(path);
  host.directoryExists = undefined; // that of the disk does not know the folders of these files
  const program = ts.createProgram(
    [...sources.keys()],
    { ...options, noEmit: true, isolatedModules: false },
    host,
  );
  return [...sources.keys()].flatMap((path) =>
    ts
      .getPreEmitDiagnostics(program, program.getSourceFile(path))
      .map(({ messageText }) => `${path}: ${ts.flattenDiagnosticMessageText(messageText, '\n')}`),
  );
}

describe('the README', () => {
  it('has snippets that compile, and so have the pages of docs/', () => {
    const own = snippets('README.md');
    expect(own.length).toBeGreaterThan(5);
    const sources = new Map([...own, ...pages.flatMap((page) => snippets(`docs/${page}`))]);
    sources.set(`${root}test/test-globals.ts`, testGlobals);
    expect(problemsOf(sources)).toEqual([]);
  });

  it('names every option in its table, and no other', () => {
    const groups = Object.entries(optionsSchema.shape).flatMap(([name, schema]) => {
      const inner = 'unwrap' in schema ? schema.unwrap() : schema;
      return 'shape' in inner ? Object.keys(inner.shape).map((key) => `${name}.${key}`) : [name];
    });
    const table = readme.slice(readme.indexOf('## Options'), readme.indexOf('## Test your own app'));
    const named = [...table.matchAll(/^\| `([\w.]+)`/gm)].map(([, name]) => name);
    expect(named.toSorted()).toEqual(groups.toSorted());
  });

  it('names every error with its code', () => {
    const classes = Object.values(errors).filter((each): each is typeof errors.NetworkError =>
      Object.prototype.isPrototypeOf.call(errors.DebateSpaceRequestError, each as object),
    );
    expect(classes.length).toBeGreaterThan(10);
    const details = { operation: 'token', retryable: false, outcome: 'not-sent', attempts: 0 } as const;
    for (const Kind of classes)
      expect(readme).toMatch(new RegExp(`\`${Kind.name}\` +\\| \`${new Kind('', details).code}\``));
    expect(readme).toMatch(new RegExp(`\`StorageError\` +\\| \`${new errors.StorageError('').code}\``));
  });

  it('has shell commands that are scripts of this workspace', () => {
    const { scripts } = JSON.parse(readFileSync(`${root}/package.json`, 'utf8')) as {
      scripts: Record<string, string>;
    };
    const commands = [...readme.matchAll(/npm (?:run ([\w:]+)|(start|test))\b/g)].map(
      ([, run, short]) => run ?? short ?? '',
    );
    expect(commands.length).toBeGreaterThan(5);
    for (const command of commands) expect(scripts).toHaveProperty([command]);
  });
});
