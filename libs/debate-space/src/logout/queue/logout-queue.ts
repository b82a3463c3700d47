import { chain, type MaybePromise } from '../../async/maybe-promise.js';
import { LEASE_MS, type JobQueue } from '../../jobs/job-queue.js';
import { MemoryStorage } from '../../storage/memory-storage.js';
import type { Rows } from '../../storage/commit-batches.js';
import { recordText } from '../../storage/record-type.js';
import type { DebateSpaceStorage, StorageEngine } from '../../storage/storage.js';
import { plainUidCipher } from '../../secrets/uid-cipher.js';
import { KeyedMutex } from '../../async/keyed-mutex.js';
import { LogoutClaims } from './logout-claims.js';
import { LogoutDesk } from './logout-desk.js';
import { LogoutRecords, rowsOf, STATES, type OwnLogout } from './logout-records.js';
import type { DeliveryProgress, LogoutContext, LogoutEntry, LogoutJob, ParkedJob } from '../logout.js';
import { dueAtOf, QUEUE_FAMILIES, queueId, recordKey, userKey } from './queue-keys.js';
import { LOGOUT, newLogout, progressOf, type StoredLogout } from './stored-logout.js';

const MAX_HISTORY_IN_MEMORY = 100_000;

/**
 * The logouts of an application, in a storage. An entry is held before a session ends, then released when the end is
 * proven or canceled when it was none. A hold whose lease runs out – its process died – becomes due. All calls are
 * idempotent; what does not fit the state of the entry is ignored.
 *
 * A logout is a record in the family of its state, and a row in `due`: its lease, and the token that decides between
 * processes. What this process holds or has claimed it changes without reading it, in one commit. `hold`, `extend`,
 * `release` and `cancel` are synchronous on a storage that is: a logout is stored before the host's own call returns.
 */
export class LogoutQueue extends LogoutDesk implements JobQueue<LogoutJob> {
  readonly #claims: LogoutClaims;
  /** Keeps the order of the calls about one logout. */
  readonly #mutex = new KeyedMutex();

