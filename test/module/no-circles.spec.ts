import { expect, it } from '@jest/globals';
import { readdirSync, readFileSync } from 'node:fs';
import { posix } from 'node:path';
import { fileURLToPath } from 'node:url';
import ts from 'typescript';

const root = fileURLToPath(new URL('../../libs/debate-space/src/', import.meta.url));

/** The files that each source file imports, types included. */
function importsInSources(): Map<string, readonly string[]> {
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

// ESLint checks that imports point downward; within a layer, it does not see a circle.
it('the sources of the plugin have no circle of imports', () => {
  const imports = importsInSources();
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
  expect(done.size).toBeGreaterThan(20);
  expect(circles).toEqual([]);
});
