import { LEASE_MS, type JobQueue } from '../jobs/job-queue.js';
import { plainUidCipher } from '../uid-cipher.js';
import type { DebateSpaceStorage, StorageEngine } from '../storage/storage.js';
import { DueRows } from './due-rows.js';
import { KeyedMutex } from './keyed-mutex.js';
import { LogoutClaims } from './logout-claims.js';
import { LogoutDesk } from './logout-desk.js';
import { LogoutHistory } from './logout-history.js';
import { LogoutRecords } from './logout-records.js';
import { LogoutTransitions } from './logout-transitions.js';
import type {
  DeliveryProgress,
  LogoutContext,
  LogoutCounts,
  LogoutEntry,
  LogoutJob,
  ParkedJob,
  UserHistory,
} from './logout.js';
import { run, type Steps } from './steps.js';

type MaybePromise<T> = T | Promise<T>;

const MAX_HISTORY_IN_MEMORY = 100_000;

/**
 * The logouts of an application, in a storage. An entry is held before a session ends, then released when the end is
 * proven or canceled when it was none. A hold whose lease runs out – its process died – becomes due. All calls are
 * idempotent; what does not fit the state of the entry is ignored. On a storage that answers synchronously, so does this
 * queue, and a logout is stored before the host's own call returns.
 */
export class LogoutQueue implements JobQueue<LogoutJob> {
  readonly #storage: DebateSpaceStorage;
  readonly #due: DueRows;
  readonly #history: LogoutHistory;
  readonly #transitions: LogoutTransitions;
  readonly #desk: LogoutDesk;
  /** Keeps the order of the calls about one logout. */
  readonly #mutex = new KeyedMutex();
  readonly #listeners = new Set<() => void>();

  constructor(
    storage: DebateSpaceStorage,
    { durable }: Pick<StorageEngine, 'durable'>,
    given: LogoutContext,
  ) {
    // A uid that stays in the memory of its process needs no encryption.
    const context = durable ? given : { ...given, uids: plainUidCipher(given.uids) };
    this.#storage = storage;
    this.#due = new DueRows(storage);
    this.#history = new LogoutHistory(storage, context, durable ? Infinity : MAX_HISTORY_IN_MEMORY);
    const records = new LogoutRecords(storage, context, this.#due, this.#history);
    this.#transitions = new LogoutTransitions(records, new LogoutClaims(records));
    this.#desk = new LogoutDesk(records);
  }

  hold(entry: LogoutEntry, leaseMs = LEASE_MS): MaybePromise<void> {
    return this.#inOrder(entry.id, this.#changing(this.#transitions.hold(entry, leaseMs)));
  }

  /** Begins the lease of a hold anew. */
  extend(id: string, leaseMs = LEASE_MS): MaybePromise<void> {
    return this.#inOrder(id, this.#transitions.extend(id, leaseMs));
  }

  release(id: string): MaybePromise<void> {
    return this.#inOrder(id, this.#changing(this.#transitions.release(id)));
  }

  cancel(id: string): MaybePromise<void> {
    return this.#inOrder(id, this.#transitions.cancel(id));
  }

  /** Takes over an entry that this process could not store before, as far as it has come. */
  takeOver(entry: LogoutEntry, progress: DeliveryProgress, hint?: string): MaybePromise<void> {
    return this.#inOrder(entry.id, this.#changing(this.#transitions.takeOver(entry, progress, hint)));
  }

  claim(limit: number, leaseMs = LEASE_MS): MaybePromise<readonly LogoutJob[]> {
    return run(this.#transitions.claim(limit, leaseMs)); // in no order: one without an answer holds up no other
  }

  async renew(jobs: readonly LogoutJob[]): Promise<void> {
    const renew = async ({ entry: { id } }: LogoutJob): Promise<void> =>
      this.#inOrder(id, this.#transitions.renew(id, LEASE_MS));
    await Promise.all(jobs.map(renew));
  }

  async giveBack(jobs: readonly LogoutJob[]): Promise<void> {
    await Promise.all(jobs.map(async (job) => this.retry(job.entry.id, job, 0)));
  }

  retry(id: string, progress: DeliveryProgress, delayMs: number): MaybePromise<void> {
    return this.#inOrder(id, this.#changing(this.#transitions.retry(id, progress, delayMs)));
  }

  /** It is delivered. Keeps a `FinishedEntry` under the hash of the uid; the entry with its uid is gone. */
  finish(id: string, attempts: number): MaybePromise<void> {
    return this.#inOrder(id, this.#transitions.finish(id, attempts));
  }

  /** Keeps the entry, and delivers it no more until somebody retries it. */
  park(id: string, progress: DeliveryProgress, hint: string): MaybePromise<void> {
    return this.#inOrder(id, this.#transitions.park(id, progress, hint));
  }

  /** Nothing is claimed for `ms`, by no process; never shortens a pause. */
  pause(ms: number): MaybePromise<void> {
    return run(this.#due.pause(ms));
  }

  counts(): MaybePromise<LogoutCounts> {
    return run(this.#desk.counts());
  }

  /** `endedAt` of the oldest entry that is pending; `undefined` when none is. */
  oldestPending(): MaybePromise<number | undefined> {
    return run(this.#desk.oldestPending());
  }

  nextDueMs(): MaybePromise<number | undefined> {
    return run(this.#due.nextMs());
  }

  maintain(): MaybePromise<void> {
    return run(this.#maintenance());
  }

  onChange(listener: () => void): () => void {
    this.#listeners.add(listener);
    return () => this.#listeners.delete(listener);
  }

  /** At most `limit` parked entries, the longest parked first. @param skip how many to leave out */
  parked(limit: number, skip?: number): MaybePromise<readonly ParkedJob[]> {
    return run(this.#desk.parked(limit, skip));
  }

  /** A parked entry is pending again, due immediately, as if never tried. @returns whether there was one */
  retryParked(id: string): MaybePromise<boolean> {
    return this.#inOrder(id, this.#changing(this.#desk.retryParked(id)));
  }

  /** Removes a parked entry. @returns whether there was one */
  discard(id: string): MaybePromise<boolean> {
    return this.#inOrder(id, this.#desk.discard(id));
  }

  ofUser(uid: string): MaybePromise<UserHistory> {
    return run(this.#desk.ofUser(uid, (id) => this.#transitions.leaseEnd(id)));
  }

  /**
   * Removes what is pending for a user and ended no later than this; nothing that is held or parked. One that is under
   * way may still arrive. @returns how many
   */
  supersede(uid: string, endedUntil: number): MaybePromise<number> {
    return run(this.#desk.supersede(uid, endedUntil));
  }

  /** Waits for the open calls, and closes the storage. */
  async close(): Promise<void> {
    this.#listeners.clear();
    await this.#mutex.idle();
    await this.#storage.close();
  }

  #inOrder<T>(id: string, steps: Steps<T>): MaybePromise<T> {
    return this.#mutex.run(id, () => run(steps));
  }

  /** What is changed may be due earlier than the listeners know. */
  *#changing<T>(steps: Steps<T>): Steps<T> {
    const result = yield* steps;
    for (const listener of this.#listeners) listener();
    return result;
  }

  *#maintenance(): Steps<void> {
    yield* this.#due.pullBack();
    yield* this.#history.prune();
  }
}
