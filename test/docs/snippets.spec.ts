import { expect, it } from '@jest/globals';
import { fileURLToPath } from 'node:url';
import ts from 'typescript';
import { fencesOf, pages } from '#support/docs-snippets.js';

const root = fileURLToPath(new URL('../..', import.meta.url));
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

/** An ORM, which the workspace does not have, and the recipe for it: check-recipes.ts compiles and runs both. */
const orm = `declare module 'typeorm' {
  export class DataSource {}
}
`;
const ormStorage = `import type { StorageEngine } from 'nestjs-debate-space';
import type { DataSource } from 'typeorm';
export declare const storageOf: (dataSource: DataSource) => StorageEngine;
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

it('the snippets of the README and of docs/ compile', () => {
  expect(snippets('README.md').length).toBeGreaterThan(1);
  const sources = new Map(pages.flatMap(snippets));
  expect(sources.size).toBeGreaterThan(15);
  sources.set(`${root}test/test-globals.ts`, testGlobals);
  sources.set(`${root}test/docs-testing-your-app-md/src/app.module.ts`, appModule);
  sources.set(`${root}test/docs-storage-connections-md/src/debate-space-storage.ts`, ormStorage);
  sources.set(`${root}test/orm.d.ts`, orm);
  expect(problemsOf(sources)).toEqual([]);
});
