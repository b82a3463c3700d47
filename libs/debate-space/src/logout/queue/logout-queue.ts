import {
  type ChangeListener,
  type FoundJob,
  type Job,
  jobFamilies,
  type JobQueue,
  JobStore,
  LEASE_MS,
  MemoryStorage,
  type NewJob,
  type RemoveOptions,
  type Storage,
  type StorageEngine,
  type Transaction,
} from 'durable-jobs';
import type { MaybePromise } from '../../async/maybe-promise.js';
import { plainUidCipher } from '../../secrets/uid-cipher.js';
import type {
  DeliveryProgress,
  FinishedEntry,
  LogoutContext,
  LogoutCounts,
  LogoutEntry,
  LogoutJob,
  Outcome,
  ParkedJob,
  UserHistory,
  WaitingJob,
} from '../logout.js';
import {
  HISTORY_FAMILY,
  LogoutHistory,
  endedAtOf,
  jobIdOf,
  logoutCodec,
  logoutIn,
  progressOf,
  UNREADABLE_HINT,
  UNTRIED,
} from './stored-logout.js';

const NAME = 'logout';
export const QUEUE_FAMILIES: readonly string[] = [...jobFamilies(NAME), HISTORY_FAMILY];

const MAX_HISTORY_IN_MEMORY = 100_000;

/**
 * The logouts of an application, as jobs in a storage. All calls are idempotent; what does not fit the state of the entry is
 * ignored. `add` is synchronous on a storage that is: a logout is stored before the host's own call returns.
 */
export class LogoutQueue implements JobQueue<LogoutJob> {
  readonly #storage: Storage;
  readonly #context: LogoutContext;
  readonly #jobs: JobStore<LogoutJob>;
  readonly #history: LogoutHistory;