  constructor(
    storage: DebateSpaceStorage,
    { durable }: Pick<StorageEngine, 'durable'>,
    given: LogoutContext,
  ) {
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

  hold(entry: LogoutEntry, leaseMs = LEASE_MS): MaybePromise<void> {
    return this.#mutex.run(entry.id, () => {
      const before = this.own.get(entry.id);
      if (before?.state === 'pending') return undefined;
      const own = before ?? this.#newHold(entry, leaseMs);
      this.own.set(entry.id, own); // it stays when the outcome is unknown, for the call that repeats this one
      const absent: Rows = STATES.map((state) => [recordKey(state, own.id), undefined]);
      return chain(
        () => this.records.commit(absent, [...rowsOf(own), [userKey(own.stored.uidHash, own.id), '']]),
        (isMade) => {
          if (!isMade && !before) this.own.delete(entry.id); // it is in the queue, and not by this process
          this.changed(leaseMs);
        },
      );
    });
  }

  /** Begins the lease of a hold anew. */
  extend(id: string, leaseMs = LEASE_MS): MaybePromise<void> {
    return this.#renewLease('held', id, leaseMs);
  }

  release(id: string): MaybePromise<void> {
    return this.#replaceHeld(id, (stored) => this.records.pending(stored));
  }

  cancel(id: string): MaybePromise<void> {
    return this.#replaceHeld(id, ({ uidHash }) => [[userKey(uidHash, queueId(id)), undefined]]);
  }

  /**
   * Stores an entry that this process could not store before, as far as it has come; with a hint it is parked. What it
   * meets in the storage is the same entry, of a hold of unknown outcome.
   */
  async takeOver({ entry, hint, ...progress }: LogoutJob & Partial<ParkedJob>): Promise<void> {
    await this.hold(entry);
    await this.#replaceHeld(entry.id, (stored) => this.#failed(stored, progress, hint));
  }

  /** In no order with other calls: one without an answer holds up no other. */
  async claim(limit: number, leaseMs = LEASE_MS): Promise<readonly LogoutJob[]> {
    const claimed = await this.#claims.claim(limit, leaseMs);
    for (const { job, own } of claimed) this.own.set(job.entry.id, own);
    return claimed.map(({ job }) => job);
  }

  /** Whether this process has claimed it, and recorded no result. */
  isClaimed(id: string): boolean {
    return this.own.get(id)?.state === 'pending';
  }

  async renew(jobs: readonly LogoutJob[]): Promise<void> {
    await Promise.all(jobs.map(async ({ entry }) => this.#renewLease('pending', entry.id, LEASE_MS)));
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

  /** It is delivered. Keeps a `FinishedEntry` under the hash of the uid; the entry with its uid is gone. */
  async finish(id: string, attempts: number): Promise<void> {
    const finished = (stored: StoredLogout): Rows => this.records.finished(stored, 'delivered', attempts);
    await this.#mutex.run(id, async () => {
      const own = this.own.get(id);
      const isMade = own && (await this.records.replaceClaimed(own, finished(own.stored)));
      // Whether the lease was lost or it was parked meanwhile.
      if (!isMade)
        await this.records.replaceFound(queueId(id), STATES, ({ stored }) => stored && finished(stored));
      this.own.delete(id); // it stays when the outcome is unknown, for the call that repeats this one
    });
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

  #newHold(entry: LogoutEntry, leaseMs: number): OwnLogout {
    const id = queueId(entry.id);
    const due = this.records.due.keyIn(leaseMs, id);
    const stored = newLogout(entry, dueAtOf(due), this.records.context);
    return { id, state: 'held', stored, text: recordText(LOGOUT, stored), due };
  }

  /** The rows of a logout that could not be delivered. @param hint why it is parked; without it, it is due again */
  #failed(stored: StoredLogout, progress: DeliveryProgress, hint?: string, delayMs = 0): Rows {
    const tried = { ...stored, ...progressOf(progress) };
    return hint === undefined
      ? this.records.pending(tried, delayMs)
      : this.records.parked(queueId(stored.id), recordText(LOGOUT, tried), hint);
  }

  /** Moves the due row to the end of a new lease; one of a lease that was lost stays where it is. */
  #renewLease(state: OwnLogout['state'], entryId: string, leaseMs: number): MaybePromise<void> {
    return this.#mutex.run(entryId, () => {
      const own = this.own.get(entryId);
      if (own?.state !== state) return undefined;
      const due = this.records.due.keyIn(leaseMs, own.id);
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

  /** After an unknown outcome this process still holds it, for the call that repeats this one. */
  #replaceHeld(entryId: string, replacement: (stored: StoredLogout) => Rows): MaybePromise<void> {
    return this.#mutex.run(entryId, () => {
      const own = this.own.get(entryId);
      if (own?.state !== 'held') return undefined;
      // An extension may have been made that seemed to have failed; another turn voids its due row.
      const extended = { ...own.stored, turn: own.stored.turn + 1 };
      const replaced = chain(
        () => this.records.replaceOwn(own, replacement(own.stored)),
        (isMade) => isMade || this.records.replaceFound(own.id, ['held'], () => replacement(extended)),
      );
      return chain(
        () => replaced,
        () => {
          this.own.delete(entryId);
          this.#claims.noteOwn(own.id);
          this.changed();
        },
      );
    });
  }

  /** After an unknown outcome it is due when its lease has ended. */
  async #replaceClaimed(entryId: string, replacement: (stored: StoredLogout) => Rows): Promise<void> {
    await this.#mutex.run(entryId, async () => {
      const own = this.own.get(entryId);
      if (own?.state !== 'pending') return;
      this.own.delete(entryId);
      await this.records.replaceClaimed(own, replacement(own.stored));
      this.#claims.noteOwn(own.id);
      this.changed();
    });
  }
}
