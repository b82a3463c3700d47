// npm run bench -- <suite>: ratios of interleaved runs. Fresh processes, short rounds that alternate between them, so
// that what else the machine does meets all of them.
import { cpus } from 'node:os';
import { parseArgs } from 'node:util';

const suites = {
  session: () => import('./bench/session.mjs'),
  delivery: () => import('./bench/delivery.mjs'),
  logout: () => import('./bench/logout.mjs'),
  outbox: () => import('./bench/outbox.mjs'),
  users: () => import('./bench/users.mjs'),
  start: () => import('./bench/start.mjs'),
  scale: () => import('./bench/scale.mjs'),
};
const { values, positionals } = parseArgs({
  options: {
    pairs: { type: 'string', default: '4' },
    rounds: { type: 'string', default: '6' },
    pending: { type: 'string', default: '1000000' },
    users: { type: 'string', default: '1000000' },
    backlog: { type: 'string', default: '20000' },
    profile: { type: 'boolean', default: false },
    guard: { type: 'boolean', default: false },
    size: { type: 'string', default: '1000000' },
    parts: { type: 'string', default: 'waiting,users,processes' },
    engines: { type: 'string', default: 'memory,lmdb,redis,postgres' },
    simulate: { type: 'boolean', default: false },
  },
  allowPositionals: true,
});
const [suite = 'session'] = positionals;
if (!Object.hasOwn(suites, suite)) {
  throw new Error(`no benchmark is called ${suite}; there are: ${Object.keys(suites).join(', ')}`);
}
console.log(`Node ${process.version}, ${cpus().length} × ${cpus()[0]?.model}`);
const { default: run } = await suites[suite]();
await run({
  pairs: Number(values.pairs),
  rounds: Number(values.rounds),
  pending: Number(values.pending),
  users: Number(values.users),
  backlog: Number(values.backlog),
  profile: values.profile,
  guard: values.guard,
  size: Number(values.size),
  parts: values.parts.split(','),
  engines: values.engines.split(','),
  isSimulated: values.simulate,
});
