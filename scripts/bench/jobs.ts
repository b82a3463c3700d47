// npm run bench -- jobs: whether an append gets slower the more is pending, how long a process that starts after a crash
// needs to its first entry – one process for each size, in turn –, and what several processes do to each other.
import type { EngineName } from '../test-crash/engines.js';
import type { BenchOptions } from './bench-options.js';
import { inTurn, median, quantile, spread } from './measuring.js';
import { reportCompetition } from './jobs-competition.js';
import type { Appended, Claimed } from './jobs-process.js';
import { ask, kill, start, storagePlaces, type Started } from './jobs-places.js';

const SOME = 10_000;
const WARMING_UP = 5_000;
/** What waits in the queue that several processes share: nothing, when every claim meets the others, and a backlog. */
const SHARED = [0, 2_000];
/** In a round: so many appends one after another, and so many with 16 under way. */
const engines: readonly Engine[] = [
  { name: 'memory', counts: { 1: 20_000, 16: 20_000 }, most: 1.5, outlives: false },
  { name: 'lmdb', counts: { 1: 100, 16: 800 }, most: 2, outlives: true },
  { name: 'redis', counts: { 1: 200, 16: 800 }, most: 1.5, outlives: true },
  { name: 'postgres', counts: { 1: 100, 16: 400 }, most: 1.5, outlives: true },
];
const MOST_TO_OPEN_MS = 1_000;

interface Engine {
  readonly name: EngineName;
  readonly counts: Readonly<Record<number, number>>;
  /** How many times as long as in an empty queue an append may take. */
  readonly most: number;
  /** Whether what it keeps outlives the process. */
  readonly outlives: boolean;
}

/** A queue in which so many logouts wait. */
interface Box {
  readonly size: number;
  readonly args: readonly string[];
}

/** And the process that has it. */
type OpenBox = Started<Box>;

export default async function jobs({
  pairs,
  rounds: roundsOfPair,
  pending,
  engines: chosen,
}: BenchOptions): Promise<void> {
  const rounds = pairs * roundsOfPair;
  const { places, versions } = await storagePlaces();
  console.log(`${versions}\n${rounds} rounds, in turn`);
  for (const { name, counts, most, outlives } of engines.filter((each) => chosen.includes(each.name))) {
    const place = places[name];
    if (place === undefined) continue;
    const sizes = new Set([0, Math.min(SOME, pending), pending]);
    const boxes: OpenBox[] = [];
    console.log(`\n${name}`);
    for (const size of sizes) {
      const args = [name, place, `pending-${size}`];
      const { child } = await start('./jobs-process.ts', args);
      await ask(child, { task: 'fill', count: size });
      await ask(child, { task: 'append', count: WARMING_UP, atOnce: 16 });
      boxes.push({ size, args, child });
    }
    for (const [atOnce, count] of Object.entries(counts)) {
      await reportAppends(boxes, Number(atOnce), count, rounds, most);
    }
    for (const { child } of boxes) await kill(child);
    if (!outlives) continue;
    await reportRecovery(boxes.slice(1), rounds);
    for (const waiting of SHARED) await reportCompetition(name, place, rounds, waiting);
  }
  process.exit();
}

/** @param most a goal for the ratio */
async function reportAppends(
  boxes: readonly OpenBox[],
  atOnce: number,
  count: number,
  rounds: number,
  most: number,
): Promise<void> {
  console.log(`  append, ${atOnce} at a time`);
  const results = boxes.map(({ size, child }) => ({ size, child, appended: [] as Appended[] }));
  const subjects = results.map(({ child, appended }) => async () => {
    const result = (await ask(child, { task: 'append', count, atOnce })) as Appended;
    appended.push(result);
    return result.eachMs;
  });
  await inTurn(subjects, rounds, false);
  for (const { appended } of results) appended.shift(); // the first round is for warming up
  const empty = results[0]?.appended ?? [];
  for (const { size, appended } of results.slice(1)) {
    const ratios = appended.map(({ eachMs }, round) => eachMs / (empty[round]?.eachMs ?? NaN));
    const verdict = `   ${median(ratios) <= most ? 'PASS' : 'over'}, ≤ ${most}`;
    console.log(`    ${`${size} pending ÷ empty`.padEnd(26)} ${spread(ratios)}${verdict}`);
  }
  for (const { size, appended } of results) {
    const times = appended.flatMap((each) => each.times);
    const [p50, p99] = [quantile(times, 0.5), quantile(times, 0.99)];
    const rate = Math.round(1000 / median(appended.map(({ eachMs }) => eachMs)));
    console.log(
      `    ${`${size} pending`.padEnd(26)} p50 ${p50.toFixed(3)} ms, p99 ${p99.toFixed(3)} ms; ${rate} appends/s`,
    );
  }
}

/** In new processes, after those that had the queue have been killed. */
async function reportRecovery(boxes: readonly Box[], rounds: number): Promise<void> {
  console.log('  from opening to the first claimed entry, after kill -9 of the process before, ms');
  const results = boxes.map(({ size, args }) => ({ size, args, recoveries: [] as number[] }));
  const subjects = results.map(({ args, recoveries }) => async () => {
    const { child } = await start('./jobs-process.ts', args);
    const { claimed, recoveryMs } = (await ask(child, { task: 'claim' })) as Claimed;
    await kill(child);
    if (claimed !== 1) throw new Error('nothing was there to claim');
    recoveries.push(recoveryMs);
    return recoveryMs;
  });
  await inTurn(subjects, rounds, false);
  for (const { size, recoveries } of results) {
    const measured = recoveries.slice(1);
    const verdict = `   ${median(measured) <= MOST_TO_OPEN_MS ? 'PASS' : 'over'}, ≤ ${MOST_TO_OPEN_MS}`;
    console.log(`    ${`${size} pending`.padEnd(26)} ${spread(measured)}${verdict}`);
  }
}
