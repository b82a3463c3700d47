import { describe, expect, it } from '@jest/globals';
import { readdirSync, readFileSync } from 'node:fs';
import { posix } from 'node:path';
import { fileURLToPath } from 'node:url';
import ts from 'typescript';

/** The files that each source file of a folder imports, types included. */
function importsIn(folder: string): Map<string, readonly string[]> {
  const root = fileURLToPath(new URL(`../../${folder}/`, import.meta.url));
  const files = readdirSync(root, { recursive: true, encoding: 'utf8' })
    .map((file) => file.replaceAll('\\', '/'))
    .filter((file) => file.endsWith('.ts') && !file.endsWith('.spec.ts'));
  const importsOf = (file: string): string[] =>
    ts
      .preProcessFile(readFileSync(root + file, 'utf8'))
      .importedFiles.filter(({ fileName }) => fileName.startsWith('.'))
      .map(({ fileName }) => posix.join(posix.dirname(file), fileName.replace(/\.js$/, '.ts')));
  return new Map(files.map((file) => [file, importsOf(file)]));
}

/** Of each circle, the files on the way from one of them back to it. */
function circlesIn(imports: ReadonlyMap<string, readonly string[]>): string[][] {
  const circles: string[][] = [];
  const done = new Set<string>();
  const visit = (file: string, path: readonly string[]): void => {
    const start = path.indexOf(file);
    if (start >= 0) circles.push([...path.slice(start), file]);
    if (start >= 0 || done.has(file)) return;
    for (const imported of imports.get(file) ?? []) visit(imported, [...path, file]);
    done.add(file);
  };
  for (const file of imports.keys()) visit(file, []);
  return circles;
}

describe('the search for circles', () => {
  it('finds a circle behind a file that is not in it', () => {
    const imports = new Map([
      ['a.ts', ['b.ts', 'd.ts']],
      ['b.ts', ['c.ts']],
      ['c.ts', ['b.ts', 'd.ts']],
      ['d.ts', []],
    ]);
    expect(circlesIn(imports)).toEqual([['b.ts', 'c.ts', 'b.ts']]);
  });
});

describe('the sources of the plugin', () => {
  const imports = importsIn('libs/debate-space/src');

  it('import only files that are there', () => {
    const imported = new Set([...imports.values()].flat());
    expect(imported.size).toBeGreaterThan(20);
    expect([...imported].filter((file) => !imports.has(file))).toEqual([]);
  });

  it('have no circle of imports, types included', () => {
    expect(circlesIn(imports)).toEqual([]);
  });
});