  constructor(storage: Storage, { durable }: Pick<StorageEngine, 'durable'>, given: LogoutContext) {
    // A uid that stays in the memory of its process needs no encryption.
    const context = durable ? given : { ...given, uids: plainUidCipher(given.uids) };
    this.#storage = storage;
    this.#context = context;
    this.#history = new LogoutHistory(storage, context, durable ? Infinity : MAX_HISTORY_IN_MEMORY);
    this.#jobs = new JobStore(storage, {
      name: NAME,
      codec: logoutCodec(context),
      unreadableHint: UNREADABLE_HINT,
      onUnreadable: (found) => {
        this.#reportUnreadable(found);
      },
    });
  }

  /** An empty queue of the same application in the memory of this process, without a history. */
  inMemory(): LogoutQueue {
    const storage = new MemoryStorage({ families: QUEUE_FAMILIES });
    return new LogoutQueue(storage, { durable: false }, { ...this.#context, keepFinishedMs: 0 });
  }

  /** Stores logouts that are due now, in one commit. One that is stored already stays as it is. */
  add(entries: readonly LogoutEntry[]): MaybePromise<void> {
    return this.#jobs.add(entries.map((entry) => this.#newJob({ entry, ...UNTRIED })));
  }

  /** Stores a logout that has waited in memory, as far as it has come; with a hint it is parked. */
  async takeOver(job: LogoutJob & Partial<ParkedJob>): Promise<void> {
    await this.#jobs.add([{ ...this.#newJob(job), hint: job.hint }]);
  }

  async claim(limit: number, leaseMs = LEASE_MS): Promise<readonly LogoutJob[]> {
    return (await this.#jobs.claim(limit, leaseMs)).map(({ value }) => value);
  }

  /** Whether this process has claimed it, and recorded no result. */
  isClaimed(id: string): boolean {
    return this.#claimOf(id) !== undefined;
  }

  async renew(jobs: readonly LogoutJob[]): Promise<void> {
    await this.#jobs.renew(jobs.flatMap(({ entry }) => this.#claimOf(entry.id) ?? []));
  }

  async giveBack(jobs: readonly LogoutJob[]): Promise<void> {
    await Promise.all(jobs.map((job) => this.retry(job.entry.id, job, 0)));
  }

  release({ entry }: LogoutJob): void {
    const claim = this.#claimOf(entry.id);
    if (claim) this.#jobs.release(claim);
  }

  async retry(id: string, progress: DeliveryProgress, delayMs: number): Promise<void> {
    const claim = this.#claimOf(id);
    if (claim) await this.#jobs.retry(claim, delayMs, { ...claim.value, ...progressOf(progress) });
  }

  /** Keeps the entry, and delivers it no more until somebody retries it. */
  async park(id: string, progress: DeliveryProgress, hint: string): Promise<void> {
    const claim = this.#claimOf(id);
    if (claim) await this.#jobs.park(claim, hint, { ...claim.value, ...progressOf(progress) });
  }

  /**
   * It is delivered. Keeps a `FinishedEntry` under the hash of the uid; the entry with its uid is gone.
   * @param unstored the entry, if the storage may not have it: then there is only its history to keep
   */
  async finish(id: string, attempts: number, unstored?: LogoutEntry): Promise<void> {
    const claim = this.#claimOf(id);
    const note = (transaction: Transaction, { key, value }: Job<LogoutJob>): void => {
      this.#history.note(transaction, key, { ...value, attempts }, 'delivered');
    };
    const isFinished =
      claim !== undefined &&
      (await this.#jobs.finish(claim, (transaction) => {
        note(transaction, claim);
      }));
    if (!isFinished) await this.#finishUnclaimed(id, attempts, unstored);
  }

  /** Removes a logout whose user is erased. */
  async drop(id: string): Promise<void> {
    await this.#jobs.remove(jobIdOf(id), this.#ending('superseded'));
  }

  /** A parked entry is pending again, due immediately, as if never tried. @returns whether there was one */
  retryParked(id: string): Promise<boolean> {
    return this.#jobs.retryParked(jobIdOf(id), ({ value }) => ({
      ...value,
      ...UNTRIED,
      retriedAt: Date.now(),
    }));
  }

  /** Removes a parked entry. @returns whether there was one */
  discard(id: string): Promise<boolean> {
    return this.#jobs.remove(jobIdOf(id), { ...this.#ending('discarded'), states: ['parked'] });
  }

  /**
   * Removes what is pending for a user who is erased, and ended no later than this; nothing that is parked. One that is
   * under way may still arrive. @returns how many
   */
  async supersede(uid: string, endedUntil: number): Promise<number> {
    let superseded = 0;
    for (const { id, state } of await this.#jobs.find(this.#context.uids.hashes(uid))) {
      const isMeant = state === 'pending' && endedAtOf(id) <= endedUntil;
      const options = { ...this.#ending('superseded'), states: [state] };
      if (isMeant && (await this.#jobs.remove(id, options))) superseded += 1;
    }
    return superseded;
  }

  /** Nothing is claimed for `ms`, by no process; never shortens a pause. */
  pause(ms: number): Promise<void> {
    return this.#jobs.pause(ms);
  }

  nextDueMs(): Promise<number | undefined> {
    return this.#jobs.nextDueMs();
  }

  maintain(): Promise<void> {
    return this.#history.prune();
  }

  onChange(listener: ChangeListener): () => void {
    return this.#jobs.onChange(listener);
  }

  counts(): Promise<LogoutCounts> {
    return this.#jobs.counts();
  }

  /** `endedAt` of the oldest entry that is pending; `undefined` when none is. */
  async oldestPending(): Promise<number | undefined> {
    const [oldest] = await this.#jobs.list('pending', { limit: 1 });
    return oldest && endedAtOf(oldest.id);
  }

  /** At most `limit` parked entries, the longest parked first. @param skip how many to leave out */
  async parked(limit: number, skip = 0): Promise<readonly ParkedJob[]> {
    const found = await this.#jobs.list('parked', { limit, skip });
    return found.map((one) => {
      const { hint = UNREADABLE_HINT, parkedAt = 0 } = one.parked ?? {};
      return { ...logoutIn(one), hint, parkedAt };
    });
  }

  async ofUser(uid: string): Promise<UserHistory> {
    const hashes = this.#context.uids.hashes(uid);
    const finished: FinishedEntry[] = [];
    for (const uidHash of hashes) finished.push(...(await this.#history.of(uidHash)));
    const skewMs = this.#storage.now() - Date.now(); // people read the clock of the machine
    const waiting = (await this.#jobs.find(hashes)).map((found): WaitingJob => {
      const { state, stored, parked } = found;
      if (state === 'parked') return { ...logoutIn(found), state, hint: parked?.hint };
      return { ...logoutIn(found), state, dueAt: stored && this.#jobs.dueAtOf(stored) - skewMs };
    });
    return { waiting, finished };
  }

  /** Waits for the open calls, and closes the storage. */
  async close(): Promise<void> {
    await this.#jobs.idle();
    await this.#storage.close();
  }

  #newJob(value: LogoutJob): NewJob<LogoutJob> {
    const { id, uid } = value.entry;
    return { id: jobIdOf(id), key: this.#context.uids.hash(uid), value };
  }

  #claimOf(id: string): Job<LogoutJob> | undefined {
    return this.#jobs.claimOf(jobIdOf(id));
  }

  /** @param attempts if it is known better than by the record */
  #ending(outcome: Outcome, attempts?: number): RemoveOptions<LogoutJob> {
    return {
      also: (transaction, found) => {
        const logout = logoutIn(found);
        const ended = { ...logout, attempts: attempts ?? logout.attempts };
        if (found.stored) this.#history.note(transaction, found.stored.key, ended, outcome);
      },
    };
  }

  /** The lease was lost, it was parked meanwhile, or the storage does not have it: then its end is noted, once. */
  async #finishUnclaimed(id: string, attempts: number, unstored?: LogoutEntry): Promise<void> {
    const jobId = jobIdOf(id);
    await this.#jobs.transact(jobId, async (transaction) => {
      if (await this.#jobs.removeIn(transaction, jobId, this.#ending('delivered', attempts))) return;
      if (!unstored) return;
      const { uid } = unstored;
      const { finished } = await this.ofUser(uid);
      if (finished.some((one) => one.id === id)) return;
      this.#history.note(
        transaction,
        this.#context.uids.hash(uid),
        { entry: unstored, attempts },
        'delivered',
      );
    });
  }

  #reportUnreadable(found: FoundJob<LogoutJob>): void {
    const {
      entry: { id },
      attempts,
    } = logoutIn(found);
    const about = { id, uid: '', attempts, tookMs: 0, cause: 'unreadable', hint: UNREADABLE_HINT };
    this.#context.emit?.({ type: 'logout-parked', ...about });
  }
}
