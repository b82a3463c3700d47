import { isReadable } from '../storage/record-type.js';
import { rangePages } from '../storage/range-pages.js';
import { Transaction } from '../storage/transaction.js';
import { statusOf } from './erasure-batch.js';
import { readable } from './erasure-change.js';
import { allOf, batchKey, lastPart, momentOf } from './erasure-keys.js';
import type { ErasureStorage } from './erasure-storage.js';
import type { ErasureStatus } from './erasure.js';
import { isReference } from './batch-request.js';
import { BATCH } from './stored-erasure.js';

/** How the references stand. */
export class ErasureRegister {
  readonly #storage: ErasureStorage;
  readonly #overdueAfterMs: number;

  /** @param overdueAfterMs the age at which a reference that is not finished is overdue */
  constructor(storage: ErasureStorage, overdueAfterMs: number) {
    this.#storage = storage;
    this.#overdueAfterMs = overdueAfterMs;
  }

  /** @throws {@link ErasureError} when there is no such reference, or its record cannot be read */
  async status(reference: string): Promise<ErasureStatus> {
    const key = isReference(reference) ? batchKey(reference) : undefined;
    const found = key === undefined ? undefined : await new Transaction(this.#storage.view).read(BATCH, key);
    return statusOf(readable(found), this.#overdueAfterMs, this.#storage.now());
  }

  /** The newest first, without those that cannot be read. */
  async *list(): AsyncGenerator<ErasureStatus> {
    const { view } = this.#storage;
    for await (const rows of rangePages(view, ...allOf('erasurelist'), { reverse: true })) {
      const keys = rows.map(([row]) => batchKey(lastPart(row)));
      for (const batch of await new Transaction(view).readAll(BATCH, keys)) {
        if (isReadable(batch)) yield statusOf(batch, this.#overdueAfterMs, this.#storage.now());
      }
    }
  }

  /** @returns the age of the oldest reference that is not finished, in milliseconds, when it is overdue */
  async overdueMs(): Promise<number | undefined> {
    const [oldest] = await this.#storage.view.range(...allOf('erasureopen'), { limit: 1 });
    const ageMs = oldest ? this.#storage.now() - momentOf(oldest[0]) : 0;
    return ageMs > this.#overdueAfterMs ? ageMs : undefined;
  }
}
