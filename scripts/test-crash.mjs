// The proof that no logout is lost and that erasures are done: apps under load are killed at random, started again, and
// what the service received is compared with what was promised to the browsers and to those who requested erasures. Exit code
// 0: every invariant holds.
import { parseArgs } from 'node:util';
import { erasureScenarios } from './test-crash/erasure-scenarios.mjs';
import { injectedFaults } from './test-crash/injected-faults.mjs';
import { LogoutTrial } from './test-crash/logout-trial.mjs';
import { logoutScenarios } from './test-crash/scenarios.mjs';
import { semaphore } from './test-crash/semaphore.mjs';
import { Skipped } from './test-crash/skipped.mjs';
import { table } from './test-crash/table.mjs';

const { values } = parseArgs({
  options: {
    scenario: { type: 'string', multiple: true },
    kills: { type: 'string' },
    endings: { type: 'string' },
    erasures: { type: 'string' },
    seed: { type: 'string' },
    full: { type: 'boolean' },
    faults: { type: 'boolean' },
  },
});
/** In the order in which they begin: those that take longest begin first. */
const scenarios = [...erasureScenarios, ...logoutScenarios];
const seed = Number(values.seed ?? Date.now() % 1_000_000);
/** One for each CPU of the smallest machine that runs this; the waiting afterwards costs nothing. */
const inTurn = semaphore(2);

const unknown = (values.scenario ?? []).filter(
  (name) => !scenarios.some((scenario) => scenario.name === name),
);
if (unknown.length > 0) {
  console.error(
    `no such scenario: ${unknown.join(', ')}; there are ${scenarios.map(({ name }) => name).join(', ')}`,
  );
  process.exit(1);
}
const chosen = scenarios.filter(
  ({ name, onlyFull }) => values.scenario?.includes(name) ?? (values.full || !onlyFull),
);

console.log(`seed ${seed}`);
const isRight = values.faults ? await injectAll() : await proveAll();
process.exit(isRight ? 0 : 1);

async function proveAll() {
  const outcomes = await Promise.all(
    chosen.map(async (scenario) => {
      const outcome = await play(scenario);
      console.log(`${verdict(outcome)}  ${scenario.name}: ${scenario.what}`);
      return outcome;
    }),
  );
  report(outcomes);
  return outcomes.every(({ wrong }) => wrong.length === 0);
}

/** Each fault under the scenario that is to find it. */
async function injectAll() {
  const outcomes = await Promise.all(
    injectedFaults
      .filter(({ under }) => chosen.some(({ name }) => name === under))
      .map(async ({ name, under, size, tell }) => {
        const scenario = scenarios.find((candidate) => candidate.name === under);
        const faulty = { ...scenario, name: `${name} (${under})`, fault: name, size: size ?? scenario.size };
        const outcome = await play(faulty);
        return { ...outcome, isCaught: outcome.wrong.some((word) => tell.test(word)) };
      }),
  );
  report(outcomes);
  for (const { scenario, isCaught } of outcomes)
    console.log(`${isCaught ? 'caught' : 'NOT CAUGHT'}  ${scenario.name}`);
  return outcomes.length > 0 && outcomes.every(({ isCaught }) => isCaught);
}

/** Never rejects. */
async function play(scenario) {
  const usual = values.full ? scenario.full : scenario.size;
  const given = Object.keys(usual).filter((key) => values[key] !== undefined);
  const size = { ...usual, ...Object.fromEntries(given.map((key) => [key, Number(values[key])])) };
  const trial = new (scenario.Trial ?? LogoutTrial)(scenario, size, seed);
  const { notes, columns } = trial;
  try {
    const result = await trial.run(inTurn);
    return { scenario, result, columns, notes, wrong: [...trial.trouble, ...trial.violations(result)] };
  } catch (error) {
    if (error instanceof Skipped && !error.isFailure)
      return { scenario, notes: [`SKIPPED: ${error.message}`], wrong: [], isSkipped: true };
    return { scenario, notes, wrong: [...trial.trouble, error.stack] };
  }
}

function verdict({ wrong, isSkipped }) {
  if (isSkipped) return 'SKIPPED';
  return wrong.length === 0 ? 'ok' : 'FAILED';
}

function report(outcomes) {
  const played = outcomes.filter(({ result }) => result !== undefined);
  for (const columns of new Set(played.map((outcome) => outcome.columns))) {
    const results = played.filter((outcome) => outcome.columns === columns).map(({ result }) => result);
    console.log(`\n${table(columns, results)}`);
  }
  console.log();
  for (const { scenario, notes } of outcomes)
    for (const note of notes) console.log(`${scenario.name}: ${note}`);
  for (const { scenario, wrong } of outcomes)
    for (const word of wrong) console.log(`${scenario.name}: ${word}`);
}
