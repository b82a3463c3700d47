import { randomBytes } from 'node:crypto';
import type { DueJobs } from './due-jobs.js';
import { STATES, type Job, type JobRecords } from './job-records.js';
import { chain, isPromise, type MaybePromise } from './maybe-promise.js';
import type { TimedStorage } from './timed-storage.js';
import { Transaction } from './transaction.js';

/** A job to be added. See {@link Job}. */
export interface NewJob<T> {
  readonly id: string;
  readonly value: T;
  /** @defaultValue `''` */
  readonly key?: string;
  /** Jobs of priority 0 go before those of 1. @defaultValue 0 */
  readonly priority?: number;
  /** Why it is parked from the beginning, if it is. */
  readonly hint?: string | undefined;
  /** Whether its group is paused, and it is put aside from the beginning. */
  readonly isAside?: boolean;
}

const MAX_UNSURE = 10_000;

/** Adds jobs, each once. */
export class AddedJobs<T> {
  /** Jobs whose addition had an unknown outcome, and whether the storage has given them out since. */
  readonly #unsure = new Map<string, boolean>();
  readonly #lineage = randomBytes(9).toString('base64url');
  #births = 0;

  constructor(
    private readonly storage: TimedStorage,
    private readonly records: JobRecords<T>,
    private readonly due: DueJobs,
  ) {}

  /** In one commit, without a read. Those that are there already stay as they are. */
  add(jobs: readonly NewJob<T>[]): MaybePromise<unknown> {
    const missing = jobs.filter(({ id }) => !this.#hasCome(id));
    if (missing.length === 0) return undefined;
    const transaction = new Transaction(this.storage);
    for (const job of missing) {
      for (const state of STATES) transaction.check(this.records.key(state, job.id), undefined);
      this.#set(transaction, job);
    }
    return chain<boolean, unknown>(
      () => transaction.commit(),
      (isMade) => {
        for (const { id } of missing) this.#unsure.delete(id);
        if (isMade || missing.length === 1) return undefined;
        // One of them is there already; the others are not.
        const each = missing.map((job) => this.add([job]));
        return each.some(isPromise) ? Promise.all(each) : undefined;
      },
      (error) => {
        for (const { id } of missing) this.#unsure.set(id, false);
        const [eldest] = this.#unsure.keys();
        if (this.#unsure.size > MAX_UNSURE && eldest !== undefined) this.#unsure.delete(eldest);
        throw error;
      },
    );
  }

  /** @returns the ids of those that were not there */
  async addIn(transaction: Transaction, jobs: readonly NewJob<T>[]): Promise<readonly string[]> {
    const keys = jobs.flatMap(({ id }) => STATES.map((state) => this.records.key(state, id)));
    const texts = await transaction.getAll(keys);
    const isMissing = (n: number): boolean =>
      STATES.every((_, m) => texts[n * STATES.length + m] === undefined);
    const missing = jobs.filter((_, n) => isMissing(n));
    for (const job of missing) this.#set(transaction, job);
    return missing.map(({ id }) => id);
  }

  /** The storage has given out this job. */
  noteCome(id: string): void {
    if (this.#unsure.has(id)) this.#unsure.set(id, true);
  }

  /** Whether it was added although nobody knew: it may be finished by now, and must not come again. */
  #hasCome(id: string): boolean {
    const hasCome = this.#unsure.get(id) === true;
    if (hasCome) this.#unsure.delete(id);
    return hasCome;
  }

  #set(transaction: Transaction, { id, value, key = '', priority = 0, hint, isAside }: NewJob<T>): void {
    this.#births += 1;
    const born = `${this.#lineage}${this.#births.toString(36)}`;
    const position = this.due.position(priority);
    const due = isAside ? undefined : this.due.key(position, id);
    const job: Job<T> = { id, key, born, position, value };
    const record = this.records.text(job);
    if (hint === undefined) this.records.setPending(transaction, job, record, due);
    else this.records.setParked(transaction, { id, record, hint, parkedAt: Date.now(), since: position });
    this.records.setKey(transaction, job, '');
  }
}
