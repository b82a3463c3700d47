import { isPromise, type MaybePromise } from './maybe-promise.js';
import type { Storage, StorageValues } from './storage.js';

/** Keys and the values that they must have, or are to have; `undefined`: none. */
export type Rows = readonly (readonly [key: string, value: string | undefined])[];

interface OpenCommit {
  readonly checks: StorageValues;
  readonly changes: StorageValues;
  readonly resolve: (isMade: boolean) => void;
  readonly reject: (error: unknown) => void;
}

const MAX_BATCH = 32;

/**
 * Makes commits of different rows together: while one is under way those that come gather, and are the next one. None
 * waits for anything else. On a storage that answers synchronously it is synchronous.
 */
export class CommitBatches {
  readonly #open: OpenCommit[] = [];
  #isBusy = false;

  /** @param storage answers in time: a commit that did not would hold up those that come later */
  constructor(private readonly storage: Pick<Storage, 'commit'>) {}

  /** @returns whether the changes were made; as with `commit`, a rejection means that nobody knows */
  commit(checks: StorageValues, changes: StorageValues): MaybePromise<boolean> {
    if (this.#isBusy)
      return new Promise((resolve, reject: (error: unknown) => void) => {
        this.#open.push({ checks, changes, resolve, reject });
      });
    const made = this.storage.commit(checks, changes);
    if (!isPromise(made)) return made;
    this.#isBusy = true;
    const next = (): void => void this.#work();
    made.then(next, next);
    return made;
  }

  async #work(): Promise<void> {
    while (this.#open.length > 0) await this.#commit(this.#open.splice(0, MAX_BATCH));
    this.#isBusy = false;
  }

  async #commit(batch: readonly OpenCommit[]): Promise<void> {
    const checks = new Map(batch.flatMap((one) => [...one.checks]));
    const changes = new Map(batch.flatMap((one) => [...one.changes]));
    try {
      const isMade = await this.storage.commit(checks, changes);
      if (isMade || batch.length === 1) for (const { resolve } of batch) resolve(isMade);
      else await Promise.all(batch.map((one) => this.#commit([one]))); // another process has preceded one of them
    } catch (error) {
      for (const { reject } of batch) reject(error);
    }
  }
}
