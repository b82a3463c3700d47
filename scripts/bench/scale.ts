// npm run bench -- scale: what a million costs. An append and an opening with so many logouts waiting, so many users erased
// in one list, several processes on one queue; and, with --simulate, erasures at the usual limit without a wall clock.
import { fork } from 'node:child_process';
import { once } from 'node:events';
import type { EngineName } from '../test-crash/engines.js';
import type { BenchOptions } from './bench-options.js';
import { reportAppends, reportRecovery, type OpenBox } from './outbox.js';
import { writeFigure, type Line } from './figure.js';
import { COUNTS, reportCompetition } from './outbox-competition.js';
import { ask, kill, start, storagePlaces } from './outbox-places.js';
import type { ErasedUsers } from './scale-erasures.js';
import { simulate } from './scale-simulation.js';

const WARMING_UP = 2_000;
const TENTHS = [0.001, 0.01, 0.1, 1];
const GOALS = { appended: { memory: 1.5, lmdb: 2, redis: 1.5, postgres: 1.5 }, openMs: 1_000, heapMb: 50 };
/** Of appends in a round: one after another, and with 16 under way. */
const APPENDS = {
  memory: { 1: 20_000, 16: 20_000 },
  lmdb: { 1: 100, 16: 800 },
  redis: { 1: 200, 16: 800 },
  postgres: { 1: 100, 16: 400 },
};
const SHARED: readonly EngineName[] = ['redis', 'postgres'];
const SIMULATED = 100_000;

interface UsedEngine {
  readonly engine: EngineName;
  readonly place: string;
}

export default async function scale(options: BenchOptions): Promise<void> {
  const { pairs, rounds: roundsOfPair, size, parts, engines, isSimulated, writesFigures } = options;
  if (isSimulated) {
    await simulate(Math.min(size, SIMULATED));
    process.exit();
  }
  const rounds = pairs * roundsOfPair;
  const { places, versions } = await storagePlaces();
  console.log(`${versions}\n${size} at a time; ${rounds} rounds, in turn`);
  const used = engines.flatMap((engine) => {
    const place = places[engine];
    return place === undefined ? [] : [{ engine, place }];
  });
  const [appends, cycles]: [Line[], Line[]] = [[], []];
  const sizes = [0, ...TENTHS.map((share) => Math.round(size * share))];
  if (parts.includes('waiting'))
    for (const { engine, place } of used)
      appends.push({ name: engine, values: await waiting(engine, place, sizes, rounds) });
  if (parts.includes('users')) await users(used, size);
  if (parts.includes('processes'))
    for (const { engine, place } of used.filter((each) => SHARED.includes(each.engine)))
      for (const pending of [0, 2_000]) {
        console.log(`\n${engine}`);
        const values = await reportCompetition(engine, place, rounds, pending);
        cycles.push({ name: `${engine}, ${pending} waiting`, values });
      }
  if (writesFigures && appends.length > 0)
    writeFigure('append-by-waiting.svg', {
      title: 'One append, p50, by how many logouts wait',
      unit: 'ms',
      isLogarithmic: true,
      points: sizes.map((count) => count.toLocaleString('en-US')),
      lines: appends,
    });
  if (writesFigures && cycles.length > 0)
    writeFigure('throughput-by-processes.svg', {
      title: 'Logouts a second, by processes that share a storage',
      unit: 'logouts/s',
      isLogarithmic: false,
      points: COUNTS.map(String),
      lines: cycles,
    });
  process.exit();
}

/** An append with so many waiting ÷ one with none, and the first claim after opening. @returns p50 of an append for each size */
async function waiting(
  engine: EngineName,
  place: string,
  sizes: readonly number[],
  rounds: number,
): Promise<readonly number[]> {
  console.log(`\n${engine}`);
  const boxes: OpenBox[] = [];
  for (const size of sizes) {
    const args = [engine, place, `scale-${size}`];
    const { child } = await start('./outbox-process.ts', args);
    await ask(child, { task: 'copy', count: size });
    await ask(child, { task: 'append', count: WARMING_UP, atOnce: 16 });
    boxes.push({ size, args, child });
  }
  const p50s: (readonly number[])[] = [];
  for (const [atOnce, count] of Object.entries(APPENDS[engine]))
    p50s.push(await reportAppends(boxes, Number(atOnce), count, rounds, GOALS.appended[engine]));
  for (const { child } of boxes) await kill(child);
  if (engine !== 'memory') await reportRecovery(boxes.slice(1), rounds, GOALS.openMs);
  return p50s[0] ?? [];
}

/** So many users in one list, without a limit. */
async function users(used: readonly UsedEngine[], size: number): Promise<void> {
  console.log(`\n${size} users, requested in one list and carried out without a rate limit`);
  for (const { engine, place } of used) {
    const service = await start('./scale-service.ts');
    const args = [engine, place, `scale-users`, service.url, String(size)];
    const execArgv = [...process.execArgv, '--expose-gc', '--max-old-space-size=12000'];
    const child = fork(new URL('./scale-erasures.ts', import.meta.url), args, { execArgv });
    const ended = once(child, 'exit').then(([code]: unknown[]) => {
      throw new Error(`the app on ${engine} ended with ${String(code)}`);
    });
    const [erased] = (await Promise.race([once(child, 'message'), ended])) as [ErasedUsers];
    const { requestedPerSecond, donePerSecond, heapMb } = erased;
    await ended.catch(() => undefined);
    await kill(service.child);
    const verdict = heapMb <= GOALS.heapMb ? 'PASS' : 'over';
    const judged = engine === 'memory' ? 'the records themselves' : `${verdict}, ≤ ${GOALS.heapMb}`;
    console.log(
      `  ${engine.padEnd(10)} ${Math.round(requestedPerSecond)} users/s requested, ` +
        `${Math.round(donePerSecond)} users/s erased; heap ${heapMb.toFixed(1)} MB (${judged})`,
    );
  }
}
