// npm run bench -- <suite>: ratios of interleaved runs. Fresh processes, short rounds that alternate between them, so
// that what else the machine does meets all of them.
import { cpus } from 'node:os';
import { parseArgs } from 'node:util';
import type { BenchOptions } from './bench/bench-options.js';
import type { EngineName } from './test-crash/engines.js';

interface Suite {
  readonly default: (options: BenchOptions) => Promise<void>;
}

const suites: Readonly<Record<string, () => Promise<Suite>>> = {
  session: () => import('./bench/session.js'),
  delivery: () => import('./bench/delivery.js'),
  logout: () => import('./bench/logout.js'),
  storage: () => import('./bench/storage.js'),
  start: () => import('./bench/start.js'),
};
const { values, positionals } = parseArgs({
  options: {
    pairs: { type: 'string', default: '4' },
    rounds: { type: 'string', default: '6' },
    pending: { type: 'string', default: '1000000' },
    backlog: { type: 'string', default: '20000' },
    guard: { type: 'boolean', default: false },
    size: { type: 'string', default: '1000000' },
    engines: { type: 'string', default: 'memory,sqlite,postgres,mariadb' },
  },
  allowPositionals: true,
});
const [suite = 'session'] = positionals;
const load = Object.hasOwn(suites, suite) ? suites[suite] : undefined;
if (load === undefined) {
  throw new Error(`no benchmark is called ${suite}; there are: ${Object.keys(suites).join(', ')}`);
}
console.log(`Node ${process.version}, ${cpus().length} × ${cpus()[0]?.model ?? 'unknown'}`);
const { default: run } = await load();
await run({
  pairs: Number(values.pairs),
  rounds: Number(values.rounds),
  pending: Number(values.pending),
  backlog: Number(values.backlog),
  guard: values.guard,
  size: Number(values.size),
  engines: values.engines.split(',') as EngineName[],
});
