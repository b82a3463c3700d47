// npm run bench -- storage: what each engine takes for an add beside a bare write, for cycles of add, claim and finish in one,
// two and four processes, for a claim while many logouts wait, for a long list of erasures, and what the event loop notices.
import type { ChildProcess } from 'node:child_process';
import type { EngineName } from '../test-crash/engines.js';
import type { BenchOptions } from './bench-options.js';
import { inTurn, median, spread } from './measuring.js';
import { ask, kill, start, storagePlaces } from './processes.js';
import type { Tasks } from './storage-process.js';

const WRITES = 300;
const PROCESSES = [1, 2, 4];
const CYCLES_MS = 1_000;
const WAITING = 2_000;
const LOOP = { perSecond: 200, ms: 5_000 };
const LIST_GOALS_MS = { progress: 5, pause: 20, resume: 20 };
const LOOP_GOAL_MS = 1;

/** An add ÷ a bare write, one and 16 at a time; four processes ÷ one; milliseconds of a claim. */
interface Goals {
  readonly adds?: readonly [one: number, sixteen: number];
  readonly four?: number;
  readonly claimMs?: number;
}
const goals: Partial<Record<EngineName, Goals>> = {
  sqlite: { claimMs: 5 },
  postgres: { adds: [1.9, 1.4], four: 1.5, claimMs: 10 },
  mariadb: { adds: [1.9, 1.8] },
};

export default async function storage(options: BenchOptions): Promise<void> {
  const { pairs, pending, size, engines } = options;
  const places = await storagePlaces();
  const rounds = pairs * options.rounds;
  console.log(`${rounds} rounds, in turn`);
  for (const engine of engines) {
    console.log(`\n${engine}`);
    const begin = async (application: string): Promise<ChildProcess> => {
      const path = engine === 'sqlite' ? `${places.sqlite}.${application}` : places[engine];
      return (await start('./storage-process.ts', [engine, path, application])).child;
    };
    if (engine !== 'memory') {
      await adds(await begin('adds'), rounds, goals[engine]?.adds);
      await cycles(() => begin('cycles'), rounds, goals[engine]?.four);
    }
    await claims(await begin('claims'), rounds, pending, goals[engine]?.claimMs);
    await list(await begin('list'), size);
  }
  if (engines.includes('sqlite')) await loop(places.sqlite, rounds);
  process.exit();
}

async function call<Name extends keyof Tasks>(
  child: ChildProcess,
  task: Name,
  argument?: Parameters<Tasks[Name]>[0],
): Promise<Awaited<ReturnType<Tasks[Name]>>> {
  return (await ask(child, { task, argument: argument ?? {} })) as Awaited<ReturnType<Tasks[Name]>>;
}

function line(name: string, text: string, verdict = ''): void {
  console.log(`  ${name.padEnd(38)} ${text}${verdict}`);
}

const atMost = (value: number, goal?: number): string =>
  goal === undefined ? '' : `   ${value <= goal ? 'PASS' : 'over'}, ≤ ${goal}`;

/** Ratios of the rounds after the first one, which is for warming up. */
const ratiosOf = (values: readonly number[], others: readonly number[]): number[] =>
  values.map((value, round) => value / (others[round] ?? NaN)).slice(1);

async function adds(child: ChildProcess, rounds: number, most?: Goals['adds']): Promise<void> {
  for (const [n, atOnce] of [1, 16].entries()) {
    const measured = { bare: [] as number[], add: [] as number[] };
    const subjects = (['bare', 'add'] as const).map((what) => async () => {
      const ms = await call(child, 'write', { what, count: WRITES, atOnce });
      measured[what].push(ms);
      return ms;
    });
    const [bare = NaN, add = NaN] = await inTurn(subjects, rounds, false);
    const ratios = ratiosOf(measured.add, measured.bare);
    line(`an add ÷ a bare write, ${atOnce} at a time`, spread(ratios), atMost(median(ratios), most?.[n]));
    line('  in milliseconds', `${add.toFixed(3)} and ${bare.toFixed(3)}`);
  }
  await kill(child);
}

