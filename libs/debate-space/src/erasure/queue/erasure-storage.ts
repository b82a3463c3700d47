import {
  type FoundJob,
  type HostTransaction,
  isReadable,
  type Job,
  JobStore,
  rangePages,
  readRecord,
  type ReadRecord,
  SteadyClock,
  type Storage,
  type StorageView,
  Transaction,
  UnreadableRecord,
} from 'durable-jobs';
import { invalidArgument, transact } from '../../errors.js';
import type { Emit, ErasureMode } from '../../events.js';
import { KeyedMutex } from '../../async/keyed-mutex.js';
import type { UidCipher } from '../../secrets/uid-cipher.js';
import { ErasureChange, explainUnreadable, finishedEvent, isRunning, openOf } from './erasure-batch.js';
import * as records from './erasure-records.js';
import {
  BATCH,
  ERASURE,
  RECEIPT,
  type StoredBatch,
  type StoredErasure,
  type StoredReceipt,
} from './erasure-records.js';
import type {
  ErasureReceipt,
  ErasureState,
  ErasureStatus,
  RetryingErasure,
  UnreadableErasure,
} from '../erasure.js';

export const UNREADABLE_HINT =
  'the record of this user cannot be read: it is damaged, or was written by a newer version of nestjs-debate-space or ' +
  'with another storageKey. Run that version or restore that key and retry the reference, or cancel it';
const NO_QUERY = 'must have a function query(text, values), which runs a statement in the open transaction';
const NO_TRANSACTIONS =
  "this storage cannot take part in the host's transactions; hint: use postgresStorage on the host's database, or " +
  'request the erasure without transaction after the commit';

/** Some of them may be under way. */
const LOOKED_AT = 20;

/** What the storages of an application need. */
export interface ErasureContext {
  readonly uids: UidCipher;
  /** The age at which a reference that is not finished is overdue, in milliseconds. */
  readonly overdueAfterMs: number;
  readonly emit: Emit;
}

/** Where the erasures of one application are kept: what they are like, and how they are changed. */
export class ErasureStorage {
  readonly uids: UidCipher;
  /** One job for each reference and user. */
  readonly jobs: JobStore<StoredErasure>;
  readonly #clock: SteadyClock;
  /**
   * Changes of one reference by this process would only be in each other's way. Each transaction of the host's has a mutex
   * of its own: it may be what the next change waits for.
   */
  readonly #mutex = new KeyedMutex();
  readonly #listeners = new Set<() => void>();

  /** @param view the same records in a transaction of the host's @param jobs of the storage that it is a view of */
  constructor(
    private readonly storage: Storage,
    private readonly context: ErasureContext,
    readonly view: StorageView = storage,
    jobs?: JobStore<StoredErasure>,
  ) {
    this.uids = context.uids;
    this.#clock = new SteadyClock(storage);
    this.jobs =
      jobs ??
      new JobStore(storage, {
        name: records.ERASURE_JOBS,
        codec: ERASURE,
        priorities: 2,
        unreadableHint: UNREADABLE_HINT,
        onUnreadable: (found) => {
          this.#reportUnreadable(found).catch(() => undefined); // the status counts it
        },
      });
  }

  get overdueAfterMs(): number {
    return this.context.overdueAfterMs;
  }

  /** By the storage's clock: milliseconds. */
  now(): number {
    return this.storage.now();
  }

  /** See {@link SteadyClock.isSteady}. */
  isSteady(ageMs?: number): boolean {
    return this.#clock.isSteady(ageMs);
  }

  /** Encrypts the uid for its job and mode: it opens in no other. */
  seal(uid: string, reference: string, uidHash: string, mode: ErasureMode): string {
    return this.uids.seal(uid, sealedFor(records.jobIdOf(reference, uidHash), uidHash, mode));
  }

  /** @returns `undefined` when no key opens it, or when somebody without a key has changed the job */
  open({ id, key, value: { sealed, mode } }: Job<StoredErasure>): string | undefined {
    return this.uids.open(sealed, sealedFor(id, key, mode));
  }

  /** How many erasures are not finished. */
  async count(): Promise<number> {
    const { pending, parked } = await this.jobs.counts();
    return pending + parked;
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
    return new ErasureStorage(this.storage, this.context, view, this.jobs);
  }

