import type { OutboxContext, ParkedJob, WaitingJob } from '../outbox.js';
import { openEntry } from '../sealed-entry.js';
import type { StoredEntry } from './stored-entry.js';

/** @returns none for one that is parked no more */
export function parkedJob(stored: StoredEntry | undefined, context: OutboxContext): readonly ParkedJob[] {
  if (!stored?.parked) return [];
  const { entry, attempts, rejections, cause, parked } = stored;
  return [{ entry: openEntry(entry, context), attempts, rejections, cause, ...parked }];
}

/** @param ahead how far the outbox's clock is ahead of the one that the reader knows */
export function waitingJob(
  stored: StoredEntry | undefined,
  ahead: number,
  context: OutboxContext,
): readonly WaitingJob[] {
  if (!stored || stored.state === 'unreadable') return [];
  const { entry, attempts, rejections, cause, state, at, parked } = stored;
  const job = { entry: openEntry(entry, context), attempts, rejections, cause, state };
  return [parked ? { ...job, cure: parked.cure } : { ...job, dueAt: at - ahead }];
}
