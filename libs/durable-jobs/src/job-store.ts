import { randomUUID } from 'node:crypto';
import { AddedJobs, type NewJob } from './added-jobs.js';
import type { HeldJob } from './held-jobs.js';
import { JobReader, type JobStoreOptions } from './job-reader.js';
import { JobClaims } from './job-claims.js';
import { LEASE_MS, type ChangeListener, type JobQueue } from './job-kind.js';
import { priorityOf, STATES, type FoundJob, type Job, type JobState } from './job-records.js';
import { chain, type MaybePromise } from './maybe-promise.js';
import type { Storage } from './storage.js';
import { transact, Transaction } from './transaction.js';

/** What to do with a job that was found. */
export interface RemoveOptions<T> {
  /** In which states it is removed. @defaultValue all */
  readonly states?: readonly JobState[];
  /** Called in the transaction that removes it, to change rows of the caller in the same commit. */
  readonly also?: (transaction: Transaction, found: FoundJob<T>) => void;
}

/**
 * The jobs of one kind in a storage. A job is pending until it is finished, parked or removed; several processes may claim
 * from the same storage, and nobody else gets a job during its lease. Every call may be repeated: after a rejection nobody
 * knows whether the change was made.
 *
 * Methods whose names end in `In` take part in a transaction, see {@link transact}. On a storage that answers
 * synchronously, `add` and the changes of claimed jobs are synchronous.
 */
export class JobStore<T> extends JobReader<T> implements JobQueue<Job<T>> {
  readonly #added: AddedJobs<T>;
  readonly #claims: JobClaims<T>;
  readonly #onUnreadable: JobStoreOptions<T>['onUnreadable'];
  readonly #listeners = new Set<ChangeListener>();

  constructor(storage: Storage, options: JobStoreOptions<T>) {
    super(storage, options);
    this.#onUnreadable = options.onUnreadable;
    this.#claims = new JobClaims(this.storage, this.records, this.due, options.unreadableHint);
    this.#added = new AddedJobs(this.storage, this.records, this.due);
  }

