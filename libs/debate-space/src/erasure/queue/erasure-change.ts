import { randomBytes } from 'node:crypto';
import { isReadable, type ReadRecord, type Transaction, UnreadableRecord } from 'durable-jobs';
import type { DebateSpaceEvent, ErasureMode } from '../../events.js';
import { ErasureError } from '../../errors.js';
import * as records from './erasure-records.js';
import { BATCH, ENTRY, type StoredBatch, type StoredEntry, type StoredReceipt } from './erasure-records.js';
import type { BatchRequest } from './erasure-requests.js';
import type { ErasureStorage } from './erasure-storage.js';

type FinishedEvent = Extract<DebateSpaceEvent, { readonly type: 'erasure-finished' }>;

/** How one user's erasure ends. */
export type ErasureEnd = Readonly<Pick<StoredReceipt, 'outcome' | 'status' | 'loggedOut' | 'reason'>>;

/** Nothing waits longer: a moment that is farther ahead, or a lease that ended longer ago, is of a clock that was wrong. */
export const MAX_WAIT_MS = 86_400_000;
const COUNTED = {
  erased: 'done',
  'not-found': 'notFound',
  vetoed: 'vetoed',
  canceled: 'canceled',
} as const;
const ID_BYTES = 9;

export const randomId = (): string => randomBytes(ID_BYTES).toString('base64url');

/** One atomic change of erasures: entries, together with the counts and the schedule of their references. */
export class ErasureChange {
  readonly #batches = new Map<string, ReadRecord<StoredBatch>>();
  readonly #changed = new Set<StoredBatch>();
  /** Whether a reference is due earlier than before. */
  isMoreDue = false;

  /** By the storage's clock, in milliseconds. */
  readonly now: number;

  constructor(
    readonly storage: ErasureStorage,
    readonly transaction: Transaction,
  ) {
    this.now = storage.now();
  }

