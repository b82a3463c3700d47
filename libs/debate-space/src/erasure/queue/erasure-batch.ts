import { type JobStore, type ReadRecord, type Transaction, UnreadableRecord } from 'durable-jobs';
import { ErasureError } from '../../errors.js';
import type { DebateSpaceEvent } from '../../events.js';
import {
  BATCH,
  batchKey,
  groupOf,
  isReference,
  RECEIPT,
  type StoredBatch,
  type StoredErasure,
  type StoredReceipt,
} from './erasure-records.js';
import type { BatchRequest } from './erasure-records.js';

type FinishedEvent = Extract<DebateSpaceEvent, { readonly type: 'erasure-finished' }>;

/** How one user's erasure ends. */
export type ErasureEnd = Readonly<Pick<StoredReceipt, 'outcome' | 'status' | 'loggedOut' | 'reason'>>;

const COUNTED = {
  erased: 'done',
  'not-found': 'notFound',
  vetoed: 'vetoed',
  canceled: 'canceled',
} as const;

/** One atomic change of the erasures of a reference: its jobs, together with its counts. */
export class ErasureChange {
  /** By the storage's clock, in milliseconds. */
  readonly now: number;
  /** The batch, when it is finished by this change. */
  finished: StoredBatch | undefined;
  #batch: ReadRecord<StoredBatch>;
  #isRead = false;
  #isEdited = false;
  #wasHeld = false;

  constructor(
    private readonly jobs: JobStore<StoredErasure>,
    now: number,
    readonly transaction: Transaction,
    readonly reference: string,
  ) {
    this.now = now;
  }

  /** Reads the batch and these jobs in one round trip. */
  async prefetch(jobIds: readonly string[]): Promise<void> {
    const keys = this.jobs.recordKeys(jobIds);
    await this.transaction.getAll([batchKey(this.reference), ...keys]);
  }

  async read(): Promise<ReadRecord<StoredBatch>> {
    if (this.#isRead || !isReference(this.reference)) return this.#batch;
    this.#batch = await this.transaction.read(BATCH, batchKey(this.reference));
    this.#isRead = true;
    this.#wasHeld =
      this.#batch !== undefined && !(this.#batch instanceof UnreadableRecord) && isHeld(this.#batch);
    return this.#batch;
  }

  /** @returns `undefined` when there is none that can be read: its users wait until there is */
  async find(): Promise<StoredBatch | undefined> {
    const found = await this.read();
    return found instanceof UnreadableRecord ? undefined : found;
  }

  /** The batch, to be changed. @throws {@link ErasureError} when there is none, or none that can be read */
  async edit(): Promise<StoredBatch> {
    const batch = readable(await this.read());
    this.#isEdited = true;
    return batch;
  }

  /** Like {@link edit}, or a new one. @throws {@link ErasureError} when there is one that cannot be read */
  async editFor(request: BatchRequest): Promise<StoredBatch> {
    this.#batch = (await this.read()) ?? newBatch(request, this.now);
    return this.edit();
  }

  /** Ends a user's erasure, with a receipt. To be called when its job is removed. */
  async settle(uidHash: string, erasure: StoredErasure, end: ErasureEnd): Promise<void> {
    const batch = await this.edit();
    const { reference, mode, requestedBy, requestedAt } = batch;
    const isDone = end.outcome === 'erased' || end.outcome === 'not-found';
    batch.started = true;
    batch[COUNTED[end.outcome]] += 1;
    const uncertain = erasure.unknown && !isDone ? ({ uncertain: true } as const) : {};
    const { attempts } = erasure;
    const about = { reference, uidHash, mode, requestedBy, requestedAt, doneAt: Date.now(), attempts };
    this.transaction.replace(RECEIPT, undefined, { ...about, ...end, ...uncertain });
  }

  /** Removes the batch, whose users are finished. */
  async remove(): Promise<void> {
    this.#isEdited = false;
    await this.transaction.remove(BATCH, batchKey(this.reference));
  }

  /** Saves the batch if it was changed. The one place that pauses and resumes its jobs. */
  async save(): Promise<void> {
    const batch = this.#isEdited ? await this.find() : undefined;
    if (!batch) return;
    if (settleEnd(batch, this.now)) this.finished = batch;
    batch.revision += 1;
    await this.transaction.put(BATCH, batch);
    const { jobs } = this;
    const group = groupOf(this.reference);
    if (isHeld(batch) && !this.#wasHeld) await jobs.pauseGroupIn(this.transaction, group);
    if (!isHeld(batch) && this.#wasHeld) await jobs.resumeGroupIn(this.transaction, group);
  }
}

/** @throws {@link ErasureError} */
function readable(found: ReadRecord<StoredBatch>): StoredBatch {
  if (found === undefined)
    throw new ErasureError(
      'ERR_DEBATE_SPACE_UNKNOWN_ERASURE',
      'there is no erasure of this reference here; see DebateSpaceErasures.list()',
    );
  if (!(found instanceof UnreadableRecord)) return found;
  const { cause, hint } = explainUnreadable(found);
  throw new ErasureError(
    'ERR_DEBATE_SPACE_UNREADABLE_ERASURE',
    `this reference cannot be read, because ${cause}; hint: ${hint}`,
  );
}

/** Why the record of a reference cannot be read, and what to do about it. */
export function explainUnreadable({ isNewer }: UnreadableRecord): {
  readonly cause: string;
  readonly hint: string;
} {
  const why = isNewer ? 'was written by a newer version of nestjs-debate-space' : 'is damaged';
  const fix = isNewer ? 'run that version' : 'restore it from a backup of the storage';
  return {
    cause: `its record ${why}`,
    hint: `${fix}, or request the erasures again under another reference`,
  };
}

/** @param now by the storage's clock */
function newBatch(request: BatchRequest, now: number): StoredBatch {
  const counts = { total: 0, done: 0, notFound: 0, vetoed: 0, canceled: 0 };
  const state = { complete: false, paused: false, canceling: false, started: false };
  return { ...request, revision: 0, requestedAt: Date.now(), since: now, ...state, ...counts };
}

export function finishedEvent(batch: StoredBatch): FinishedEvent {
  const { reference, mode, total, done, notFound, vetoed, canceled } = batch;
  return { type: 'erasure-finished', reference, mode, total, done, notFound, vetoed, canceled };
}

/** How many are not finished: they wait, or are parked. */
export function openOf({ total, done, notFound, vetoed, canceled }: StoredBatch): number {
  return total - done - notFound - vetoed - canceled;
}

/** Whether its jobs may be carried out. */
export const isRunning = (batch: StoredBatch): boolean => openOf(batch) > 0 && !isHeld(batch);

/** Whether its jobs wait aside: it is paused, or its list is not read to its end. */
export const isHeld = (batch: StoredBatch): boolean =>
  batch.finishedSince === undefined && (batch.paused || !(batch.complete || batch.canceling));

/**
 * Notes that a batch is finished, or that it is not any more.
 * @returns whether it is finished by this change
 */
function settleEnd(batch: StoredBatch, now: number): boolean {
  const isFinished = (batch.complete || batch.canceling) && openOf(batch) === 0;
  const isChange = isFinished !== (batch.finishedSince !== undefined);
  if (isChange) {
    batch.finishedAt = isFinished ? Date.now() : undefined;
    batch.finishedSince = isFinished ? now : undefined;
  }
  if (isFinished) Object.assign(batch, { overdueAt: undefined, retrying: undefined });
  return isFinished && isChange;
}
