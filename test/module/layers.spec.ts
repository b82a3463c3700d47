import { expect, it } from '@jest/globals';
import { readdirSync, readFileSync } from 'node:fs';
import { posix } from 'node:path';
import { fileURLToPath } from 'node:url';
import ts from 'typescript';
import { pageOf } from '#support/docs-snippets.js';

type Graph = ReadonlyMap<string, ReadonlySet<string>>;

const root = fileURLToPath(new URL('../../libs/debate-space/src/', import.meta.url));

/** The files that each source file of the plugin imports, types included. */
function imports(): Graph {
  const files = readdirSync(root, { recursive: true, encoding: 'utf8' })
    .map((file) => file.replaceAll('\\', '/'))
    .filter((file) => file.endsWith('.ts') && !file.endsWith('.spec.ts'));
  const importsOf = (file: string): string[] =>
    ts
      .preProcessFile(readFileSync(root + file, 'utf8'))
      .importedFiles.filter(({ fileName }) => fileName.startsWith('.'))
      .map(({ fileName }) => posix.join(posix.dirname(file), fileName.replace(/\.js$/, '.ts')));
  return new Map(files.map((file) => [file, new Set(importsOf(file))]));
}

/** Whether a way leads from one node to another over a third one. */
function isIndirect(graph: Graph, from: string, to: string): boolean {
  const leads = (node: string): boolean => graph.get(node)?.has(to) === true || nexts(node).some(leads);
  const nexts = (node: string): string[] => [...(graph.get(node) ?? [])];
  return nexts(from).some((next) => next !== to && leads(next));
}

// ESLint checks that imports point downward; within a layer, it does not see a circle.
it('the sources of the plugin have no circle of imports', () => {
  const graph = imports();
  const circles: string[][] = [];
  const done = new Set<string>();
  const visit = (file: string, path: readonly string[]): void => {
    const start = path.indexOf(file);
    if (start >= 0) circles.push([...path.slice(start), file]);
    if (start >= 0 || done.has(file)) return;
    for (const imported of graph.get(file) ?? []) visit(imported, [...path, file]);
    done.add(file);
  };
  for (const file of graph.keys()) visit(file, []);
  expect(done.size).toBeGreaterThan(20);
  expect(circles).toEqual([]);
});

it('the arrows of docs/architecture.md are the imports between the layers, without those that skip a layer', () => {
  const arrows = [...pageOf('docs/architecture.md').matchAll(/^ {2}([\w-]+) --> ([\w-]+)/gm)].map(
    ([, from = '', to = '']) => `${from} → ${to}`,
  );
  const layers = new Set(arrows.flatMap((arrow) => arrow.split(' → ')));
  const graph = new Map([...layers].map((layer) => [layer, new Set<string>()]));
  for (const [file, imported] of imports()) {
    const [from = ''] = file.split('/');
    const found = [...imported].map((each) => each.split('/')[0] ?? '');
    for (const to of found) if (to !== from && layers.has(to)) graph.get(from)?.add(to);
  }
  const expected = [...graph].flatMap(([from, tos]) =>
    [...tos].filter((to) => !isIndirect(graph, from, to)).map((to) => `${from} → ${to}`),
  );
  expect(arrows.toSorted()).toEqual(expected.toSorted());
});
