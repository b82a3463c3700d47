import type { DebateSpaceEvent } from '../events.js';
import type { Job, Reference } from '../storage/storage.js';
import type { ErasureState, ErasureStatus, RetryingErasure } from './erasure.js';

/** A reference as the storage has it, with what its repository knows of it. */
export type KnownReference = Reference & {
  readonly parked: number;
  /** Whether its mark fits. */
  readonly isGenuine: boolean;
  readonly isOverdue: boolean;
};

/** How a reference stands, as hosts see it. */
export function statusOf(found: KnownReference): ErasureStatus {
  const { reference, mode, requestedBy, complete, requestedAt, finishedAt, total, counts } = found;
  const open = openOf(found);
  const failed = Math.min(found.parked, open);
  return {
    reference,
    mode,
    ...(requestedBy !== undefined && { requestedBy }),
    state: stateOf(found, failed > 0),
    complete,
    requestedAt: new Date(requestedAt),
    ...(finishedAt !== undefined && { finishedAt: new Date(finishedAt) }),
    total,
    done: counts.erased,
    notFound: counts['not-found'],
    vetoed: counts.vetoed,
    canceled: counts.canceled,
    failed,
    waiting: open - failed,
  };
}

function stateOf(found: KnownReference, hasFailed: boolean): ErasureState {
  if (!found.isGenuine) return 'unverified';
  if (found.finishedAt !== undefined)
    return found.canceled && found.counts.canceled > 0 ? 'canceled' : 'done';
  if (found.paused) return 'paused';
  if (hasFailed || found.isOverdue) return 'overdue';
  return found.started ? 'running' : 'waiting';
}

/** The failure of the job that waits for its next attempt. */
export function retryingOf({ cause, dueAt = 0 }: Job): RetryingErasure | undefined {
  if (cause === undefined) return undefined;
  return dueAt > Date.now() ? { cause, nextAttemptAt: new Date(dueAt) } : { cause };
}

export function finishedEvent(found: Reference): DebateSpaceEvent {
  const { reference, mode, total, counts } = found;
  const { erased: done, 'not-found': notFound, vetoed, canceled } = counts;
  return { type: 'erasure-finished', reference, mode, total, done, notFound, vetoed, canceled };
}

/** How many users are not finished: they wait, or are parked. */
export function openOf({ total, counts }: Reference): number {
  return total - counts.erased - counts['not-found'] - counts.vetoed - counts.canceled;
}
