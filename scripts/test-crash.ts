// The proof that no logout that was answered is lost, that no session that lives is reported, and that erasures are done:
// apps under load are killed at random and started again. The requests that the service received are compared with the
// answers that the browsers got, with the sessions in the store, and with the erasures requested. Exit code 0: every
// invariant holds.
import { parseArgs } from 'node:util';
import { erasureScenarios } from './test-crash/erasure-scenarios.js';
import { injectedFaults, type InjectedFault } from './test-crash/injected-faults.js';
import { LogoutTrial } from './test-crash/logout-trial.js';
import type { AnyScenario } from './test-crash/scenario.js';
import { logoutScenarios } from './test-crash/scenarios.js';
import { semaphore } from './test-crash/semaphore.js';
import { Skipped } from './test-crash/skipped.js';
import { table, type Columns, type Row } from './test-crash/table.js';
import type { Trial } from './test-crash/trial.js';

/** What came of a scenario. */
interface Outcome {
  readonly scenario: AnyScenario;
  /** Absent when it was not played to its end. */
  readonly result?: Row;
  readonly columns?: Columns;
  readonly notes: readonly string[];
  /** In plain words; empty when every invariant holds. */
  readonly wrong: readonly string[];
  readonly isSkipped?: boolean;
}

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
const scenarios: readonly AnyScenario[] = [...erasureScenarios, ...logoutScenarios];
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
  ({ name, onlyFull }) => values.scenario?.includes(name) ?? (values.full === true || !onlyFull),
);

console.log(`seed ${seed}`);
const isRight = values.faults ? await injectAll() : await proveAll();
process.exit(isRight ? 0 : 1);

async function proveAll(): Promise<boolean> {
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
async function injectAll(): Promise<boolean> {
  const faulty = injectedFaults.flatMap((fault) =>
    chosen.filter(({ name }) => name === fault.under).map((scenario) => ({ fault, scenario })),
  );
  const outcomes = await Promise.all(
    faulty.map(async ({ fault, scenario }) => {
      const outcome = await play(withFault(scenario, fault));
      return { ...outcome, isCaught: outcome.wrong.some((word) => fault.tell.test(word)) };
    }),
  );
  report(outcomes);
  for (const { scenario, isCaught } of outcomes)
    console.log(`${isCaught ? 'caught' : 'NOT CAUGHT'}  ${scenario.name}`);
  return outcomes.length > 0 && outcomes.every(({ isCaught }) => isCaught);
}

function withFault<Scenario extends AnyScenario>(scenario: Scenario, fault: InjectedFault): Scenario {
  const { name, under, size } = fault;
  return { ...scenario, name: `${name} (${under})`, fault: name, size: { ...scenario.size, ...size } };
}

/** As the command line wants it. */
function sizeOf<Size extends object>({ size, full }: { readonly size: Size; readonly full: Size }): Size {
  const usual = values.full ? full : size;
  const given = (['kills', 'endings', 'erasures'] as const).filter(
    (key) => key in usual && values[key] !== undefined,
  );
  return { ...usual, ...Object.fromEntries(given.map((key) => [key, Number(values[key])])) };
}

function trialOf(scenario: AnyScenario): Trial {
  if ('Trial' in scenario) return new scenario.Trial(scenario, sizeOf(scenario), seed);
  return new LogoutTrial(scenario, sizeOf(scenario), seed);
}

/** Never rejects. */
async function play(scenario: AnyScenario): Promise<Outcome> {
  const trial = trialOf(scenario);
  const { notes, columns } = trial;
  try {
    const { result, violations } = await trial.run(inTurn);
    return { scenario, result, columns, notes, wrong: [...trial.trouble, ...violations] };
  } catch (error) {
    if (error instanceof Skipped && !error.isFailure)
      return { scenario, notes: [`SKIPPED: ${error.message}`], wrong: [], isSkipped: true };
    return { scenario, notes, wrong: [...trial.trouble, stackOf(error)] };
  }
}

function stackOf(error: unknown): string {
  return error instanceof Error ? (error.stack ?? error.message) : String(error);
}

function verdict({ wrong, isSkipped }: Outcome): string {
  if (isSkipped) return 'SKIPPED';
  return wrong.length === 0 ? 'ok' : 'FAILED';
}

function report(outcomes: readonly Outcome[]): void {
  for (const columns of new Set(outcomes.flatMap(({ columns }) => (columns ? [columns] : [])))) {
    const played = outcomes.filter((outcome) => outcome.columns === columns);
    const results = played.flatMap(({ result }) => (result ? [result] : []));
    console.log(`\n${table(columns, results)}`);
  }
  console.log();
  for (const { scenario, notes } of outcomes)
    for (const note of notes) console.log(`${scenario.name}: ${note}`);
  for (const { scenario, wrong } of outcomes)
    for (const word of wrong) console.log(`${scenario.name}: ${word}`);
}