  /**
   * Changes the erasures of a reference atomically. The work is repeated while others change what it reads: it must have no
   * other effect. The one place that reports that a reference is finished.
   * @param announce called when the change is made, with its result and the batch if that is finished by it
   */
  async change<T>(
    reference: string,
    work: (change: ErasureChange) => T | Promise<T>,
    announce?: (result: T, finished: StoredBatch | undefined) => void,
  ): Promise<T> {
    const [result, { finished }] = await this.#mutex.run(reference, () =>
      transact(this.view, async (transaction) => {
        const change = new ErasureChange(this.jobs, this.now(), transaction, reference);
        const result = await work(change);
        await change.save();
        return [result, change] as const;
      }),
    );
    announce?.(result, finished);
    if (finished) this.context.emit(finishedEvent(finished));
    this.changed();
    return result;
  }

  /** Calls `listener` after each change by this process. @returns how to stop */
  onChange(listener: () => void): () => void {
    this.#listeners.add(listener);
    return () => this.#listeners.delete(listener);
  }

  changed(): void {
    for (const listener of this.#listeners) listener();
  }

  /** To read the erasures of a reference: a change that is not made. */
  look(reference: string): ErasureChange {
    return new ErasureChange(this.jobs, this.now(), new Transaction(this.view), reference);
  }

  /** The jobs of a user in one mode that nobody has to help: pending ones, of references that run. */
  async running(uid: string, mode: ErasureMode): Promise<readonly string[]> {
    const found = await this.jobs.find(this.uids.hashes(uid), this.view);
    const references: string[] = [];
    for (const { id, state, job } of found) {
      if (state !== 'pending' || job?.value.mode !== mode) continue;
      const reference = records.referenceOf(id);
      const batch = await this.look(reference).find();
      if (batch && isRunning(batch) && (job.value.unknown || !batch.canceling)) references.push(reference);
    }
    return references;
  }

  /** @throws {@link ErasureError} when there is no such reference, or its record cannot be read */
  async status(reference: string): Promise<ErasureStatus> {
    const batch = await this.look(reference).edit();
    const retrying = isRunning(batch) ? await this.#retrying(batch) : undefined;
    return { ...(await this.#statusOf(batch)), ...(retrying && { retrying }) };
  }

  async #retrying({ reference, retrying }: StoredBatch): Promise<RetryingErasure | undefined> {
    const group = records.groupOf(reference);
    const ids = retrying === undefined ? [] : [records.jobIdOf(reference, retrying)];
    const [last] = await this.jobs.findIn(new Transaction(this.view), ids);
    const others =
      retrying === undefined ? [] : await this.jobs.list('pending', { group, limit: LOOKED_AT }, this.view);
    const found = [last, ...others].find(
      (one) => one?.state === 'pending' && one.job?.value.cause !== undefined,
    );
    if (found?.job?.value.cause === undefined) return undefined;
    const { cause } = found.job.value;
    const dueMs = this.jobs.claimOf(found.id) ? 0 : this.jobs.dueAtOf(found.job) - this.now();
    return dueMs > 0 ? { cause, nextAttemptAt: new Date(Date.now() + dueMs) } : { cause };
  }

  async *list(): AsyncGenerator<ErasureStatus | UnreadableErasure> {
    for await (const rows of rangePages(this.view, ...records.timesOf('asked'), { reverse: true })) {
      const batches = await new Transaction(this.view).readAll(BATCH, rows.map(records.batchOf));
      for (const [n, [row]] of rows.entries()) {
        const batch = batches[n];
        if (batch instanceof UnreadableRecord) yield this.#unreadable(row, batch);
        else if (batch) yield await this.#statusOf(batch);
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
    const requestedAt = new Date(Date.now() - (this.now() - records.momentOf(row)));
    const reference = records.lastPart(row);
    return { reference, state: 'unreadable', requestedAt, ...explainUnreadable(record) };
  }

  /** The parked ones are counted, not noted: whoever parks one changes its job only. */
  async #statusOf(batch: StoredBatch): Promise<ErasureStatus> {
    const isOpen = openOf(batch) > 0;
    const failed = isOpen
      ? await this.jobs.countIn(records.groupOf(batch.reference), 'parked', this.view)
      : 0;
    return statusOf(batch, Math.min(failed, openOf(batch)), this.now() - batch.since > this.overdueAfterMs);
  }

  async #reportUnreadable({ id }: FoundJob<StoredErasure>): Promise<void> {
    const reference = records.referenceOf(id);
    const batch = await this.look(reference).find();
    const uidHash = id.slice(id.indexOf('/') + 1);
    const about = { attempts: 0, cause: 'unreadable', hint: UNREADABLE_HINT };
    if (batch) this.context.emit({ type: 'erasure-parked', reference, mode: batch.mode, uidHash, ...about });
    this.changed();
  }
}

const sealedFor = (id: string, uidHash: string, mode: ErasureMode) =>
  ({ kind: 'erasure', id, uidHash, mode }) as const;

function readable(found: readonly ReadRecord<StoredReceipt>[]): readonly ErasureReceipt[] {
  return found.filter(isReadable<StoredReceipt>).map((receipt) => ({
    ...receipt,
    requestedAt: new Date(receipt.requestedAt),
    doneAt: new Date(receipt.doneAt),
  }));
}

/** @param isLate whether it is older than the first of `erasure.overdueAfterMs` */
function statusOf(batch: StoredBatch, failed: number, isLate: boolean): ErasureStatus {
  const { reference, mode, requestedBy, complete, total, done, notFound, vetoed, canceled } = batch;
  const asked = requestedBy === undefined ? {} : { requestedBy };
  const state = {
    state: stateOf(batch, isLate || failed > 0),
    complete,
    requestedAt: new Date(batch.requestedAt),
  };
  const finished = batch.finishedAt === undefined ? {} : { finishedAt: new Date(batch.finishedAt) };
  const waiting = openOf(batch) - failed;
  const counts = { total, done, notFound, vetoed, canceled, failed, waiting };
  return { reference, mode, ...asked, ...state, ...finished, ...counts };
}

function stateOf(batch: StoredBatch, isOverdue: boolean): ErasureState {
  if (batch.finishedSince !== undefined) return batch.canceling && batch.canceled > 0 ? 'canceled' : 'done';
  if (batch.paused) return 'paused';
  if (isOverdue) return 'overdue';
  return batch.started ? 'running' : 'waiting';
}
