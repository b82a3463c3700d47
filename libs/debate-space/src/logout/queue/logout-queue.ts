import {
  type JobQueue,
  LEASE_MS,
  MemoryStorage,
  recordText,
  type Rows,
  type Storage,
  type StorageEngine,
} from 'durable-jobs';
import { chain, type MaybePromise } from '../../async/maybe-promise.js';
import { plainUidCipher } from '../../secrets/uid-cipher.js';
import { KeyedMutex } from '../../async/keyed-mutex.js';
import { LogoutClaims } from './logout-claims.js';
import { LogoutDesk } from './logout-desk.js';
import { LogoutRecords, STATES } from './logout-records.js';
import type { DeliveryProgress, LogoutContext, LogoutEntry, LogoutJob, ParkedJob } from '../logout.js';
import { QUEUE_FAMILIES, queueId, recordKey, userKey } from './queue-keys.js';
import { LOGOUT, newLogout, progressOf, UNTRIED, type StoredLogout } from './stored-logout.js';

const MAX_HISTORY_IN_MEMORY = 100_000;

/**
 * The logouts of an application, in a storage. All calls are idempotent; what does not fit the state of the entry is
 * ignored.
 *
 * A logout is a record in the family of its state, and a row in `due`: its lease, and the token that decides between
 * processes. What this process has claimed it changes without reading it, in one commit. `add` is synchronous on a
 * storage that is: a logout is stored before the host's own call returns.
 */
export class LogoutQueue extends LogoutDesk implements JobQueue<LogoutJob> {
  readonly #claims: LogoutClaims;
  /** Keeps the order of the calls about one logout. */
  readonly #mutex = new KeyedMutex();

  constructor(storage: Storage, { durable }: Pick<StorageEngine, 'durable'>, given: LogoutContext) {
    // A uid that stays in the memory of its process needs no encryption.
    const context = durable ? given : { ...given, uids: plainUidCipher(given.uids) };
    super(new LogoutRecords(storage, context, durable ? Infinity : MAX_HISTORY_IN_MEMORY));
    this.#claims = new LogoutClaims(this.records);
  }

  /** An empty queue of the same application in the memory of this process, without a history. */
  inMemory(): LogoutQueue {
    const storage = new MemoryStorage({ families: QUEUE_FAMILIES });
    return new LogoutQueue(storage, { durable: false }, { ...this.records.context, keepFinishedMs: 0 });
  }

  /** Stores logouts that are due now, in one commit. One that is stored already stays as it is. */
  add(entries: readonly LogoutEntry[]): MaybePromise<void> {
    return this.#insert(entries.map((entry) => ({ entry, ...UNTRIED })));
  }

  /** Stores a logout that has waited in memory, as far as it has come; with a hint it is parked. */
  async takeOver(job: LogoutJob & Partial<ParkedJob>): Promise<void> {
    await this.#insert([job]);
  }

  /** In no order with other calls: one without an answer holds up no other. */
  async claim(limit: number, leaseMs = LEASE_MS): Promise<readonly LogoutJob[]> {
    const claimed = await this.#claims.claim(limit, leaseMs);
    for (const { job, own } of claimed) this.own.set(job.entry.id, own);
    return claimed.map(({ job }) => job);
  }

  /** Whether this process has claimed it, and recorded no result. */
  isClaimed(id: string): boolean {
    return this.own.has(id);
  }

