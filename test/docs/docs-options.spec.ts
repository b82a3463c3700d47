import { describe, expect, it } from '@jest/globals';
import { readFileSync } from 'node:fs';
import { fileURLToPath } from 'node:url';
import ts from 'typescript';
import { optionEntries, optionGroups } from '../../libs/debate-space/src/module/options-schema.js';
import { resolveOptions } from '../../libs/debate-space/src/module/resolve-options.js';
import { generatedFiles } from '../../scripts/docs-options/generated-files.js';
import { pageOf } from 'debate-space-fixtures/docs-snippets.js';

const library = fileURLToPath(new URL('../../libs/debate-space/', import.meta.url));

const [table = ''] = pageOf('docs/options.md').split('\n## ');

/** The cells of the table, by the names of the options. */
const rows = new Map(
  [...table.matchAll(/^\| `([\w.]+)` \|.*$/gm)].map(([line, name = '']) => {
    const [, , , standard = '', meaning = ''] = line.split(/(?<!\\)\|/).map((cell) => cell.trim());
    return [name, { standard, meaning }] as const;
  }),
);

const names = Object.keys(optionEntries).flatMap((name) =>
  Object.hasOwn(optionGroups, name)
    ? Object.keys(optionGroups[name as keyof typeof optionGroups]).map((key) => `${name}.${key}`)
    : [name],
);

/** What the editor of a host shows for an expression of these options: from the `.d.ts` files as the package has them. */
function hovers(paths: readonly string[]): string[] {
  const config = ts.getParsedCommandLineOfConfigFile(
    `${library}tsconfig.types.json`,
    {},
    {
      ...ts.sys,
      onUnRecoverableConfigFileDiagnostic: () => undefined,
    },
  );
  const options = { ...config?.options, emitDeclarationOnly: true };
  const program = ts.createProgram([`${library}src/module/module-options.ts`], options);
  const files = new Map<string, string>();
  program.emit(undefined, (path, text) => files.set(path, text), undefined, true);
  const host = `${library}host.ts`;
  const lines = [
    "import type { DebateSpaceModuleOptions } from './dist/module/module-options.js';",
    'declare const options: DebateSpaceModuleOptions;',
    ...paths.map((path) => `void options.${path.replace('.', '!.')};`),
  ];
  files.set(host, lines.join('\n'));
  const service = ts.createLanguageService({
    getCompilationSettings: () => ({ ...options, noLib: true }),
    getScriptFileNames: () => [host],
    getScriptVersion: () => '1',
    getScriptSnapshot: (path) => {
      const text = files.get(path) ?? ts.sys.readFile(path);
      return text === undefined ? undefined : ts.ScriptSnapshot.fromString(text);
    },
    getCurrentDirectory: () => library,
    getDefaultLibFileName: ts.getDefaultLibFilePath,
    fileExists: (path) => files.has(path) || ts.sys.fileExists(path),
    readFile: (path) => files.get(path) ?? ts.sys.readFile(path),
  });
  let end = lines.slice(0, 2).join('\n').length;
  return lines.slice(2).map((line) => {
    end += 1 + line.length;
    const info = service.getQuickInfoAtPosition(host, end - 2);
    const tags = (info?.tags ?? []).map(({ name, text }) => `@${name} ${ts.displayPartsToString(text)}`);
    return [ts.displayPartsToString(info?.documentation), ...tags].join(' ').replaceAll(/\s+/g, ' ');
  });
}

describe('the options', () => {
  it('are documented as the code has them; otherwise run: npm run docs:options', () => {
    for (const [file, text] of generatedFiles()) expect(readFileSync(new URL(file), 'utf8')).toBe(text);
  });

  it('stand in the table of docs/options.md, each of them and no other', () => {
    expect(names.length).toBeGreaterThan(35);
    expect([...rows.keys()].toSorted()).toEqual(names.toSorted());
  });

  it('have their default in the table', () => {
    const required = { apiKey: 'key', secretKey: 'secret', applicationName: 'name' };
    const resolved: unknown = resolveOptions({ ...required, authUrl: 'https://debate.example' }, {});
    for (const [name, { standard }] of rows) {
      expect([name, standard]).toEqual([name, expect.stringMatching(/\w|`\[\]`/)]);
      const value = name.split('.').reduce((at, key) => (at as Record<string, unknown>)[key], resolved);
      if (typeof value === 'number')
        expect(standard.replaceAll('_', '')).toMatch(new RegExp(`^\`${value}\``));
    }
    const requiredOnes = [...rows].filter(([, { standard }]) => standard === 'required');
    expect(requiredOnes.map(([name]) => name)).toEqual(Object.keys(required));
  });

  it('show their description and their default in the editor of a host', () => {
    const shown = hovers([...rows.keys()]);
    for (const [index, [name, { standard, meaning }]] of [...rows].entries()) {
      const plain = (text: string): string =>
        text.replaceAll(/\[[\w.-]+\]\(([^)]+)\)/g, 'docs/$1').replaceAll(String.raw`\|`, '|');
      const expected = plain(standard === 'required' ? meaning : `${meaning} @defaultValue ${standard}`);
      expect([name, shown[index]]).toEqual([name, expect.stringContaining(expected)]);
      expect(meaning).toMatch(/\.$/); // a word that begins with @ would end it
    }
  });
});
