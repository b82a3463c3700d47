// npm run bench -- scale: what a million costs. An append and an opening with so many logouts waiting, so many users erased
// in one list, several processes on one queue; and, with --simulate, erasures at the usual limit without a wall clock.
import { fork } from 'node:child_process';
import { once } from 'node:events';
import { reportAppends, reportRecovery } from './outbox.mjs';
import { reportCompetition } from './outbox-competition.mjs';
import { ask, kill, start, storagePlaces } from './outbox-places.mjs';
import { simulate } from './scale-simulation.mjs';

const WARMING_UP = 2_000;
const GOALS = { appended: { memory: 1.5, lmdb: 2, redis: 1.5, postgres: 1.5 }, openMs: 1_000, heapMb: 50 };
/** Of appends in a round: one after another, and with 16 under way. */
const APPENDS = {
  memory: { 1: 20_000, 16: 20_000 },
  lmdb: { 1: 100, 16: 800 },
  redis: { 1: 200, 16: 800 },
  postgres: { 1: 100, 16: 400 },
};
const SHARED = ['redis', 'postgres'];
const SIMULATED = 100_000;

export default async function scale({ pairs, rounds: roundsOfPair, size, parts, engines, isSimulated }) {
  if (isSimulated) {
    await simulate(Math.min(size, SIMULATED));
    process.exit();
  }
  const rounds = pairs * roundsOfPair;
  const { places, versions } = await storagePlaces();
  console.log(`${versions}\n${size} at a time; ${rounds} rounds, in turn`);
  const used = engines.filter((engine) => places[engine] !== undefined);
  if (parts.includes('waiting'))
    for (const engine of used) await waiting(engine, places[engine], size, rounds);
  if (parts.includes('users')) await users(used, places, size);
  if (parts.includes('processes'))
    for (const engine of used.filter((name) => SHARED.includes(name)))
      for (const pending of [0, 2_000]) {
        console.log(`\n${engine}`);
        await reportCompetition(engine, places[engine], rounds, pending);
      }
  process.exit();
}

/** An append with so many waiting ÷ one with none, and the first claim after opening. */
async function waiting(engine, place, size, rounds) {
  console.log(`\n${engine}`);
  const boxes = [0, size].map((count) => ({ size: count, args: [engine, place, `scale-${count}`] }));
  for (const box of boxes) {
    box.process = await start('./outbox-process.mjs', box.args);
    await ask(box.process.child, { task: 'copy', count: box.size });
    await ask(box.process.child, { task: 'append', count: WARMING_UP, atOnce: 16 });
  }
  for (const [atOnce, count] of Object.entries(APPENDS[engine]))
    await reportAppends(boxes, Number(atOnce), count, rounds, GOALS.appended[engine]);
  for (const box of boxes) await kill(box.process.child);
  if (engine !== 'memory') await reportRecovery(boxes.slice(1), rounds, GOALS.openMs);
}

/** So many users in one list, without a limit. */
async function users(engines, places, size) {
  console.log(`\n${size} users, requested in one list and carried out without a rate limit`);
  for (const engine of engines) {
    const service = await start('./scale-service.mjs');
    const args = [engine, places[engine], `scale-users`, service.url, String(size)];
    const execArgv = ['--expose-gc', '--max-old-space-size=12000'];
    const child = fork(new URL('./scale-erasures.mjs', import.meta.url), args, { execArgv });
    const ended = once(child, 'exit').then(([code]) => {
      throw new Error(`the app on ${engine} ended with ${code}`);
    });
    const [{ requestedPerSecond, donePerSecond, heapMb }] = await Promise.race([
      once(child, 'message'),
      ended,
    ]);
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