  /** Adds jobs that are due now, in one commit without a read. One whose id is there already stays as it is. */
  add(jobs: readonly NewJob<T>[]): MaybePromise<void> {
    const unique = once(jobs);
    const ids = unique.map(({ id }) => id);
    return chain(
      () => this.mutex.runAll(ids, () => this.#added.add(unique)),
      () => {
        this.#changed();
      },
    );
  }

  /** See {@link add}. @returns the ids of the jobs that did not exist yet */
  addIn(transaction: Transaction, jobs: readonly NewJob<T>[]): Promise<readonly string[]> {
    this.#changedBy(transaction);
    return this.#added.addIn(transaction, once(jobs));
  }

  /**
   * Takes at most `limit` jobs that are due, the first ones first. One that this process is still at, because it hung for
   * longer than its lease, keeps a new lease and is not given out again.
   */
  async claim(limit: number, leaseMs = LEASE_MS): Promise<readonly Job<T>[]> {
    const { claimed, unreadable } = await this.#claims.claim(limit, leaseMs);
    for (const found of unreadable) this.#onUnreadable?.(found);
    for (const { claim } of claimed) this.#added.noteCome(claim.id);
    return claimed.filter((held) => this.held.take(held)).map(({ claim }) => claim);
  }

  /** Forgets a claim that is not executed any more. */
  release(claim: Job<T>): void {
    const held = this.held.of(claim);
    if (held) this.held.drop(held);
  }

  async renew(claims: readonly Job<T>[]): Promise<void> {
    const leaseOf = ({ claim: { position, id } }: HeldJob<T>): string =>
      this.due.keyIn(priorityOf(position), LEASE_MS, id);
    await this.held.move(claims, leaseOf, true);
  }

  async giveBack(claims: readonly Job<T>[]): Promise<void> {
    await this.held.move(claims, ({ wasDue }) => wasDue, false);
    if (claims.length > 0) this.#changed();
  }

  /** Changes the value of a claimed job, which stays claimed. @returns `false` when the claim was lost */
  updateIn(transaction: Transaction, claim: Job<T>, value: T): Promise<boolean> {
    return this.held.changeIn(transaction, claim, (held) => {
      const text = this.records.text({ ...claim, value });
      transaction.set(this.records.key('pending', claim.id), text);
      transaction.afterCommit(() => {
        held.text = text;
      });
    });
  }

  /** It is due again after the delay. @returns `false` when the claim was lost: nothing was changed */
  retry(claim: Job<T>, delayMs: number, value = claim.value): MaybePromise<boolean> {
    const retry = (): MaybePromise<boolean> =>
      this.held.change(claim, (transaction) => {
        this.#setPending(transaction, { ...claim, value }, delayMs);
      });
    return chain(retry, (isMade) => {
      this.#changed();
      return isMade;
    });
  }

  /** See {@link retry}. */
  retryIn(transaction: Transaction, claim: Job<T>, delayMs: number, value = claim.value): Promise<boolean> {
    return this.held.changeIn(transaction, claim, (held) => {
      this.#setPending(transaction, { ...claim, value }, delayMs);
      this.#endIn(transaction, held);
      this.#changedBy(transaction);
    });
  }

  /**
   * It is not due again before somebody retries it.
   * @param hint why, and what to do about it
   * @returns `false` when the claim was lost: nothing was changed
   */
  park(claim: Job<T>, hint: string, value = claim.value): MaybePromise<boolean> {
    return this.held.change(claim, (transaction, held) => {
      this.#setParked(transaction, held, hint, value);
    });
  }

  /** See {@link park}. */
  parkIn(transaction: Transaction, claim: Job<T>, hint: string, value = claim.value): Promise<boolean> {
    return this.held.changeIn(transaction, claim, (held) => {
      this.#setParked(transaction, held, hint, value);
      this.#endIn(transaction, held);
    });
  }

  /**
   * The job is done. It is removed although the lease was lost: what is done is done.
   * @param also changes rows of the caller in the same commit; it may be called twice
   * @returns whether it was there; `false`: nothing was changed
   */
  finish(claim: Job<T>, also?: (transaction: Transaction) => void): MaybePromise<boolean> {
    const gone = (transaction: Transaction): void => {
      this.records.remove(transaction, { id: claim.id, state: 'pending' }, claim);
      also?.(transaction);
    };
    const anyway = (): Promise<boolean> =>
      transact(this.storage, async (transaction) => {
        const isThere = await this.finishIn(transaction, claim);
        if (isThere) also?.(transaction);
        return isThere;
      });
    return this.mutex.run(claim.id, () => {
      const held = this.held.of(claim);
      // After an unknown outcome it stays held, for the call that repeats this one.
      return chain(
        () => held !== undefined && this.held.commit([held], gone),
        (isMade) => {
          if (held) this.held.drop(held);
          return isMade || anyway();
        },
      );
    });
  }

  /** See {@link finish}. */
  async finishIn(transaction: Transaction, claim: Job<T>): Promise<boolean> {
    const [found] = await this.findIn(transaction, [claim.id]);
    if (found?.stored?.born !== claim.born) return false;
    await this.#removeIn(transaction, found);
    return true;
  }

  /**
   * Removes a job in any state. If another process is executing the job, it is not stopped.
   * @returns whether it was there
   */
  async remove(id: string, options: RemoveOptions<T> = {}): Promise<boolean> {
    return this.transact(id, (transaction) => this.removeIn(transaction, id, options));
  }

  /** See {@link remove}. */
  async removeIn(
    transaction: Transaction,
    id: string,
    { states = STATES, also }: RemoveOptions<T> = {},
  ): Promise<boolean> {
    const [found] = await this.findIn(transaction, [id]);
    if (!found || !states.includes(found.state)) return false;
    await this.#removeIn(transaction, found);
    also?.(transaction, found);
    return true;
  }

  /**
   * A parked job is due now.
   * @param change returns its new value; `undefined`: it stays parked
   * @returns `false` when it is not parked, or cannot be read
   */
  async retryParked(id: string, change?: (job: Job<T>) => T | undefined): Promise<boolean> {
    return this.transact(id, (transaction) => this.retryParkedIn(transaction, id, change));
  }

  /** See {@link retryParked}. */
  async retryParkedIn(
    transaction: Transaction,
    id: string,
    change: (job: Job<T>) => T | undefined = ({ value }) => value,
  ): Promise<boolean> {
    const [found] = await this.findIn(transaction, [id]);
    const value = found?.state === 'parked' && found.job ? change(found.job) : undefined;
    if (!found?.job || value === undefined) return false;
    this.records.remove(transaction, found, found.job);
    this.#setPending(transaction, { ...found.job, value }, 0);
    this.records.setKey(transaction, found.job, '');
    this.#changedBy(transaction);
    return true;
  }

  /** Nothing is claimed for `ms`, at most a day, by no process; never shortens a pause. */
  async pause(ms: number): Promise<void> {
    await this.due.pause(ms);
  }

  /** Nothing of the group is claimed any more before it is resumed. @returns `false` when it was paused already */
  async pauseGroupIn(transaction: Transaction, group: string): Promise<boolean> {
    if (await this.isPausedIn(transaction, group)) return false;
    transaction.set(this.records.key('paused', group), `paused ${randomUUID()}`);
    return true;
  }

  /** Makes the jobs due again that the pause has put aside. @returns `false` when it is not paused */
  async resumeGroupIn(transaction: Transaction, group: string): Promise<boolean> {
    if (!(await this.isPausedIn(transaction, group))) return false;
    const id = randomUUID();
    transaction.set(this.records.key('paused', group), `resumed ${id}`);
    transaction.set(this.due.keyIn(0, 0, `${group}/`), id);
    this.#changedBy(transaction);
    return true;
  }

  async isPausedIn(transaction: Transaction, group: string): Promise<boolean> {
    return (await transaction.get(this.records.key('paused', group)))?.startsWith('paused') ?? false;
  }

  nextDueMs(): Promise<number | undefined> {
    return this.due.nextMs();
  }

  /** Nothing is ever outdated here. */
  maintain(): void {
    return undefined;
  }

  onChange(listener: ChangeListener): () => void {
    this.#listeners.add(listener);
    return () => this.#listeners.delete(listener);
  }

  /**
   * Runs `work` when no other call about this job is under way, nor its renewal; those that come later wait for it.
   * @param work must call no other method of this store about the job but those whose names end in `In`
   */
  async exclusively<R>(id: string, work: () => Promise<R>): Promise<R> {
    return this.mutex.run(id, work);
  }

  /**
   * Like {@link transact}, in the order of the calls about one job, with a time limit for each call to the storage.
   * @param work must call no other method of this store but those whose names end in `In`
   */
  async transact<R>(id: string, work: (transaction: Transaction) => R | Promise<R>): Promise<R> {
    return this.exclusively(id, () => transact(this.storage, work));
  }

  /** Resolves when no call is under way. */
  idle(): Promise<void> {
    return this.mutex.idle();
  }

  #setPending(transaction: Transaction, job: Job<T>, delayMs: number): void {
    const position = this.due.position(priorityOf(job.position), delayMs);
    const text = this.records.text({ ...job, position });
    this.records.setPending(transaction, job, text, this.due.key(position, job.id));
  }