  async readBatch(reference: string): Promise<ReadRecord<StoredBatch>> {
    if (!this.#batches.has(reference) && records.isReference(reference))
      this.#batches.set(reference, await this.transaction.read(BATCH, records.batchKey(reference)));
    return this.#batches.get(reference);
  }

  /** @returns `undefined` when there is none that can be read: its users wait until there is */
  async findBatch(reference: string): Promise<StoredBatch | undefined> {
    const found = await this.readBatch(reference);
    return isReadable(found) ? found : undefined;
  }

  /** A batch to be changed. @throws {@link ErasureError} when there is none, or none that can be read */
  async batch(reference: string): Promise<StoredBatch> {
    return this.edit(readable(await this.readBatch(reference)));
  }

  /** Like {@link batch}, or a new one. @throws {@link ErasureError} when there is one that cannot be read */
  async batchFor(request: BatchRequest): Promise<StoredBatch> {
    const { reference } = request;
    if (!(await this.readBatch(reference))) this.#batches.set(reference, newBatch(request, this.now));
    return this.batch(reference);
  }

  /** The batch is saved with this change. */
  edit(batch: StoredBatch): StoredBatch {
    this.#changed.add(batch);
    return batch;
  }

  /** The batch has something to do no later than this. */
  dueBy(batch: StoredBatch, at: number): void {
    const { dueAt = Infinity } = this.edit(batch);
    this.isMoreDue ||= at < dueAt;
    // Nothing waits that long: this clock may be years ahead. Maintenance finds the batch there, and makes it due.
    batch.dueAt = at - dueAt > MAX_WAIT_MS ? at : Math.min(at, dueAt);
  }

  /** Removes a batch, whose users are finished. */
  async remove(batch: StoredBatch): Promise<void> {
    this.#changed.delete(batch);
    await this.transaction.remove(BATCH, BATCH.key(batch));
  }

  readEntries(uidHashes: readonly string[], mode: ErasureMode): Promise<readonly ReadRecord<StoredEntry>[]> {
    const keys = uidHashes.map((uidHash) => records.entryKey(uidHash, mode));
    return this.transaction.readAll(ENTRY, keys);
  }

  /** @returns `undefined` when there is none that can be read */
  async findEntry(uidHash: string, mode: ErasureMode): Promise<StoredEntry | undefined> {
    return (await this.readEntries([uidHash], mode)).find(isReadable<StoredEntry>);
  }

  put(entry: StoredEntry): Promise<void> {
    return this.transaction.put(ENTRY, entry);
  }

  /** The batches of an entry that can be read, to be changed. */
  async batchesOf({ references }: StoredEntry): Promise<readonly StoredBatch[]> {
    const found: StoredBatch[] = [];
    for (const reference of references) {
      const batch = await this.findBatch(reference);
      if (batch) found.push(this.edit(batch));
    }
    return found;
  }

  /** One reference asks for the erasure no more. */
  async leave(entry: StoredEntry, reference: string): Promise<void> {
    entry.references = entry.references.filter((other) => other !== reference);
    if (entry.references.length > 0) await this.put(entry);
    else await this.transaction.remove(ENTRY, ENTRY.key(entry));
  }

  /** Counts a user as failed, once. @returns whether it was not counted before */
  async park(batch: StoredBatch, uidHash: string): Promise<boolean> {
    const key = records.parkedKey(batch.reference, uidHash);
    if ((await this.transaction.get(key)) !== undefined) return false;
    this.edit(batch).failed += 1;
    this.transaction.set(key, '');
    return true;
  }

  /** Counts a user as failed no more. To be called before the entry is changed. @returns whether it was counted */
  async unpark(batch: StoredBatch, uidHash: string): Promise<boolean> {
    const key = records.parkedKey(batch.reference, uidHash);
    if (batch.failed === 0 || (await this.transaction.get(key)) === undefined) return false;
    this.edit(batch).failed -= 1;
    this.transaction.set(key, undefined);
    return true;
  }

  /** Ends a user's erasure for one of its references, with a receipt there. */
  async settle(entry: StoredEntry, batch: StoredBatch, end: ErasureEnd): Promise<void> {
    const { uidHash, attempts, unknown } = entry;
    const { reference, mode, requestedBy, askedAt } = batch;
    const isDone = end.outcome === 'erased' || end.outcome === 'not-found';
    await this.unpark(batch, uidHash);
    this.edit(batch)[COUNTED[end.outcome]] += 1;
    const uncertain = unknown && !isDone ? ({ uncertain: true } as const) : {};
    const about = { reference, uidHash, mode, requestedBy, askedAt, doneAt: Date.now(), attempts };
    this.transaction.replace(records.RECEIPT, undefined, { ...about, ...end, ...uncertain });
    await this.leave(entry, reference);
  }

  /**
   * Whether one of its references wants it carried out now. What may have been carried out is finished although it is
   * canceled.
   */
  async isWanted(entry: StoredEntry): Promise<boolean> {
    if (entry.parked) return false;
    for (const reference of entry.references) {
      const batch = await this.findBatch(reference);
      if (batch && isRunning(batch) && (entry.unknown || !batch.canceling)) return true;
    }
    return false;
  }

  /** Saves the batches that were changed. @returns those that are finished by it */
  async save(): Promise<readonly StoredBatch[]> {
    const finished: StoredBatch[] = [];
    for (const batch of this.#changed) {
      if (settleEnd(batch, this.now)) finished.push(batch);
      batch.revision += 1;
      await this.transaction.put(BATCH, batch);
    }
    this.#changed.clear();
    return finished;
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
  const counts = { total: 0, done: 0, notFound: 0, vetoed: 0, canceled: 0, failed: 0 };
  const state = { complete: false, paused: false, canceling: false, started: false };
  return { ...request, revision: 0, askedAt: Date.now(), since: now, ...state, ...counts };
}

export function finishedEvent(batch: Omit<FinishedEvent, 'type'>): FinishedEvent {
  const { reference, mode, total, done, notFound, vetoed, canceled } = batch;
  return { type: 'erasure-finished', reference, mode, total, done, notFound, vetoed, canceled };
}

/** How many are neither finished nor parked. */
export function waitingOf({ total, done, notFound, vetoed, canceled, failed }: StoredBatch): number {
  return total - done - notFound - vetoed - canceled - failed;
}

/** Whether something may be carried out. */
export function isRunning(batch: StoredBatch): boolean {
  return (batch.complete || batch.canceling) && !batch.paused && waitingOf(batch) > 0;
}

/**
 * Notes that a batch is finished, or that it is not any more.
 * @returns whether it is finished by this change
 */
function settleEnd(batch: StoredBatch, now: number): boolean {
  const isFinished = (batch.complete || batch.canceling) && waitingOf(batch) === 0 && batch.failed === 0;
  const isChange = isFinished !== (batch.finishedSince !== undefined);
  if (isChange) {
    batch.finishedAt = isFinished ? Date.now() : undefined;
    batch.finishedSince = isFinished ? now : undefined;
  }
  if (isFinished) batch.overdueAt = undefined;
  if (!isRunning(batch)) batch.dueAt = undefined;
  return isFinished && isChange;
}
