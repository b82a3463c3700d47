import type { ErasureChange } from './erasure-change.js';
import type { ErasureStorage } from './erasure-storage.js';

interface Gathered {
  /** What the work reads. */
  readonly keys: readonly string[];
  /** @returns what is to be called after the commit */
  readonly make: (change: ErasureChange) => Promise<() => void>;
  readonly reject: (error: unknown) => void;
}

const MAX_GATHERED = 32;

/** Changes of a reference that come while another one is made are one commit. None waits for anything else. */
export class GatheredChanges {
  /** By reference: those that are not being made yet. */
  readonly #open = new Map<string, Gathered[]>();

  constructor(private readonly storage: ErasureStorage) {}

  /**
   * Like {@link ErasureStorage.change}, for work that reads single records only: a range does not show what the commit
   * changes.
   * @param keys what the work reads, requested for all in one round trip
   */
  make<T>(
    reference: string,
    keys: readonly string[],
    work: (change: ErasureChange) => Promise<T>,
  ): Promise<T> {
    return new Promise<T>((resolve, reject: (error: unknown) => void) => {
      const make = async (change: ErasureChange): Promise<() => void> => {
        const result = await work(change);
        return () => {
          resolve(result);
        };
      };
      const gathered = this.#open.get(reference);
      if (gathered && gathered.push({ keys, make, reject }) < MAX_GATHERED) return;
      if (gathered) this.#open.delete(reference);
      else this.#begin(reference, { keys, make, reject });
    });
  }

  #begin(reference: string, first: Gathered): void {
    const gathered = [first];
    this.#open.set(reference, gathered);
    queueMicrotask(() => void this.#commit(reference, gathered)); // what is called in one go is gathered
  }

  async #commit(reference: string, gathered: readonly Gathered[]): Promise<void> {
    try {
      const done = await this.storage.change(reference, async (change) => {
        if (this.#open.get(reference) === gathered) this.#open.delete(reference);
        await change.transaction.getAll(gathered.flatMap(({ keys }) => keys));
        const settle: (() => void)[] = [];
        for (const { make } of gathered) settle.push(await make(change));
        return settle;
      });
      for (const settle of done) settle();
    } catch (error) {
      const [only] = gathered;
      // One that fails – for Postgres, one that an open transaction of the host locks – must not take the others with it.
      if (gathered.length === 1) only?.reject(error);
      else await Promise.all(gathered.map((one) => this.#commit(reference, [one])));
    }
  }
}
