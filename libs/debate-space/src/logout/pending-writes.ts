import { timeoutOrThrow } from '../with-timeout.js';

type Write = () => unknown;

/** How long one write may take, in milliseconds. */
export const WRITE_TIMEOUT_MS = 5_000;

/** Writes that the storage did not confirm, by id of the logout: the last one of a logout counts, and is repeated. */
export class PendingWrites {
  readonly #writes = new Map<string, Write>();

  get size(): number {
    return this.#writes.size;
  }

  add(id: string, write: Write): void {
    this.#writes.set(id, write);
  }

  delete(id: string): void {
    this.#writes.delete(id);
  }

  /** Makes the writes, in order. Rejects with the first that fails; it stays, with those behind it. */
  async flush(): Promise<void> {
    for (const [id, write] of [...this.#writes]) {
      await timeoutOrThrow(write(), WRITE_TIMEOUT_MS);
      if (this.#writes.get(id) === write) this.#writes.delete(id);
    }
  }
}
