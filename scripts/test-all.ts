// npm run test:all: everything that `npm test` leaves out, two parts at a time; what a part prints comes when it is over.
// Arguments: the names of parts, to run these alone. `--nightly`: every NestJS on every Node.js, all kills, an hour of soak.
import { spawn } from 'node:child_process';
import { setPriority } from 'node:os';
import { parseArgs } from 'node:util';

const { values, positionals } = parseArgs({
  options: { nightly: { type: 'boolean', default: false } },
  allowPositionals: true,
});
/** One for each CPU of the smallest machine that runs this. */
const LANES = 2;
const script = (name: string, ...more: string[]): readonly string[] => [
  ...['--disable-warning=DEP0205', '--expose-gc', '--import', './scripts/typescript.mjs'],
  ...[`scripts/${name}.ts`, ...more],
];
const jest = (config: string): readonly string[] => [
  ...['--experimental-vm-modules', '--no-warnings=ExperimentalWarning', '--disable-warning=DEP0205'],
  ...['--import', './scripts/typescript.mjs', 'node_modules/jest/bin/jest.js', '--config', config],
];
const full = values.nightly ? ['--full'] : [];

/** Each is the command `npm run <name>`, without its build. Those with kills and leases first: beside them nothing installs. */
const parts: Readonly<Record<string, readonly string[]>> = {
  'test:slow': jest('jest.slow.config.js'),
  'test:rows': script('test-rows'),
  'test:crash': script('test-crash', ...full),
  soak: script('soak', '--minutes', values.nightly ? '60' : '2'),
  'check:package': script('check-package'),
  'test:matrix': script('test-matrix', ...full),
  'check:recipes': script('check-recipes'),
};
/** Measures: it runs when nothing else does. */
const alone: Readonly<Record<string, readonly string[]>> = { bench: script('bench', 'session', '--guard') };

const names = [...Object.keys(parts), ...Object.keys(alone)];
const unknown = positionals.find((name) => !names.includes(name));
if (unknown !== undefined) {
  console.error(`There is no part ${unknown}; hint: the parts are ${names.join(', ')}.`);
  process.exit(1);
}
const isWanted = ([name]: readonly [string, unknown]): boolean =>
  positionals.length === 0 || positionals.includes(name);
const waiting = Object.entries(parts).filter(isWanted);
const lane = async (): Promise<void> => {
  for (let part = waiting.shift(); part; part = waiting.shift()) await run(...part);
};
await Promise.all(Array.from({ length: LANES }, lane));
for (const part of Object.entries(alone).filter(isWanted)) await run(...part);

async function run(name: string, args: readonly string[]): Promise<void> {
  const begun = performance.now();
  const child = spawn(process.execPath, args, { stdio: ['ignore', 'pipe', 'pipe'] });
  // The installations beside it have time limits.
  if (name === 'test:matrix' && child.pid !== undefined) setPriority(child.pid, 10);
  const printed: Buffer[] = [];
  for (const stream of [child.stdout, child.stderr]) stream.on('data', (data: Buffer) => printed.push(data));
  const code = await new Promise((resolve) => child.on('close', resolve));
  if (code !== 0) process.exitCode = 1;
  const seconds = ((performance.now() - begun) / 1_000).toFixed(0);
  const verdict = code === 0 ? 'passed' : 'FAILED';
  console.log(
    `\n${Buffer.concat(printed).toString().trimEnd()}\n${verdict} in ${seconds} s: npm run ${name}`,
  );
}
