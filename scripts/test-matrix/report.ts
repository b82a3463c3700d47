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
const MARKS = ['MISSED', 'INVENTED', 'TWICE', 'ROW?', 'ERROR'];
const LEGEND = `once: the browser is logged out, and that was reported once; silent: it is not, and nothing was; –: no such row.
With a *, the row says that this version behaves unlike the others. ${MARKS.join(', ')} are wrong; ROW? is a row
that expects another thing than the browser gets.`;

/** @param columns by NestJS and Node.js */
export function report(columns: readonly Column[]): { readonly text: string; readonly failed: number } {
  const results: Result[] = columns.flatMap(({ nest, node, cells }) =>
    cells.map((cell) => ({ ...cell, column: nameOf({ nest, node }), mark: markOf(cell, nest) })),
  );
  const wrong = results.filter(({ mark }) => MARKS.includes(mark));
  const lost = columns.flatMap(({ trouble, ...column }) =>
    trouble ? [`${nameOf(column)}: ${trouble}`] : [],
  );
  const count = (mark: string): number => wrong.filter((result) => result.mark === mark).length;
  const failed = wrong.length + lost.length;
  const text = [
    ...blocksOf(results).map((block) => tableOf(block, columns)),
    LEGEND,
    versionsOf(columns),
    ...wrong.map(explained),
    ...lost,
    `${results.length} cells, ${count('MISSED')} missed, ${count('INVENTED')} invented, ${count('TWICE')} reported twice, ${count('ROW?')} unlike their row, ${count('ERROR')} with an error
${results.length - wrong.length} passed, ${failed} failed`,
  ].join('\n\n');
  return { text, failed };
}

function nameOf({ nest, node }: Pick<Column, 'nest' | 'node'>): string {
  return `NestJS ${nest}, Node.js ${node}`;
}

/** What was reported is held against the truth – what the browser gets afterwards – and then the truth against the row. */
function markOf(cell: Cell, nest: string): string {
  if (cell.error !== undefined) return 'ERROR';
  const { ends, endsOn = {}, loggedOut, reported } = cell;
  if (reported.some((uid) => uid !== 'alice') || (reported.length > 0 && !loggedOut)) return 'INVENTED';
  if (reported.length > 1) return 'TWICE';
  if (reported.length === 0 && loggedOut) return 'MISSED';
  const expected = endsOn[`nest${nest}` as keyof typeof endsOn] ?? ends;
  if (loggedOut !== expected) return 'ROW?';
  return `${loggedOut ? 'once' : 'silent'}${expected === ends ? '' : '*'}`;
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

function explained({ mark, column, stack, name, ...cell }: Result): string {
  const observed =
    cell.error ?? `logged out: ${String(cell.loggedOut)}; reported: ${cell.reported.join(', ') || 'nobody'}`;
  return `${mark}: ${column}, ${stack}: ${name}\n${observed}`;
}
