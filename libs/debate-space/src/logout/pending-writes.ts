import { timeoutOrThrow } from '../with-timeout.js';

type Write = () => unknown;

/** How long one write may take, in milliseconds. */
export const WRITE_TIMEOUT_MS = 5_000;
/** How many are made at a time: many wait after an outage, and a shutdown does not wait long. */
const BATCH = 32;

/** Writes that the storage did not confirm, by id of the logout: the last one of a logout counts, and is repeated. */
export class PendingWrites {
  readonly #writes = new Map<string, Write>();
  /** One at a time: a write that is made again after the one behind it would undo that. */
  #flushing: Promise<void> | undefined;

  get size(): number {
    return this.#writes.size;
  }

  add(id: string, write: Write): void {
    this.#writes.set(id, write);
  }

  delete(id: string): void {
    this.#writes.delete(id);
  }

  /** Makes the writes, several at a time. Rejects when one fails; it stays, with those behind it. */
  flush(): Promise<void> {
    this.#flushing ??= this.#flush().finally(() => (this.#flushing = undefined));
    return this.#flushing;
  }

  async #flush(): Promise<void> {
    while (this.#writes.size > 0) await inBatches([...this.#writes], ([id, write]) => this.#make(id, write));
  }

  async #make(id: string, write: Write): Promise<void> {
    await timeoutOrThrow(write(), WRITE_TIMEOUT_MS);
    if (this.#writes.get(id) === write) this.#writes.delete(id);
  }
}

/** Rejects with the first failure, when all of its batch are over. */
export async function inBatches<T>(items: readonly T[], work: (item: T) => Promise<void>): Promise<void> {
  for (let from = 0; from < items.length; from += BATCH) {
    const results = await Promise.allSettled(items.slice(from, from + BATCH).map(work));
    for (const result of results) if (result.status === 'rejected') throw result.reason;
  }
}
