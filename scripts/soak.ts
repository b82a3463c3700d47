// A host that works for long, on each storage: browsers log in and out, users are erased, the service is away now and then,
// one of two apps is restarted. Exit code 0: heap and handles stay flat after the warm-up, nothing is lost, nothing waits.
import { parseArgs } from 'node:util';
import { SoakTrial } from './soak/soak-trial.js';
import { messageOf } from './caught.js';
import { postgres, redis } from './test-crash/logout-places.js';
import { temporaryFolder } from './test-crash/places.js';
import type { LogoutScenario } from './test-crash/scenario.js';
import { Skipped } from './test-crash/skipped.js';
import { table } from './test-crash/table.js';

const { values } = parseArgs({
  options: {
    minutes: { type: 'string', default: '60' },
    storage: { type: 'string', multiple: true },
    seed: { type: 'string' },
  },
});
const none = { kills: 0, endings: 0 };
const usual = {
  what: 'soak',
  apps: 2,
  browsers: 4,
  pauseMs: 150,
  reportsCutOff: true, // one app is restarted in order, in the middle of its requests
  // A history is kept by days, and would grow all the time; storages are waited for, so that a busy machine loses nothing.
  options: { http: { timeoutMs: 1_000 }, logout: { historyRetentionMs: 0, storageTimeoutMs: 20_000 } },
  size: none,
  full: none,
};
const scenarios: readonly LogoutScenario[] = [
  { ...usual, name: 'memory', engine: 'memory' },
  { ...usual, name: 'lmdb', engine: 'lmdb', place: () => temporaryFolder() },
  { ...usual, name: 'redis', engine: 'redis', place: redis('everysec') },
  { ...usual, name: 'postgres', engine: 'postgres', place: postgres },
];
const chosen = scenarios.filter(({ name }) => values.storage?.includes(name) ?? true);
const seed = Number(values.seed ?? Date.now() % 1_000_000);
console.log(`seed ${seed}, ${values.minutes} minutes`);

const verdicts = await Promise.all(chosen.map(soak));
process.exit(verdicts.length > 0 && verdicts.every(Boolean) ? 0 : 1);

async function soak(scenario: LogoutScenario): Promise<boolean> {
  const trial = new SoakTrial(scenario, Number(values.minutes), seed);
  try {
    const { result, violations } = await trial.run((work) => work());
    const wrong = [...trial.trouble, ...violations];
    console.log([table(trial.columns, [result]), ...wrong, ''].join('\n'));
    return wrong.length === 0;
  } catch (error) {
    const isSkipped = error instanceof Skipped && !error.isFailure;
    console.log(`${scenario.name}: ${isSkipped ? 'SKIPPED: ' : ''}${messageOf(error)}`);
    return isSkipped;
  }
}
