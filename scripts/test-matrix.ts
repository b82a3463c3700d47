// Plays every row of the table of endings (endings/stacks.ts of test/support) on every stack under NestJS 10, 11 and 12 and
// Node.js 20, 22, 24 and 26: in hosts that have the packed tarballs and the versions of the session libraries that belong
// to that NestJS. By default each NestJS runs on one Node.js.
// Options: `--nest` 10, 11 or 12 and `--node` 20, 22, 24 or 26 for these alone; `--full` for each NestJS on each Node.js.
import { fork } from 'node:child_process';
import { once } from 'node:events';
import { join } from 'node:path';
import { parseArgs } from 'node:util';
import { withPacked } from './driver.js';
import { hosts, installHost, transpile, versionsIn, type Host } from './nest-hosts.js';
import { NODE_MAJORS, nodeBinary, RUNNING_MAJOR } from './node-binaries.js';
import { run } from './packed.js';
import type { Cell } from './test-matrix/run-cells.js';

const { values } = parseArgs({
  options: { nest: { type: 'string' }, node: { type: 'string' }, full: { type: 'boolean' } },
});
const RUN_TIMEOUT_MS = 900_000;

const chosenHosts = hosts.filter(({ nest }) => (values.nest ?? nest) === nest);
const isNode = values.node === undefined || NODE_MAJORS.includes(values.node);
if (chosenHosts.length === 0 || !isNode) {
  console.error(`--nest is one of ${hosts.map(({ nest }) => nest).join(', ')}`);
  console.error(`--node is one of ${NODE_MAJORS.join(', ')}`);
  process.exit(1);
}
await withPacked(async (folder, packed) => {
  const tarballs = packed.map(({ tarball }) => tarball);
  for (const host of chosenHosts) {
    const place = await installHost(host, folder, tarballs);
    transpile(place, host.type, 'scripts/test-matrix/run-cells.ts');
    for (const node of nodesOf(host)) await play(host, place, await nodeBinary(node));
  }
});

/** One that is chosen alone runs on the Node.js that runs this, unless another is chosen as well. */
function nodesOf({ nodes }: Host): readonly string[] {
  if (values.full) return NODE_MAJORS;
  if (values.node !== undefined) return [values.node];
  return values.nest === undefined ? nodes : [RUNNING_MAJOR];
}

/** Prints every result that came, and what brought the run down if something did. */
async function play(host: Host, place: string, execPath: string): Promise<void> {
  const cells: Cell[] = [];
  const child = fork(join(place, 'scripts/test-matrix/run-cells.js'), [host.nest], {
    cwd: place,
    execPath,
    execArgv: ['--disable-warning=ExperimentalWarning'], // Node 20 says it of the ESM packages that it requires
    timeout: RUN_TIMEOUT_MS,
  });
  child.on('message', (cell) => cells.push(cell as Cell));
  const [code, signal] = (await once(child, 'close')) as [number | null, string | null];
  const wrong = cells.filter((cell) => cell.wrong.length > 0);
  const versions = [(await run(execPath, ['--version'])).trim(), ...versionsIn(place, host)].join(', ');
  const right = cells.length - wrong.length;
  console.log(`NestJS ${host.nest}: ${cells.length} rows, ${right} as promised; Node.js ${versions}`);
  for (const cell of wrong) console.log([`${cell.stack}: ${cell.name}`, ...cell.wrong].join('\n    '));
  const isOver = code !== 0 || cells.length === 0;
  if (isOver) console.log(`the run was over after ${cells.length} cells (${signal ?? String(code)})`);
  if (wrong.length > 0 || isOver) process.exitCode = 1;
}