async function cycles(begin: () => Promise<ChildProcess>, rounds: number, least?: number): Promise<void> {
  const children: ChildProcess[] = [];
  while (children.length < Math.max(...PROCESSES)) children.push(await begin());
  for (const child of children.slice(0, 1)) await call(child, 'fill', { count: WAITING });
  const claimed = new Set<string>();
  const rates = PROCESSES.map((): number[] => []);
  const subjects = PROCESSES.map((count, index) => async () => {
    const some = children.slice(0, count);
    const answers = await Promise.all(some.map((child) => call(child, 'cycle', { ms: CYCLES_MS })));
    for (const id of answers.flatMap(({ ids }) => ids))
      if (claimed.size === claimed.add(id).size) throw new Error(`${id} was claimed twice`);
    const rate = answers.reduce((sum, answer) => sum + answer.rate, 0);
    rates[index]?.push(rate);
    return rate;
  });
  const medians = await inTurn(subjects, rounds, false);
  for (const [index, count] of PROCESSES.entries()) {
    const ratios = ratiosOf(rates[index] ?? [], rates[0] ?? []);
    const verdict = `   ${median(ratios) >= (least ?? 0) ? 'PASS' : 'falls short'}, ≥ ${least ?? ''}`;
    const text = `${Math.round(medians[index] ?? NaN)} cycles/s, ÷ one process ${spread(ratios)}`;
    line(`${count} processes`, text, least !== undefined && count === 4 ? verdict : '');
  }
  for (const child of children) await kill(child);
}

async function claims(child: ChildProcess, rounds: number, pending: number, most?: number): Promise<void> {
  let waiting = 0;
  for (const count of new Set([1_000, pending])) {
    await call(child, 'fill', { count: count - waiting });
    waiting = count;
    const times: number[] = [];
    for (let round = 0; round < 3 * rounds + 3; round += 1) times.push(await call(child, 'claim'));
    const ms = median(times.slice(3));
    line(`a claim, ${waiting} waiting`, `${spread(times.slice(3))} ms`, atMost(ms, most));
  }
  await kill(child);
}

async function list(child: ChildProcess, size: number): Promise<void> {
  const measured = await call(child, 'list', { count: size });
  line(`a list of ${size} erasures`, `${Math.round(measured.perSecond)} users/s appended`);
  for (const name of ['progress', 'pause', 'resume'] as const) {
    const ms = measured[name] ?? NaN;
    line(`  ${name}`, `${ms.toFixed(2)} ms`, atMost(ms, LIST_GOALS_MS[name]));
  }
  const { steps, stepMs, addMs } = await call(child, 'cancel');
  const beside = `an add beside them took at most ${addMs.toFixed(0)} ms`;
  line('  cancel', `${steps} steps of at most ${stepMs.toFixed(0)} ms; ${beside}`);
  await kill(child);
}

async function loop(place: string, rounds: number): Promise<void> {
  const measured = { sqlite: [] as number[], memory: [] as number[] };
  const subjects: (() => Promise<number>)[] = [];
  for (const engine of ['sqlite', 'memory'] as const) {
    const { child } = await start('./storage-process.ts', [engine, place, 'loop']);
    subjects.push(async () => {
      const ms = await call(child, 'loop', LOOP);
      measured[engine].push(ms);
      return ms;
    });
  }
  const [sqlite = NaN, memory = NaN] = await inTurn(subjects, rounds, false);
  const more = measured.sqlite.map((ms, round) => ms - (measured.memory[round] ?? NaN)).slice(1);
  console.log(`\nthe event loop while ${LOOP.perSecond} logouts a second are added and finished`);
  line('p99 with SQLite, more than memory', `${spread(more)} ms`, atMost(median(more), LOOP_GOAL_MS));
  line('  in milliseconds', `${sqlite.toFixed(2)} and ${memory.toFixed(2)}`);
}
