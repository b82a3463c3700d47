// The proof that no logout is lost that a browser had an answer to, that no session is reported that lives, and that each
// erasure is executed once, with a receipt: whatever happens to the apps and to their database. Apps run as processes, browsers
// and the service are in this one. Exit code 0: nothing was violated.
import { parseArgs } from 'node:util';
import { compileApp } from './test-crash/app-process.js';
import { Cleanup } from './test-crash/cleanup.js';
import { disturbances } from './test-crash/disturbances.js';
import { durableEngines } from './test-crash/engines.js';
import { playErasures } from './test-crash/erasures.js';
import { playLogouts } from './test-crash/logouts.js';
import type { Outcome, Run } from './test-crash/trial.js';

interface Scenario {
  readonly name: string;
  readonly kind: 'logouts' | 'erasures';
  play(run: Run): Promise<Outcome>;
}

/** Half of the time of a scenario, its apps wait for leases. */
const AT_ONCE = 4;

const { values } = parseArgs({
  options: {
    /** Words of the names of the scenarios to play. */
    only: { type: 'string', multiple: true, default: [] },
    full: { type: 'boolean', default: false },
  },
});

/** Those that wait the longest for leases begin first. */
const scenarios: readonly Scenario[] = [
  ...durableEngines.map((engine): Scenario => {
    const size = values.full ? ([10, 1_000] as const) : ([5, 400] as const);
    return {
      name: `${engine}: erasures`,
      kind: 'erasures',
      play: (run) => playErasures(run, engine, size),
    };
  }),
  ...disturbances.flatMap((disturbance) =>
    disturbance.engines.map((engine): Scenario => {
      const size = values.full ? disturbance.full : disturbance.size;
      const name = `${engine}: ${disturbance.name}`;
      return { name, kind: 'logouts', play: (run) => playLogouts(run, engine, disturbance, size) };
    }),
  ),
];

const run: Run = { program: compileApp(), cleanup: new Cleanup() };
const played: (Outcome & Scenario)[] = [];
const left = scenarios.filter(({ name }) => values.only.every((word) => name.includes(word))).values();
await Promise.all(Array.from({ length: AT_ONCE }, playNext));
for (const kind of ['logouts', 'erasures'])
  console.table(
    Object.fromEntries(played.flatMap(({ name, row, ...one }) => (one.kind === kind ? [[name, row]] : []))),
  );
for (const { name, notes } of played) for (const note of notes) console.log(`${name}: ${note}`);
for (const { name, wrong } of played)
  for (const words of wrong) console.error(`VIOLATED by ${name}: ${words}`);
process.exit(played.length > 0 && played.every(({ wrong }) => wrong.length === 0) ? 0 : 1);

async function playNext(): Promise<void> {
  for (const scenario of left) {
    const outcome = await scenario.play(run).catch(failed);
    played.push({ ...scenario, ...outcome });
    console.log(`${outcome.wrong.length > 0 ? 'FAILED' : 'ok'}  ${scenario.name}`);
  }
}

function failed(error: unknown): Outcome {
  const words = error instanceof Error ? (error.stack ?? error.message) : String(error);
  return { row: {}, wrong: [words], notes: [] };
}
