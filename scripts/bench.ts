// npm run bench -- <suite>: ratios of interleaved runs. Fresh processes, short rounds that alternate between them, so
// that what else the machine does meets all of them.
import { cpus } from 'node:os';
import { parseArgs } from 'node:util';
import { delivery } from './bench/delivery.js';
import { logout, session, start } from './bench/host.js';
import type { BenchOptions } from './bench/measuring.js';
import { storage } from './bench/storage.js';
import type { EngineName } from './test-crash/engines.js';

const suites: Readonly<Record<string, (options: BenchOptions) => Promise<void>>> = {
  session,
  start,
  logout,
  delivery,
  storage,
};
const { values, positionals } = parseArgs({
  options: {
    pairs: { type: 'string', default: '4' },
    rounds: { type: 'string', default: '6' },
    pending: { type: 'string', default: '1000000' },
    guard: { type: 'boolean', default: false },
    engines: { type: 'string', default: 'memory,sqlite,postgres,mariadb' },
  },
  allowPositionals: true,
});
const [name = 'session'] = positionals;
const suite = Object.hasOwn(suites, name) ? suites[name] : undefined;
if (!suite)
  throw new Error(`There is no benchmark ${name}; hint: there are ${Object.keys(suites).join(', ')}`);
console.log(`Node ${process.version}, ${cpus().length} × ${cpus()[0]?.model ?? 'unknown'}`);
await suite({
  pairs: Number(values.pairs),
  rounds: Number(values.rounds),
  pending: Number(values.pending),
  guard: values.guard,
  engines: values.engines.split(',') as EngineName[],
});
process.exit();
