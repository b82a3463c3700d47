import { expect, it } from '@jest/globals';
import { fileURLToPath } from 'node:url';
import ts from 'typescript';
import { fencesOf, pages } from '#support/docs-snippets.js';

const root = fileURLToPath(new URL('../..', import.meta.url));

/** What snippets import that no page shows, and what the workspace does not have. */
const surroundings = {
  // What jest and vitest give a test that imports nothing of them.
  'test/test-globals.ts': `import type * as jest from '@jest/globals';
    declare global {
      const afterAll: typeof jest.afterAll;
      const beforeAll: typeof jest.beforeAll;
      const describe: typeof jest.describe;
      const expect: typeof jest.expect;
      const it: typeof jest.it;
    }`,
  'test/docs-testing-your-app-md/src/app.module.ts': 'export class AppModule {}',
  // scripts/check-recipes.ts compiles the recipes for ORMs with the ORMs.
  'test/orm.d.ts': `declare module 'typeorm' { export class DataSource {} }`,
  'test/docs-storage-connections-md/src/debate-space-storage.ts': `import type { StorageEngine } from 'nestjs-debate-space';
    export declare const storageOf: (dataSource: object) => StorageEngine;`,
};

/**
 * The code that a page fences as `ts`, each under the name of a file: the one in its first line, so that it can import
 * its neighbors, or a number. What it fences as `typescript` needs a package that cannot live in this workspace:
 * scripts/check-recipes.ts compiles and runs that.
 */
function snippets(page: string): (readonly [path: string, code: string])[] {
  const codes = fencesOf(page).filter(({ language }) => language === 'ts');
  return codes.map(({ code }, index) => {
    const [, path = `${index}.ts`] = /^\/\/ (\S+\.ts)\n/.exec(code) ?? [];
    return [`test/${page.replaceAll(/\W/g, '-')}/${path}`, code] as const;
  });
}

/** What the compiler says of files that exist in memory only, as part of this workspace. */
function problemsOf(files: readonly (readonly [path: string, code: string])[]): string[] {
  const sources = new Map(files.map(([path, code]) => [root + path, code]));
  const { config } = ts.readConfigFile(`${root}/tsconfig.json`, (path) => ts.sys.readFile(path)) as {
    config: object;
  };
  const { options } = ts.parseJsonConfigFileContent(config, ts.sys, root);
  const host = ts.createCompilerHost({ ...options, noEmit: true, isolatedModules: false });
  const disk = { readFile: host.readFile.bind(host), fileExists: host.fileExists.bind(host) };
  host.readFile = (path) => sources.get(path) ?? disk.readFile(path);
  host.fileExists = (path) => sources.has(path) || disk.fileExists(path);
  host.directoryExists = undefined; // that of the disk does not know the folders of these files
  const program = ts.createProgram(
    [...sources.keys()],
    { ...options, noEmit: true, isolatedModules: false },
    host,
  );
  const found = [...sources.keys()].flatMap((path) =>
    ts.getPreEmitDiagnostics(program, program.getSourceFile(path)),
  );
  return found.map(
    ({ file, messageText }) => `${file?.fileName}: ${ts.flattenDiagnosticMessageText(messageText, '\n')}`,
  );
}

it('the snippets of the README and of docs/ compile', () => {
  const found = pages.flatMap(snippets);
  expect(found.length).toBeGreaterThan(10);
  expect(problemsOf([...found, ...Object.entries(surroundings)])).toEqual([]);
});
