import {
  type HostTransaction,
  isReadable,
  rangePages,
  readRecord,
  type ReadRecord,
  SteadyClock,
  type Storage,
  type StorageView,
  Transaction,
  UnreadableRecord,
} from 'durable-jobs';
import { invalidArgument } from '../../errors.js';
import { KeyedMutex } from '../../async/keyed-mutex.js';
import type { UidCipher } from '../../secrets/uid-cipher.js';
import { ErasureChange, explainUnreadable, isRunning, waitingOf } from './erasure-change.js';
import * as records from './erasure-records.js';
import { BATCH, RECEIPT, type StoredBatch, type StoredEntry, type StoredReceipt } from './erasure-records.js';
import type {
  ErasureReceipt,
  ErasureState,
  ErasureStatus,
  RetryingErasure,
  UnreadableErasure,
} from '../erasure.js';
import { transact } from '../../storage-errors.js';

const NO_QUERY = 'must have a function query(text, values), which runs a statement in the open transaction';
const NO_TRANSACTIONS =
  "this storage cannot take part in the host's transactions; hint: use postgresStorage on the host's database, or " +
  'request the erasure without transaction after the commit';

/** Some of them may be under way. */
const LOOKED_AT = 20;

export type ChangeBatch = (batch: StoredBatch, change: ErasureChange) => void | Promise<void>;

/** Where the erasures of one application are kept: what they are like, and how they are changed. */
export class ErasureStorage {
  readonly #clock: SteadyClock;
  /**
   * Changes of one reference by this process would only be in each other's way. Each transaction of the host's has a mutex
   * of its own: it may be what the next change waits for.
   */
  readonly #mutex = new KeyedMutex();
  readonly #listeners = new Set<(change: ErasureChange) => void>();

  /**
   * @param overdueAfterMs the age at which a reference that is not finished is overdue
   * @param view the same records in a transaction of the host's
   */
  constructor(
    private readonly storage: Storage,
    readonly uids: UidCipher,
    readonly overdueAfterMs: number,
    readonly view: StorageView = storage,
  ) {
    this.#clock = new SteadyClock(storage);
  }

  /** By the storage's clock: milliseconds. */
  now(): number {
    return this.storage.now();
  }

  /** See {@link SteadyClock.isSteady}. */
  isSteady(ageMs?: number): boolean {
    return this.#clock.isSteady(ageMs);
  }

  /** Seals the uid for the entry, its mode and the references that it has now. */
  seal(entry: Omit<StoredEntry, 'sealed' | 'sealedFor'>, uid: string): StoredEntry {
    const { references } = entry;
    const sealed = this.uids.seal(uid, { ...entry, kind: 'erasure', references });
    return { ...entry, sealed, sealedFor: references };
  }

  /** The uid of an entry. @returns `undefined` when no key opens it, or when somebody without a key has changed the entry */
  open({ sealed, sealedFor, ...entry }: StoredEntry): string | undefined {
    const isSealed = entry.references.every((reference) => sealedFor.includes(reference));
    return isSealed
      ? this.uids.open(sealed, { ...entry, kind: 'erasure', references: sealedFor })
      : undefined;
  }

  /** How many users' erasures are not finished. */
  async count(): Promise<number> {
    return this.storage.count('erasureentry');
  }

  /**
   * The same erasures as part of a transaction that the host has open. Errors are those of the host's connection.
   * @throws {@link InvalidArgumentError} when the storage has no transactions of the host's
   */
  within(transaction: HostTransaction | undefined): ErasureStorage {
    if (transaction === undefined) return this;
    if (typeof (transaction as Partial<HostTransaction> | null)?.query !== 'function')
      throw invalidArgument('requestErasure', `transaction ${NO_QUERY}`);
    const view = this.storage.within?.(transaction);
    if (!view) throw invalidArgument('requestErasure', `transaction: ${NO_TRANSACTIONS}`);
    return new ErasureStorage(this.storage, this.uids, this.overdueAfterMs, view);
  }

  /**
   * Changes erasures atomically. The work is repeated while others change what it reads: it must have no other effect.
   * @param reference the changes of a reference by this process are made in order
   */
  async change<T>(reference: string, work: (change: ErasureChange) => T | Promise<T>): Promise<T> {
    const [result, change] = await this.#mutex.run(reference, () =>
      transact(this.view, async (transaction) => {
        const change = new ErasureChange(this, transaction);
        const result = await work(change);
        await change.save();
        return [result, change] as const;
      }),
    );
    for (const listener of this.#listeners) listener(change);
    return result;
  }

  /** Changes a batch, like {@link change}. @returns its status afterwards */
  async changeBatch(reference: string, work: ChangeBatch): Promise<ErasureStatus> {
    const batch = await this.change(reference, async (change) => {
      const batch = await change.batch(reference);
      await work(batch, change);
      return batch;
    });
    return this.#statusOf(batch);
  }

  /** Calls `listener` after each change by this process. @returns how to stop */
  onChange(listener: (change: ErasureChange) => void): () => void {
    this.#listeners.add(listener);
    return () => this.#listeners.delete(listener);
  }

