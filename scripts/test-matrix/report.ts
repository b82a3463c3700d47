// The table of the matrix: rows are endings and look-alikes, columns are session stacks under each NestJS and Node.js.
import type { Cell, Column } from './cell.js';

type Result = Cell & { readonly column: string; readonly mark: string };

/** The stacks of one platform. */
interface Block {
  readonly platform: string;
  readonly libraries: string[];
  /** Of each library. */
  readonly results: Result[][];
}

const LETTERS = 'ABCDEFGH';
const LEGEND = `told: users were logged out, and the service was told of them; silent: nobody was; –: no such row. In capitals, the
promises that are broken: TOLD, STORED before the answer, the SAME as without the plugin, CONTAINED.`;

/** @param columns by NestJS and Node.js */
export function report(columns: readonly Column[]): { readonly text: string; readonly failed: number } {
  const results: Result[] = columns.flatMap(({ nest, node, cells }) =>
    cells.map((cell) => ({ ...cell, column: nameOf({ nest, node }), mark: markOf(cell) })),
  );
  const wrong = results.filter((cell) => cell.wrong.length > 0);
  const lost = columns.flatMap(({ trouble, ...column }) =>
    trouble ? [`${nameOf(column)}: ${trouble}`] : [],
  );
  const failed = wrong.length + lost.length;
  const text = [
    ...blocksOf(results).map((block) => tableOf(block, columns)),
    LEGEND,
    versionsOf(columns),
    ...wrong.map(explained),
    ...lost,
    `${results.length} cells\n${results.length - wrong.length} passed, ${failed} failed`,
  ].join('\n\n');
  return { text, failed };
}

function nameOf({ nest, node }: Pick<Column, 'nest' | 'node'>): string {
  return `NestJS ${nest}, Node.js ${node}`;
}

function markOf({ isTold, wrong }: Cell): string {
  const broken = wrong.map((text) => /^\w+/.exec(text)?.[0]?.toUpperCase());
  return broken.length > 0 ? [...new Set(broken)].join() : isTold ? 'told' : 'silent';
}

/** Neighbouring stacks of one platform have one table. */
function blocksOf(results: readonly Result[]): Block[] {
  const blocks: Block[] = [];
  for (const stack of new Set(results.map((result) => result.stack))) {
    const [platform = '', ...library] = stack.split(', ');
    let block = blocks.at(-1);
    if (block?.platform !== platform) blocks.push((block = { platform, libraries: [], results: [] }));
    block.libraries.push(library.join(', '));
    block.results.push(results.filter((result) => result.stack === stack));
  }
  return blocks;
}

function tableOf({ platform, libraries, results }: Block, columns: readonly Column[]): string {
  const title = `${platform}: ${libraries.map((library, index) => `${letterOf(index)} = ${library}`).join('; ')}; with NestJS/Node.js`;
  const across = results.flatMap((stack, index) =>
    columns.map((column) => ({
      heading: `${letterOf(index)} ${column.nest}/${column.node}`,
      cells: stack.filter((cell) => cell.column === nameOf(column)),
    })),
  );
  const rows = [...new Set(results.flat().map(({ name }) => name))].map((name) => [
    name,
    ...across.map(({ cells }) => cells.find((cell) => cell.name === name)?.mark ?? '–'),
  ]);
  return `${title}\n${grid([['', ...across.map(({ heading }) => heading)], ...rows])}`;
}

function letterOf(library: number): string {
  return LETTERS.charAt(library);
}

function versionsOf(columns: readonly Column[]): string {
  const names = [...(columns[0]?.versions.keys() ?? [])];
  const rows = names.map((name) => [name, ...columns.map(({ versions }) => versions.get(name) ?? '')]);
  return grid([['', ...columns.map(nameOf)], ...rows]);
}

function grid(rows: readonly [readonly string[], ...(readonly string[])[]]): string {
  const widths = rows[0].map((_, index) => Math.max(...rows.map((row) => row[index]?.length ?? 0)));
  const padded = (row: readonly string[]): string[] =>
    row.map((text, index) => text.padEnd(widths[index] ?? 0));
  return rows.map((row) => padded(row).join('  ').trimEnd()).join('\n');
}

function explained({ column, stack, name, wrong }: Result): string {
  return [`${column}, ${stack}: ${name}`, ...wrong].join('\n');
}
