// The table of the matrix: rows are endings and look-alikes, columns are session stacks under each NestJS and Node.js.

const LETTERS = 'ABCDEFGH';
const MARKS = ['MISSED', 'INVENTED', 'TWICE', 'ROW?', 'ERROR'];
const LEGEND = `once: the browser is logged out, and that was reported once; silent: it is not, and nothing was; –: no such row.
With a *, the row says that this version behaves unlike the others. ${MARKS.join(', ')} are wrong; ROW? is a row
that expects another thing than the browser gets.`;

/** @param columns by NestJS and Node.js: their majors, the versions that are installed with it, and the results of its cells */
export function report(columns) {
  const results = columns.flatMap(({ nest, node, cells }) =>
    cells.map((cell) => ({ ...cell, column: nameOf({ nest, node }), mark: markOf(cell, nest) })),
  );
  const wrong = results.filter(({ mark }) => MARKS.includes(mark));
  const lost = columns.flatMap(({ trouble, ...column }) =>
    trouble ? [`${nameOf(column)}: ${trouble}`] : [],
  );
  const count = (mark) => wrong.filter((result) => result.mark === mark).length;
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

function nameOf({ nest, node }) {
  return `NestJS ${nest}, Node.js ${node}`;
}

/** What was told is held against the truth – what the browser gets afterwards – and then the truth against the row. */
function markOf({ ends, endsOn = {}, loggedOut, told, error }, nest) {
  if (error) return 'ERROR';
  if (told.some((uid) => uid !== 'alice') || (told.length > 0 && !loggedOut)) return 'INVENTED';
  if (told.length > 1) return 'TWICE';
  if (told.length === 0 && loggedOut) return 'MISSED';
  const expected = endsOn[`nest${nest}`] ?? ends;
  if (loggedOut !== expected) return 'ROW?';
  return `${loggedOut ? 'once' : 'silent'}${expected === ends ? '' : '*'}`;
}

/** Neighbouring stacks of one platform have one table. */
function blocksOf(results) {
  const blocks = [];
  for (const stack of new Set(results.map((result) => result.stack))) {
    const [platform, ...library] = stack.split(', ');
    if (blocks.at(-1)?.platform !== platform) blocks.push({ platform, libraries: [], results: [] });
    blocks.at(-1).libraries.push(library.join(', '));
    blocks.at(-1).results.push(results.filter((result) => result.stack === stack));
  }
  return blocks;
}

function tableOf({ platform, libraries, results }, columns) {
  const title = `${platform}: ${libraries.map((library, index) => `${LETTERS[index]} = ${library}`).join('; ')}; with NestJS/Node.js`;
  const across = results.flatMap((stack, index) =>
    columns.map((column) => ({
      heading: `${LETTERS[index]} ${column.nest}/${column.node}`,
      cells: stack.filter((cell) => cell.column === nameOf(column)),
    })),
  );
  const rows = [...new Set(results.flat().map(({ name }) => name))].map((name) => [
    name,
    ...across.map(({ cells }) => cells.find((cell) => cell.name === name)?.mark ?? '–'),
  ]);
  return `${title}\n${grid([['', ...across.map(({ heading }) => heading)], ...rows])}`;
}

function versionsOf(columns) {
  const names = [...columns[0].versions.keys()];
  const rows = names.map((name) => [name, ...columns.map(({ versions }) => versions.get(name))]);
  return grid([['', ...columns.map(nameOf)], ...rows]);
}

function grid(rows) {
  const widths = rows[0].map((_, index) => Math.max(...rows.map((row) => row[index].length)));
  const padded = (row) => row.map((text, index) => text.padEnd(widths[index]));
  return rows.map((row) => padded(row).join('  ').trimEnd()).join('\n');
}

function explained({ mark, column, stack, name, loggedOut, told, error }) {
  return `${mark}: ${column}, ${stack}: ${name}\n${error ?? `logged out: ${loggedOut}; told: ${told.join(', ') || 'nobody'}`}`;
}
