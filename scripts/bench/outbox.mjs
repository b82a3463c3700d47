// npm run bench -- outbox: whether an append gets slower the more is pending, how long a process that starts after a crash
// needs to its first entry – one process for each size, in turn –, and what several processes do to each other.
import { inTurn, median, quantile, spread } from './measuring.mjs';
import { reportCompetition } from './outbox-competition.mjs';
import { ask, kill, start, storagePlaces } from './outbox-places.mjs';

const SOME = 10_000;
const WARMING_UP = 5_000;
/** What waits in the queue that several processes share: nothing, when every claim meets the others, and a backlog. */
const SHARED = [0, 2_000];
/** In a round: so many appends one after another, and so many with 16 under way. */
const engines = {
  memory: { counts: { 1: 20_000, 16: 20_000 }, share: 1, outlives: false },
  lmdb: { counts: { 1: 100, 16: 800 }, share: 1, outlives: true },
  redis: { counts: { 1: 200, 16: 800 }, share: 0.1, outlives: true },
  postgres: { counts: { 1: 100, 16: 400 }, share: 0.1, outlives: true },
};

export default async function outbox({ pairs, rounds: roundsOfPair, pending }) {
  const rounds = pairs * roundsOfPair;
  const { places, versions } = await storagePlaces();
  console.log(`${versions}\n${rounds} rounds, in turn; an append is hold and release, both awaited`);
  for (const [name, engine] of Object.entries(engines)) {
    if (places[name] === undefined) continue;
    // On a server a million would only take minutes to be put there.
    const sizes = new Set([0, Math.min(SOME, pending), Math.round(pending * engine.share)]);
    const boxes = [...sizes].map((size) => ({ size, args: [name, places[name], `pending-${size}`] }));
    console.log(`\n${name}`);
    for (const box of boxes) {
      box.process = await start('./outbox-process.mjs', box.args);
      await ask(box.process.child, { task: 'append', count: WARMING_UP, atOnce: 16 });
      const filled = await ask(box.process.child, { task: 'fill', count: box.size });
      if (filled.pending !== box.size) throw new Error(`${filled.pending} are pending, not ${box.size}`);
    }
    for (const [atOnce, count] of Object.entries(engine.counts)) {
      await reportAppends(boxes, Number(atOnce), count, rounds);
    }
    for (const box of boxes) await kill(box.process.child);
    if (!engine.outlives) continue;
    await reportRecovery(boxes.slice(1), rounds);
    for (const waiting of SHARED) await reportCompetition(name, places[name], rounds, waiting);
  }
  process.exit();
}

/** @param most a goal for the ratio */
export async function reportAppends(boxes, atOnce, count, rounds, most) {
  console.log(`  append, ${atOnce} at a time`);
  const results = boxes.map(() => []);
  const subjects = boxes.map(({ process: { child } }, index) => async () => {
    const result = await ask(child, { task: 'append', count, atOnce });
    results[index].push(result);
    return result.eachMs;
  });
  await inTurn(subjects, rounds, false);
  const measured = results.map((each) => each.slice(1)); // the first round is for warming up
  for (const [index, { size }] of boxes.entries()) {
    if (index === 0) continue;
    const ratios = measured[index].map(({ eachMs }, round) => eachMs / measured[0][round].eachMs);
    const verdict = most === undefined ? '' : `   ${median(ratios) <= most ? 'PASS' : 'over'}, ≤ ${most}`;
    console.log(`    ${`${size} pending ÷ empty`.padEnd(26)} ${spread(ratios)}${verdict}`);
  }
  for (const [index, { size }] of boxes.entries()) {
    const times = measured[index].flatMap((each) => each.times);
    const [p50, p99] = [0.5, 0.99].map((share) => quantile(times, share).toFixed(3));
    const rate = Math.round(1000 / median(measured[index].map(({ eachMs }) => eachMs)));
    console.log(`    ${`${size} pending`.padEnd(26)} p50 ${p50} ms, p99 ${p99} ms; ${rate} appends/s`);
  }
}

/** In new processes, after those that had the outbox have been killed. @param mostMs a goal */
export async function reportRecovery(boxes, rounds, mostMs) {
  console.log('  from opening to the first claimed entry, after kill -9 of the process before, ms');
  const subjects = boxes.map((box) => async () => {
    const { child } = await start('./outbox-process.mjs', box.args);
    const { claimed, recoveryMs } = await ask(child, { task: 'claim' });
    await kill(child);
    if (claimed !== 1) throw new Error('nothing was there to claim');
    (box.recoveries ??= []).push(recoveryMs);
    return recoveryMs;
  });
  await inTurn(subjects, rounds, false);
  for (const { size, recoveries } of boxes) {
    const measured = recoveries.slice(1);
    const verdict =
      mostMs === undefined ? '' : `   ${median(measured) <= mostMs ? 'PASS' : 'over'}, ≤ ${mostMs}`;
    console.log(`    ${`${size} pending`.padEnd(26)} ${spread(measured)}${verdict}`);
  }
}
