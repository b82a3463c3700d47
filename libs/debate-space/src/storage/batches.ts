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
  readonly #waiting: Waiting<Item>[] = [];
  #calls = 0;

  constructor(private readonly work: (items: readonly Item[]) => Promise<void>) {}

  /** Settles as the call does that has the item. */
  add(item: Item): Promise<void> {
    return new Promise((resolve, reject) => {
      this.#waiting.push({ item, resolve, reject });
      void this.#next();
    });
  }

  async #next(): Promise<void> {
    if (this.#calls === MAX_CALLS || this.#waiting.length === 0) return;
    const some = this.#waiting.splice(0, MAX_ITEMS);
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
