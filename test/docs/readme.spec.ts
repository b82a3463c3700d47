import { describe, expect, it } from '@jest/globals';
import { readdirSync, readFileSync } from 'node:fs';
import { fileURLToPath } from 'node:url';
import ts from 'typescript';
import { fencesOf, pageOf, pages } from 'debate-space-fixtures/docs-snippets.js';

const root = fileURLToPath(new URL('../..', import.meta.url));
const MAX_README_LINES = 130;
const MAX_PAGE_LINES = 230;

/** Pages that are looked up, and not read from their beginning. */
const references = ['docs/cli.md', 'docs/troubleshooting.md'];

/** Every language of a snippet, and the test that reads it. */
const readers: Record<string, string> = {
  ts: 'readme.spec.ts compiles it',
  typescript: 'scripts/check-recipes.ts compiles and runs it',
  js: 'scripts/check-package/bundles.ts runs it',
  sh: 'docs-commands.spec.ts',
  ini: 'docs-commands.spec.ts',
  text: 'docs-troubleshooting.spec.ts',
  json: 'nest-add.spec.ts',
  yaml: 'docs-commands.spec.ts',
  sql: 'docs-storage.spec.ts',
  mermaid: 'a picture',
};

/**
 * The code that a page fences as `ts`, each under the name of a file: the one in its first line, so that it can import
 * its neighbors, or a number. What it fences as `typescript` needs a package that cannot live in this workspace:
 * scripts/check-recipes.ts compiles and runs that.
 */
function snippets(page: string): (readonly [path: string, code: string])[] {
  const name = page.replaceAll(/\W/g, '-');
  const codes = fencesOf(page).filter(({ language }) => language === 'ts');
  return codes.map(({ code }, index) => {
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

/** The module of an app, which its tests on other pages import. */
const appModule = `export class AppModule {}
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
  it('is short', () => {
    expect(pageOf('README.md').trimEnd().split('\n').length).toBeLessThanOrEqual(MAX_README_LINES);
  });

  it('has snippets that compile, and so have the pages of docs/', () => {
    expect(snippets('README.md').length).toBeGreaterThan(1);
    const sources = new Map(pages.flatMap(snippets));
    expect(sources.size).toBeGreaterThan(30);
    sources.set(`${root}test/test-globals.ts`, testGlobals);
    sources.set(`${root}test/docs-testing-your-app-md/src/app.module.ts`, appModule);
    expect(problemsOf(sources)).toEqual([]);
  });
});

describe('the pages of docs/', () => {
  it('show erasures behind a guard only', () => {
    const recipes = fileURLToPath(new URL('../../docs/examples/recipes/', import.meta.url));
    const codes = [
      ...pages.flatMap((page) => fencesOf(page).map(({ code }) => code)),
      ...readdirSync(recipes).map((name) => readFileSync(recipes + name, 'utf8')),
    ];
    const erasing = codes.filter(
      (code) => code.includes('@Controller(') && code.includes('DebateSpaceErasures'),
    );
    expect(erasing.length).toBeGreaterThan(2);
    for (const code of erasing) expect(code).toMatch(/@UseGuards\(.+\n(?:.*\n)?export class/);
  });

  it.each(pages.filter((page) => !references.includes(page)))('%s is not long', (page) => {
    expect(pageOf(page).trimEnd().split('\n').length).toBeLessThanOrEqual(MAX_PAGE_LINES);
  });

  it('have snippets only in languages that a test reads', () => {
    const languages = new Set(pages.flatMap((page) => fencesOf(page).map(({ language }) => language)));
    for (const language of languages) expect(readers).toHaveProperty([language]);
  });

  it('stand in the index, each of them', () => {
    const index = pageOf('docs/README.md');
    const missing = pages.filter((page) => page.startsWith('docs/') && !index.includes(`(${page.slice(5)}`));
    expect(missing).toEqual(['docs/README.md']);
  });

  it('docs/glossary.md has at most twenty words', () => {
    const words = [...pageOf('docs/glossary.md').matchAll(/^\| \*\*/gm)];
    expect(words.length).toBeGreaterThan(10);
    expect(words.length).toBeLessThanOrEqual(20);
  });
});
