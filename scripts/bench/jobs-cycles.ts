// add → claim → finish, in one of several processes that share a queue.
import { performance } from 'node:perf_hooks';
import { setTimeout as sleep } from 'node:timers/promises';
import type { DebateSpaceStorage } from 'nestjs-debate-space';
import { claimedIn } from '../test-crash/logout-commits.js';
import { wrapStorage, type Commit } from '../test-crash/wrapped-storage.js';
import type { LogoutQueue } from './built-queue.js';
import { append, inParallel, newEntry } from './jobs-entries.js';

/** Commits that claim, and those of them that another process preceded. */
export interface Claims {
  claims: number;
  conflicts: number;
}

/** What a process has done in the measured time. `size`: of `ids`, the logouts that it was given. */
export interface Cycles extends Readonly<Claims> {
  /** Logouts a second. */
  readonly rate: number;
  readonly size: number;
}

/** As the runner claims them. */
const BATCH = 32;
const AT_A_TIME = 16;

/**
 * Counts what becomes of the claims.
 * @returns the storage, and the counts, which follow
 */
export function countClaims(storage: DebateSpaceStorage): {
  readonly storage: DebateSpaceStorage;
  readonly counted: Claims;
} {
  const counted = { claims: 0, conflicts: 0 };
  const commit: Commit = (checks, changes) => {
    const isMade = storage.commit(checks, changes);
    if (claimedIn(checks, storage.now()).length === 0) return isMade;
    counted.claims += 1;
    const note = (made: boolean): boolean => {
      if (!made) counted.conflicts += 1;
      return made;
    };
    return isMade instanceof Promise ? isMade.then(note) : note(isMade);
  };
  return { storage: wrapStorage(storage, { commit }), counted };
}

/**
 * Appends batches and delivers batches, at the same time, for `ms`. Then, not measured, delivers until it has taken as many
 * as it has added: what waited before waits afterwards.
 * @returns the ids that this process was given, and what it did in the measured time
 */
export async function cycle(
  queue: LogoutQueue,
  counted: Readonly<Claims>,
  ms: number,
): Promise<Cycles & { readonly ids: string[] }> {
  const begun = performance.now();
  const before = { ...counted };
  const ids: string[] = [];
  let appended = 0;
  const deliver = async (): Promise<void> => {
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
  const claims = counted.claims - before.claims;
  const conflicts = counted.conflicts - before.conflicts;
  const measured = { rate, size: ids.length, claims, conflicts };
  while (ids.length < appended) {
    await deliver();
    await sleep(1); // what others have added they may take first
  }
  return { ids, ...measured };
}
