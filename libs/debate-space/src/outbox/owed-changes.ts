import { answered } from '../in-time.js';
import { isPromise } from '../is-promise.js';

type Change = () => void | Promise<void>;

const ANSWER_WITHIN_MS = 5_000;

/** What an engine must hear of although it did not answer at the time: by id, the last word counts. */
export class OwedChanges {
  readonly #owed = new Map<string, Change>();
  readonly #onDebt: () => void;

  constructor(onDebt: () => void) {
    this.#onDebt = onDebt;
  }

  get size(): number {
    return this.#owed.size;
  }

  /**
   * Makes a change now, or else owes it.
   * @throws what the engine throws, so that the caller knows of it; also when it does not answer
   */
  now(id: string, change: Change): void | Promise<void> {
    let result: void | Promise<void>;
    try {
      result = change();
    } catch (error) {
      this.add(id, change);
      throw error;
    }
    if (!isPromise(result)) {
      this.#owed.delete(id);
      return;
    }
    return answered(result, ANSWER_WITHIN_MS).then(
      () => { this.#owed.delete(id); }, // prettier-ignore
      (error: unknown) => {
        this.add(id, change);
        throw error;
      },
    );
  }

  add(id: string, change: Change): void {
    this.#owed.set(id, change);
    this.#onDebt();
  }

  /** Makes the changes that are owed. Rejects with the first that fails again; it stays owed. */
  async settle(): Promise<void> {
    for (const [id, change] of [...this.#owed]) {
      await answered(change(), ANSWER_WITHIN_MS);
      if (this.#owed.get(id) === change) this.#owed.delete(id);
    }
  }
}
