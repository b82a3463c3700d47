import type { ErasureMode, ErasureState, ErasureStatus } from './erasure.js';
import type { StoredBatch } from './stored-erasure.js';

/** What a request says beside the uids. */
export interface BatchRequest {
  readonly reference: string;
  readonly mode: ErasureMode;
  readonly requestedBy?: string;
}

/** @param now by the storage's clock */
export function newBatch({ reference, mode, requestedBy }: BatchRequest, now: number): StoredBatch {
  return {
    reference,
    mode,
    requestedBy,
    revision: 0,
    askedAt: Date.now(),
    since: now,
    complete: false,
    paused: false,
    cancelling: false,
    started: false,
    total: 0,
    done: 0,
    notFound: 0,
    vetoed: 0,
    cancelled: 0,
    failed: 0,
  };
}

/** How many are neither finished nor parked. */
export function waitingOf({ total, done, notFound, vetoed, cancelled, failed }: StoredBatch): number {
  return total - done - notFound - vetoed - cancelled - failed;
}

/** Whether something may be carried out. */
export function isRunning(batch: StoredBatch): boolean {
  return (batch.complete || batch.cancelling) && !batch.paused && waitingOf(batch) > 0;
}

/**
 * Notes that a batch is finished, or that it is not any more.
 * @returns whether it is finished by this change
 */
export function settleEnd(batch: StoredBatch, now: number): boolean {
  const isFinished = (batch.complete || batch.cancelling) && waitingOf(batch) === 0 && batch.failed === 0;
  const isChange = isFinished !== (batch.finishedSince !== undefined);
  if (isChange) {
    batch.finishedAt = isFinished ? Date.now() : undefined;
    batch.finishedSince = isFinished ? now : undefined;
  }
  if (isFinished) batch.overdueAt = undefined;
  if (!isRunning(batch)) batch.dueAt = undefined;
  return isFinished && isChange;
}

/** @param overdueAfterMs the age at which a reference that is not finished is overdue */
export function statusOf(batch: StoredBatch, overdueAfterMs: number, now: number): ErasureStatus {
  const { reference, mode, requestedBy, complete, total, done, notFound, vetoed, cancelled, failed } = batch;
  return {
    ...{ reference, mode, ...(requestedBy === undefined ? {} : { requestedBy }) },
    ...{ state: stateOf(batch, now - batch.since > overdueAfterMs), complete, askedAt: new Date(batch.askedAt) }, // prettier-ignore
    ...(batch.finishedAt === undefined ? {} : { finishedAt: new Date(batch.finishedAt) }),
    ...{ total, done, notFound, vetoed, cancelled, failed, waiting: waitingOf(batch) },
  };
}

function stateOf(batch: StoredBatch, isLate: boolean): ErasureState {
  if (batch.finishedSince !== undefined)
    return batch.cancelling && batch.cancelled > 0 ? 'cancelled' : 'done';
  if (batch.paused) return 'paused';
  if (isLate || batch.failed > 0) return 'overdue';
  return batch.started ? 'running' : 'waiting';
}