  #setParked(transaction: Transaction, { claim }: HeldJob<T>, hint: string, value: T): void {
    const record = this.records.text({ ...claim, value });
    const since = this.due.position(0);
    this.records.setParked(transaction, { id: claim.id, record, hint, parkedAt: Date.now(), since });
  }

  /** The claim ends with the transaction. */
  #endIn(transaction: Transaction, held: HeldJob<T>): void {
    transaction.set(held.due, undefined);
    transaction.afterCommit(() => {
      this.held.drop(held);
    });
  }

  async #removeIn(transaction: Transaction, found: FoundJob<T>): Promise<void> {
    const { id, state, stored, parked } = found;
    this.records.remove(transaction, found, stored);
    if (state === 'pending') transaction.set(this.records.key('aside', id), undefined);
    const held = this.held.get(id);
    // Without a read: where the row is not there any more, its claim belongs to another process.
    if (stored && state === 'pending') transaction.set(this.due.key(stored.position, id), undefined);
    if (held) {
      transaction.set(held.due, undefined);
      transaction.afterCommit(() => {
        this.held.drop(held);
      });
    }
    if (!stored) await this.removeRowsOf(transaction, 'key', id);
    if (state === 'parked' && !parked) await this.removeRowsOf(transaction, 'since', id);
  }

  #changed(): void {
    for (const listener of this.#listeners) listener();
  }

  #changedBy(transaction: Transaction): void {
    transaction.afterCommit(() => {
      this.#changed();
    });
  }
}

/** Each id once: the last one of it. */
function once<T>(jobs: readonly NewJob<T>[]): readonly NewJob<T>[] {
  return jobs.length > 1 ? [...new Map(jobs.map((job) => [job.id, job])).values()] : jobs;
}
