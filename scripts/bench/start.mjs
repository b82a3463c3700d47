// npm run bench -- start: what the plugin adds to `import` and the initialization of a Nest app, in fresh processes in turn.
import { inTurn } from './measuring.mjs';
import { kill, start } from './outbox-places.mjs';

const KINDS = ['with', 'without', 'without'];

export default async function startOfAnApp({ pairs, rounds }) {
  console.log(`the median of ${pairs * rounds} processes each, in turn`);
  for (const unit of ['ms', 'cpuMs']) {
    const subjects = KINDS.map((kind) => async () => {
      const { child, ...measured } = await start('./start-host.mjs', [kind]);
      await kill(child);
      return measured[unit];
    });
    const [plugin, none, control] = await inTurn(subjects, pairs * rounds, false);
    const text = unit === 'ms' ? 'time' : 'CPU time in user';
    console.log(
      `${text}: ${plugin.toFixed(0)} ms, without ${none.toFixed(0)} ms: ` +
        `${(plugin - none).toFixed(0)} ms more (control ${(control - none).toFixed(0)} ms)`,
    );
  }
  process.exit();
}