  /** To read erasures: a change that is not made. */
  look(): ErasureChange {
    return new ErasureChange(this, new Transaction(this.view));
  }

  /** @throws {@link ErasureError} when there is no such reference, or its record cannot be read */
  async status(reference: string): Promise<ErasureStatus> {
    const change = this.look();
    const batch = await change.batch(reference);
    const retrying = isRunning(batch) ? await this.#retrying(change, batch) : undefined;
    return { ...this.#statusOf(batch), ...(retrying && { retrying }) };
  }

  /** Of those who are due last: whoever was not tried yet is due earlier than after a failed attempt. */
  async #retrying(
    change: ErasureChange,
    { reference, mode }: StoredBatch,
  ): Promise<RetryingErasure | undefined> {
    const rows = await this.view.range(...records.dueOf(reference), { limit: LOOKED_AT, reverse: true });
    const hashes = rows.map(([row]) => records.lastPart(row));
    const entries = (await change.readEntries(hashes, mode)).filter(isReadable<StoredEntry>);
    const entry = entries.find(({ cause }) => cause !== undefined);
    if (entry?.cause === undefined) return undefined;
    const { cause, lease, dueAt } = entry;
    const nextAttemptAt = new Date(Date.now() + dueAt - this.now());
    return lease === undefined ? { cause, nextAttemptAt } : { cause };
  }

  async *list(): AsyncGenerator<ErasureStatus | UnreadableErasure> {
    for await (const rows of rangePages(this.view, ...records.timesOf('asked'), { reverse: true })) {
      const batches = await new Transaction(this.view).readAll(BATCH, rows.map(records.batchOf));
      for (const [n, [row]] of rows.entries()) {
        const batch = batches[n];
        if (batch instanceof UnreadableRecord) yield this.#unreadable(row, batch);
        else if (batch) yield this.#statusOf(batch);
      }
    }
  }

  async *receipts(reference: string): AsyncGenerator<ErasureReceipt> {
    for await (const rows of rangePages(this.view, ...records.receiptsOf(reference)))
      yield* readable(rows.map(([key, text]) => readRecord(RECEIPT, key, text)));
  }

  /** Under all storage keys. */
  async *receiptsOf(uid: string): AsyncGenerator<ErasureReceipt> {
    for (const uidHash of this.uids.hashes(uid)) {
      for await (const rows of rangePages(this.view, ...records.referencesOf(uidHash))) {
        const keys = rows.map(([row]) => records.receiptKey(records.lastPart(row), uidHash));
        yield* readable(await new Transaction(this.view).readAll(RECEIPT, keys));
      }
    }
  }

  /** @returns the age of the oldest reference that is not finished, in milliseconds, when it is overdue; never rejects */
  async overdueMs(): Promise<number | undefined> {
    try {
      const [oldest] = await this.view.range(...records.timesOf('open'), { limit: 1 });
      const ageMs = oldest ? this.now() - records.momentOf(oldest[0]) : 0;
      return ageMs > this.overdueAfterMs ? ageMs : undefined;
    } catch {
      return undefined; // the outbox reports a storage that cannot be reached
    }
  }

  #unreadable(row: string, record: UnreadableRecord): UnreadableErasure {
    const askedAt = new Date(Date.now() - (this.now() - records.momentOf(row)));
    const reference = records.lastPart(row);
    return { reference, state: 'unreadable', askedAt, ...explainUnreadable(record) };
  }

  #statusOf(batch: StoredBatch): ErasureStatus {
    return statusOf(batch, this.now() - batch.since > this.overdueAfterMs);
  }
}

function readable(found: readonly ReadRecord<StoredReceipt>[]): readonly ErasureReceipt[] {
  return found
    .filter(isReadable<StoredReceipt>)
    .map((receipt) => ({ ...receipt, askedAt: new Date(receipt.askedAt), doneAt: new Date(receipt.doneAt) }));
}

/** @param isLate whether it is older than the first of `erasure.overdueAfterMs` */
function statusOf(batch: StoredBatch, isLate: boolean): ErasureStatus {
  const { reference, mode, requestedBy, complete, total, done, notFound, vetoed, canceled, failed } = batch;
  const asked = requestedBy === undefined ? {} : { requestedBy };
  const state = { state: stateOf(batch, isLate), complete, askedAt: new Date(batch.askedAt) };
  const finished = batch.finishedAt === undefined ? {} : { finishedAt: new Date(batch.finishedAt) };
  const counts = { total, done, notFound, vetoed, canceled, failed, waiting: waitingOf(batch) };
  return { reference, mode, ...asked, ...state, ...finished, ...counts };
}

function stateOf(batch: StoredBatch, isLate: boolean): ErasureState {
  if (batch.finishedSince !== undefined) return batch.canceling && batch.canceled > 0 ? 'canceled' : 'done';
  if (batch.paused) return 'paused';
  if (isLate || batch.failed > 0) return 'overdue';
  return batch.started ? 'running' : 'waiting';
}
