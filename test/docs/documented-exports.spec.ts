import { describe, expect, it } from '@jest/globals';
import { readFileSync } from 'node:fs';
import { fileURLToPath } from 'node:url';
import ts from 'typescript';

const root = fileURLToPath(new URL('../..', import.meta.url));
const packages = ['debate-space', 'debate-space-simulator'];

/** The sources of the entry points of a package, of which `internal` is not for hosts. */
function entryPoints(name: string): string[] {
  const text = readFileSync(`${root}libs/${name}/package.json`, 'utf8');
  const { exports } = JSON.parse(text) as { exports: Record<string, { types?: string }> };
  return Object.entries(exports).flatMap(([path, { types }]) => {
    if (types === undefined || path === './internal') return [];
    return types.replace('./dist/', `${root}libs/${name}/src/`).replace(/\.d\.ts$/, '.ts');
  });
}

const configuration = ts.getParsedCommandLineOfConfigFile(
  `${root}tsconfig.json`,
  {},
  {
    ...ts.sys,
    onUnRecoverableConfigFileDiagnostic: () => undefined,
  },
);
const files = packages.map(entryPoints);
const program = ts.createProgram(files.flat(), configuration?.options ?? {});
const checker = program.getTypeChecker();

const hasText = (symbol: ts.Symbol): boolean => symbol.getDocumentationComment(checker).length > 0;

/** What a package exports, each once, wherever it is declared. */
function exportsOf(entries: readonly string[]): ts.Symbol[] {
  const exported = entries.flatMap((file) => {
    const source = program.getSourceFile(file);
    const symbol = source && checker.getSymbolAtLocation(source);
    return symbol ? checker.getExportsOfModule(symbol) : [];
  });
  const declared = exported.map((symbol) =>
    symbol.flags & ts.SymbolFlags.Alias ? checker.getAliasedSymbol(symbol) : symbol,
  );
  return [...new Set(declared)];
}

describe.each(packages.map((name, n) => ({ name, entries: files[n] ?? [] })))('$name', ({ entries }) => {
  const exported = exportsOf(entries);

  it('exports nothing for which an editor has no text', () => {
    expect(exported.length).toBeGreaterThan(5);
    expect(exported.filter((symbol) => !hasText(symbol)).map(({ name }) => name)).toEqual([]);
  });

  it('has a text for each option', () => {
    const withoutText = exported
      .filter(({ name }) => name.endsWith('Options'))
      .flatMap((symbol) =>
        checker
          .getDeclaredTypeOfSymbol(symbol)
          .getProperties()
          .filter((option) => !hasText(option))
          .map((option) => `${symbol.name}.${option.name}`),
      );
    expect(withoutText).toEqual([]);
  });
});
