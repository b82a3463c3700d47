// hold → release → claim → finish, in one of several processes that share a queue.
import { performance } from 'node:perf_hooks';
import { setTimeout as sleep } from 'node:timers/promises';
import { claimedIn } from '../test-crash/logout-commits.mjs';
import { wrapStorage } from '../test-crash/wrapped-storage.mjs';
import { append, inParallel, newEntry } from './outbox-entries.mjs';

/** As the runner claims them. */
const BATCH = 32;
const AT_A_TIME = 16;

/**
 * Counts what becomes of the claims.
 * @returns the storage, and `claims` and `conflicts`: commits that claim, and those of them that another process preceded
 */
export function countClaims(storage) {
  const counted = { claims: 0, conflicts: 0 };
  const commit = (checks, changes) => {
    const isMade = storage.commit(checks, changes);
    if (claimedIn(checks, storage.now()).length === 0) return isMade;
    counted.claims += 1;
    const note = (made) => {
      if (!made) counted.conflicts += 1;
      return made;
    };
    return isMade instanceof Promise ? isMade.then(note) : note(isMade);
  };
  counted.storage = wrapStorage(storage, { commit });
  return counted;
}

/**
 * Appends batches and delivers batches, at the same time, for `ms`. Then, not measured, delivers until it has taken as many
 * as it has added: what waited before waits afterwards.
 * @returns the ids that this process was given, and of the measured time: how many a second, its claims and conflicts
 */
export async function cycle(queue, counted, ms) {
  const begun = performance.now();
  const before = { ...counted };
  const ids = [];
  let appended = 0;
  const deliver = async () => {
    const jobs = await queue.claim(Math.min(BATCH, appended - ids.length));
    ids.push(...jobs.map(({ entry }) => entry.id));
    await inParallel(jobs, AT_A_TIME, ({ entry }) => queue.finish(entry.id, 1));
  };
  while (performance.now() - begun < ms) {
    const entries = Array.from({ length: BATCH }, newEntry);
    appended += BATCH;
    await Promise.all([append(queue, entries, AT_A_TIME), deliver()]);
  }
  const rate = (1000 * ids.length) / (performance.now() - begun);
  const [claims, conflicts] = ['claims', 'conflicts'].map((name) => counted[name] - before[name]);
  const measured = { rate, size: ids.length, claims, conflicts };
  while (ids.length < appended) {
    await deliver();
    await sleep(1); // what others have added they may take first
  }
  return { ids, ...measured };
}
