import { StorageError } from '../errors.js';

interface Waiting<Item> {
  readonly item: Item;
  readonly resolve: () => void;
  readonly reject: (error: unknown) => void;
}

/** The second call is on its way while the first one commits. */
const MAX_CALLS = 2;
const MAX_ITEMS = 200;

/**
 * Items that come while calls are under way share the next one: a busy database makes fewer and larger commits, and an idle
 * one waits for nothing.
 */
export class Batches<Item> {
  readonly #waiting = new Set<Waiting<Item>>();
  #calls = 0;

  constructor(private readonly work: (items: readonly Item[]) => Promise<void>) {}

  /**
   * Settles as the call does that has the item.
   * @param late when it is aborted while the item waits for a call, the item is withdrawn, and this rejects
   */
  add(item: Item, late?: AbortSignal): Promise<void> {
    return new Promise((resolve, reject) => {
      const waiting = { item, resolve, reject };
      this.#waiting.add(waiting);
      const withdraw = (): void => {
        if (this.#waiting.delete(waiting)) reject(new StorageError('The storage did not take it in time'));
      };
      late?.addEventListener('abort', withdraw, { once: true });
      void this.#next();
    });
  }

  async #next(): Promise<void> {
    if (this.#calls === MAX_CALLS || this.#waiting.size === 0) return;
    const some = [...this.#waiting].slice(0, MAX_ITEMS);
    for (const waiting of some) this.#waiting.delete(waiting);
    this.#calls += 1;
    try {
      await this.work(some.map(({ item }) => item));
      for (const { resolve } of some) resolve();
    } catch (error) {
      for (const { reject } of some) reject(error);
    }
    this.#calls -= 1;
    void this.#next();
  }
}
