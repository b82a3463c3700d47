import { isPromise, type MaybePromise } from './maybe-promise.js';
import type { RangeOptions, Storage, StorageRow, StorageValues } from './storage.js';
import { timeoutOrThrow } from './with-timeout.js';

/** How long one call to a storage may take. */
const CALL_TIMEOUT_MS = 5_000;

/** A storage that keeps silent must not hold up what follows for good: here each call rejects after 5 s. */
export class TimedStorage {
  constructor(private readonly storage: Storage) {}

  get(keys: readonly string[]): MaybePromise<readonly (string | undefined)[]> {
    return inTime(this.storage.get(keys));
  }

  range(from: string, to: string, options: RangeOptions): MaybePromise<readonly StorageRow[]> {
    return inTime(this.storage.range(from, to, options));
  }

  count(family: string): MaybePromise<number> {
    return inTime(this.storage.count(family));
  }

  /** @param onLate called when the changes were made after the call had rejected; must not throw or reject */
  commit(checks: StorageValues, changes: StorageValues, onLate?: () => unknown): MaybePromise<boolean> {
    const made = this.storage.commit(checks, changes);
    if (!isPromise(made) || !onLate) return inTime(made);
    let isOver = false;
    const lateOnly = (isMade: boolean): void => {
      if (isMade && isOver) onLate();
    };
    made.then(lateOnly, () => undefined);
    return timeoutOrThrow(made, CALL_TIMEOUT_MS).catch((error: unknown) => {
      isOver = true;
      throw error;
    });
  }

  now(): number {
    return this.storage.now();
  }
}

function inTime<T>(answer: MaybePromise<T>): MaybePromise<T> {
  return isPromise(answer) ? timeoutOrThrow(answer, CALL_TIMEOUT_MS) : answer;
}