  async renew(jobs: readonly LogoutJob[]): Promise<void> {
    await Promise.all(jobs.map(async ({ entry }) => this.#renewLease(entry.id)));
  }

  async giveBack(jobs: readonly LogoutJob[]): Promise<void> {
    await Promise.all(jobs.map((job) => this.retry(job.entry.id, job, 0)));
  }

  async retry(id: string, progress: DeliveryProgress, delayMs: number): Promise<void> {
    await this.#replaceClaimed(id, (stored) => this.#failed(stored, progress, undefined, delayMs));
  }

  /** Keeps the entry, and delivers it no more until somebody retries it. */
  async park(id: string, progress: DeliveryProgress, hint: string): Promise<void> {
    await this.#replaceClaimed(id, (stored) => this.#failed(stored, progress, hint));
  }

  /**
   * It is delivered. Keeps a `FinishedEntry` under the hash of the uid; the entry with its uid is gone.
   * @param unstored the entry, if the storage may not have it: then there is only its history to keep
   */
  async finish(id: string, attempts: number, unstored?: LogoutEntry): Promise<void> {
    const finished = (stored: StoredLogout): Rows => this.records.finished(stored, 'delivered', attempts);
    await this.#mutex.run(id, async () => {
      const own = this.own.get(id);
      const isMade = own !== undefined && (await this.records.replaceClaimed(own, finished(own.stored)));
      // Whether the lease was lost or it was parked meanwhile.
      const isFinished = isMade || (await this.#replaceAny(id, finished));
      if (!isFinished && unstored) await this.#noteEnd(unstored, finished);
      this.own.delete(id); // it stays when the outcome is unknown, for the call that repeats this one
    });
  }

  /** Removes a logout that must not be delivered any more. */
  async drop(id: string): Promise<void> {
    const dropped = (stored: StoredLogout): Rows => this.records.finished(stored, 'superseded');
    await this.#mutex.run(id, () => this.#replaceAny(id, dropped));
  }

  /** Nothing is claimed for `ms`, by no process; never shortens a pause. */
  async pause(ms: number): Promise<void> {
    await this.records.due.pause(ms);
  }

  async nextDueMs(): Promise<number | undefined> {
    return this.records.due.nextMs();
  }

  async maintain(): Promise<void> {
    await this.records.due.pullBack();
    await this.records.history.prune();
  }

  /** Waits for the open calls, and closes the storage. */
  async close(): Promise<void> {
    await this.#mutex.idle();
    await this.records.storage.close();
  }

  #insert(jobs: readonly (LogoutJob & Partial<ParkedJob>)[]): MaybePromise<void> {
    const ids = jobs.map(({ entry }) => entry.id);
    return chain(
      () => this.#mutex.runAll(ids, () => this.#commitNew(jobs)),
      () => {
        for (const id of ids) this.#claims.noteOwn(queueId(id));
        this.changed();
      },
    );
  }

  #commitNew(jobs: readonly (LogoutJob & Partial<ParkedJob>)[]): MaybePromise<unknown> {
    const absent = jobs.flatMap(({ entry }) => absenceOf(entry.id));
    const rows = jobs.flatMap((job): Rows => {
      const stored = newLogout(job, this.records.context);
      return [...this.#failed(stored, job, job.hint), [userKey(stored.uidHash, queueId(stored.id)), '']];
    });
    return chain(
      () => this.records.commit(absent, rows),
      (isMade) => {
        if (isMade || jobs.length === 1) return undefined;
        // One of them is stored already; the others are not.
        return Promise.all(jobs.map((job) => Promise.resolve(this.#commitNew([job]))));
      },
    );
  }

  /** Keeps the history of a logout that the storage does not have, once. */
  async #noteEnd(entry: LogoutEntry, finished: (stored: StoredLogout) => Rows): Promise<void> {
    const history = await this.ofUser(entry.uid);
    if (history.finished.some(({ id }) => id === entry.id)) return;
    const stored = newLogout({ entry, ...UNTRIED }, this.records.context);
    const isNoted = await this.records.commit(absenceOf(entry.id), finished(stored));
    if (!isNoted) await this.#replaceAny(entry.id, finished); // it has come meanwhile
  }

  #replaceAny(id: string, replacement: (stored: StoredLogout) => Rows): Promise<boolean> {
    return this.records.replaceFound(queueId(id), STATES, ({ stored }) => stored && replacement(stored));
  }

  /** The rows of a logout that could not be delivered. @param hint why it is parked; without it, it is due again */
  #failed(stored: StoredLogout, progress: DeliveryProgress, hint?: string, delayMs = 0): Rows {
    const tried = { ...stored, ...progressOf(progress) };
    return hint === undefined
      ? this.records.pending(tried, delayMs)
      : this.records.parked(queueId(stored.id), recordText(LOGOUT, tried), hint);
  }

  /** Moves the due row to the end of a new lease; one of a lease that was lost stays where it is. */
  #renewLease(entryId: string): MaybePromise<void> {
    return this.#mutex.run(entryId, () => {
      const own = this.own.get(entryId);
      if (!own) return undefined;
      const due = this.records.due.keyIn(LEASE_MS, own.id);
      const turn = String(own.stored.turn);
      const renewed = [due, turn] as const;
      return chain(
        () => this.records.commit([[own.due, turn]], [[own.due, undefined], renewed]),
        (isMade) => {
          if (isMade) this.own.set(entryId, { ...own, due });
        },
      );
    });
  }

  /** After an unknown outcome it is due when its lease has ended. */
  async #replaceClaimed(entryId: string, replacement: (stored: StoredLogout) => Rows): Promise<void> {
    await this.#mutex.run(entryId, async () => {
      const own = this.own.get(entryId);
      if (!own) return;
      this.own.delete(entryId);
      await this.records.replaceClaimed(own, replacement(own.stored));
      this.changed();
    });
  }
}

/** That the storage does not have it, in any state. */
const absenceOf = (id: string): Rows => STATES.map((state) => [recordKey(state, queueId(id)), undefined]);
