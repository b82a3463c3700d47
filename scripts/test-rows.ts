// npm run test:rows: plays every row of the table of endings on every stack, in one process, several hosts at a time, and says
// which promises were broken: reported, stored, same, contained. Arguments: what the names of stack and row contain.
// Options: `--reported` for that promise alone, `--lanes` for the hosts at a time.
import { parseArgs } from 'node:util';
import { judgeAll, promises } from '#support/endings/judge.js';
import { endingCells } from '#support/endings/stacks.js';

const { values, positionals } = parseArgs({
  options: { reported: { type: 'boolean', default: false }, lanes: { type: 'string', default: '6' } },
  allowPositionals: true,
});
const errors: string[] = [];
const note = (error: unknown): unknown =>
  errors.push(error instanceof Error ? (error.stack ?? '') : String(error));
process.on('uncaughtException', note).on('unhandledRejection', note);

const wanted = positionals.join(' ');
const cells = endingCells.filter(({ stack, ending }) => `${stack}: ${ending.name}`.includes(wanted));
const begun = performance.now();
const counts = Object.fromEntries(promises.map((name) => [name, 0]));
const wrong: string[] = [];
let right = 0;
const options = values.reported ? { only: () => ['reported', 'stored'] as const } : {};
await judgeAll(
  cells,
  Number(values.lanes),
  { ...options, uncaught: () => errors.splice(0) },
  (cell, verdict) => {
    for (const name of verdict.checked) counts[name] = (counts[name] ?? 0) + 1;
    if (verdict.wrong.length === 0) right += 1;
    else wrong.push([`${cell.stack}: ${cell.ending.name}`, ...verdict.wrong].join('\n    '));
  },
);
wrong.push(...errors);
for (const each of wrong.toSorted()) console.log(each);
const seconds = ((performance.now() - begun) / 1_000).toFixed(0);
const checks = Object.entries(counts).map(([name, count]) => `${name} ${count}`);
console.log(`${cells.length} rows in ${seconds} s, ${right} as promised; checked: ${checks.join(', ')}`);
process.exit(wrong.length > 0 || cells.length === 0 ? 1 : 0);
