import { answered } from '../in-time.js';
import { isPromise } from '../is-promise.js';

const ANSWER_WITHIN_MS = 5_000;

/** What an engine must hear of although it did not answer at the time: by id, the last word counts. */
export class OwedChanges {
  readonly #owed = new Map<string, () => void | Promise<void>>();
  readonly #onDebt: () => void;

  constructor(onDebt: () => void) {
    this.#onDebt = onDebt;
  }

  get size(): number {
    return this.#owed.size;
  }

  /**
   * Makes a change now, or else owes it.
   * @throws what the engine throws, so that the caller knows of it
   */
  now(id: string, change: () => void | Promise<void>): void | Promise<void> {
    let result: void | Promise<void>;
    try {
      result = change();
    } catch (error) {
      this.#owe(id, change);
      throw error;
    }
    if (!isPromise(result)) return;
    return result.catch((error: unknown) => {
      this.#owe(id, change);
      throw error;
    });
  }

  /** Makes the changes that are owed. Rejects with the first that fails again; it stays owed. */
  async settle(): Promise<void> {
    for (const [id, change] of [...this.#owed]) {
      await answered(change(), ANSWER_WITHIN_MS);
      if (this.#owed.get(id) === change) this.#owed.delete(id);
    }
  }

  #owe(id: string, change: () => void | Promise<void>): void {
    this.#owed.set(id, change);
    this.#onDebt();
  }
}
