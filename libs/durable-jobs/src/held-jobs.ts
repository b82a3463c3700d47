import { CommitBatches } from './commit-batches.js';
import type { Job, JobRecords } from './job-records.js';
import type { KeyedMutex } from './keyed-mutex.js';
import { chain, isPromise, type MaybePromise } from './maybe-promise.js';
import type { TimedStorage } from './timed-storage.js';
import { Transaction } from './transaction.js';

/** A job that this process has claimed: enough to change it in one commit without a read. */
export interface HeldJob<T> {
  readonly claim: Job<T>;
  /** The text of its record. */
  text: string;
  /** The key of its due row, at the end of the lease. */
  due: string;
  /** The key that its due row had before. */
  readonly wasDue: string;
}

/** The jobs that this process has claimed. Each change of one checks its due row and its record. */
export class HeldJobs<T> {
  readonly #byId = new Map<string, HeldJob<T>>();
  readonly #batches: CommitBatches;

  constructor(
    private readonly storage: TimedStorage,
    private readonly records: Pick<JobRecords<T>, 'key'>,
    /** Keeps the order of the calls about one job. */
    private readonly mutex: KeyedMutex,
  ) {
    this.#batches = new CommitBatches(storage);
  }

  /** @returns `undefined` when the claim was lost, or its job was changed since */
  of(claim: Job<T>): HeldJob<T> | undefined {
    const held = this.#byId.get(claim.id);
    return held?.claim === claim ? held : undefined;
  }

  get(id: string): HeldJob<T> | undefined {
    return this.#byId.get(id);
  }

  /**
   * Takes a job that was claimed. One that this process is still at, because it hung for longer than its lease, goes on
   * with the new lease.
   * @returns whether it is to be carried out
   */
  take(held: HeldJob<T>): boolean {
    const before = this.#byId.get(held.claim.id);
    if (before?.claim.born !== held.claim.born) {
      this.#byId.set(held.claim.id, held);
      return true;
    }
    before.due = held.due;
    before.text = held.text;
    return false;
  }

  drop(held: HeldJob<T>): void {
    if (this.#byId.get(held.claim.id) === held) this.#byId.delete(held.claim.id);
  }

  /** Sets the rows with which a claim ends, without a read. After an unknown outcome the job is due when its lease ends. */
  change(claim: Job<T>, work: (transaction: Transaction, held: HeldJob<T>) => void): MaybePromise<boolean> {
    return this.mutex.run(claim.id, () => {
      const held = this.of(claim);
      if (!held) return false;
      this.drop(held);
      return this.commit([held], work);
    });
  }

  /** Like {@link change}, as part of a transaction; the claim is still held. @param work gets a claim that is not lost */
  async changeIn(
    transaction: Transaction,
    claim: Job<T>,
    work: (held: HeldJob<T>) => void,
  ): Promise<boolean> {
    const held = this.of(claim);
    if (!held) return false;
    const [born, text] = await transaction.getAll([held.due, this.records.key('pending', claim.id)]);
    if (born !== claim.born || text !== held.text) return false;
    work(held);
    return true;
  }

  /**
   * Moves the due rows of claims, in one commit. A claim that was lost stays lost.
   * @param dueOf the key of the row that takes the place of the lease
   * @param isKept whether they stay claimed
   */
  move(
    claims: readonly Job<T>[],
    dueOf: (held: HeldJob<T>) => string,
    isKept: boolean,
  ): MaybePromise<unknown> {
    const ids = claims.map(({ id }) => id);
    return this.mutex.runAll(ids, () => {
      const held = claims.flatMap((claim) => this.of(claim) ?? []);
      if (!isKept) for (const one of held) this.drop(one);
      return this.#move(held, dueOf);
    });
  }

  #move(held: readonly HeldJob<T>[], dueOf: (held: HeldJob<T>) => string): MaybePromise<unknown> {
    if (held.length === 0) return undefined;
    const moved = new Map(held.map((one) => [one, dueOf(one)]));
    const commit = (): MaybePromise<boolean> =>
      this.commit(held, (transaction, one) => {
        transaction.set(moved.get(one) ?? one.due, one.claim.born);
      });
    return chain<boolean, unknown>(commit, (isMade) => {
      if (isMade) for (const [one, due] of moved) one.due = due;
      else if (held.length === 1) for (const one of held) this.drop(one);
      else {
        const each = held.map((one) => this.#move([one], dueOf));
        return each.some(isPromise) ? Promise.all(each) : undefined;
      }
      return undefined;
    });
  }

  /** @returns `false` when one of the claims was lost; a rejection means that nobody knows */
  commit(
    held: readonly HeldJob<T>[],
    work: (transaction: Transaction, held: HeldJob<T>) => void,
  ): MaybePromise<boolean> {
    const transaction = new Transaction({
      get: (keys) => this.storage.get(keys),
      commit: (checks, changes) => this.#batches.commit(checks, changes),
    });
    for (const one of held) {
      transaction.check(one.due, one.claim.born);
      transaction.check(this.records.key('pending', one.claim.id), one.text);
      transaction.set(one.due, undefined);
      work(transaction, one);
    }
    return transaction.commit();
  }
}
