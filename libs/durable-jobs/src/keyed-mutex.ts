import { isPromise, type MaybePromise } from './maybe-promise.js';

/** Runs the work of one key in the order of the calls, and that of different keys concurrently. */
export class KeyedMutex {
  readonly #last = new Map<string, Promise<unknown>>();

  /** Synchronous when nothing of this key is running and `work` is synchronous. */
  run<T>(key: string, work: () => MaybePromise<T>): MaybePromise<T> {
    return this.runAll([key], work);
  }

  /** {@link run}, for work that concerns all of these keys. */
  runAll<T>(keys: readonly string[], work: () => MaybePromise<T>): MaybePromise<T> {
    const before = keys.flatMap((key) => this.#last.get(key) ?? []);
    const result = before.length > 0 ? Promise.all(before).then(work) : work();
    if (!isPromise(result)) return result;
    const settle = (): void => {
      for (const key of keys) if (this.#last.get(key) === last) this.#last.delete(key);
    };
    const last = result.then(settle, settle);
    for (const key of keys) this.#last.set(key, last);
    return result;
  }

  /** Resolves when nothing is running. */
  async idle(): Promise<void> {
    while (this.#last.size > 0) await Promise.all(this.#last.values());
  }
}
