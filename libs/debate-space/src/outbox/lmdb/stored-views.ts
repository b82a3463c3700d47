import type { ParkedJob, WaitingJob } from '../outbox.js';
import type { StoredEntry } from './stored-entry.js';

/** @returns none for one that is parked no more */
export function parkedJob(stored: StoredEntry | undefined): readonly ParkedJob[] {
  if (!stored?.parked) return [];
  const { entry, attempts, rejections, cause, parked } = stored;
  return [{ entry, attempts, rejections, cause, ...parked }];
}

/** @param ahead how far the outbox's clock is ahead of the one that the reader knows */
export function waitingJob(stored: StoredEntry | undefined, ahead: number): readonly WaitingJob[] {
  if (!stored || stored.state === 'unreadable') return [];
  const { entry, attempts, rejections, cause, state, at, parked } = stored;
  const job = { entry, attempts, rejections, cause, state };
  return [parked ? { ...job, cure: parked.cure } : { ...job, dueAt: at - ahead }];
}
