// npm run bench -- start: what the plugin adds to `import` and the initialization of a Nest app, in fresh processes in turn.
import { fork } from 'node:child_process';
import { once } from 'node:events';
import type { BenchOptions } from './bench-options.js';
import { inTurn } from './measuring.js';
import { kill } from './processes.js';

/** In milliseconds: of time, and of CPU time in user. */
interface Measured {
  readonly ms: number;
  readonly cpuMs: number;
}

const KINDS = ['with', 'without', 'without'] as const;
const UNITS = { ms: 'time', cpuMs: 'CPU time in user' } as const;

export default async function startOfAnApp({ pairs, rounds }: BenchOptions): Promise<void> {
  console.log(`the median of ${pairs * rounds} processes each, in turn`);
  for (const unit of ['ms', 'cpuMs'] as const) {
    const subjects = KINDS.map((kind) => async () => (await startedHost(kind))[unit]);
    const [plugin = NaN, none = NaN, control = NaN] = await inTurn(subjects, pairs * rounds, false);
    console.log(
      `${UNITS[unit]}: ${plugin.toFixed(0)} ms, without ${none.toFixed(0)} ms: ` +
        `${(plugin - none).toFixed(0)} ms more (control ${(control - none).toFixed(0)} ms)`,
    );
  }
  process.exit();
}

/** JavaScript, as a host is that has been built: the loader of the scripts would be measured with it. */
async function startedHost(kind: (typeof KINDS)[number]): Promise<Measured> {
  const child = fork(new URL('start-host.mjs', import.meta.url), [kind], { execArgv: [] });
  const [measured] = (await once(child, 'message')) as [Measured];
  await kill(child);
  return measured;
}
