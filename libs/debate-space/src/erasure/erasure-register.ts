import { isReadable, readRecord, type ReadRecord } from '../storage/record-type.js';
import { rangePages } from '../storage/range-pages.js';
import { Transaction } from '../storage/transaction.js';
import { statusOf } from './erasure-batch.js';
import { readable } from './erasure-change.js';
import * as keys from './erasure-keys.js';
import type { ErasureStorage } from './erasure-storage.js';
import type { ErasureReceipt, ErasureStatus } from './erasure.js';
import { isReference } from './batch-request.js';
import { BATCH, RECEIPT, type StoredReceipt } from './stored-erasure.js';

/** How the references stand, and what is kept of finished erasures. */
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
    const key = isReference(reference) ? keys.batchKey(reference) : undefined;
    const found = key === undefined ? undefined : await new Transaction(this.#storage.view).read(BATCH, key);
    return statusOf(readable(found), this.#overdueAfterMs, this.#storage.now());
  }

  /** The newest first, without those that cannot be read. */
  async *list(): AsyncGenerator<ErasureStatus> {
    const { view } = this.#storage;
    for await (const rows of rangePages(view, ...keys.allOf('erasurelist'), { reverse: true })) {
      const batches = rows.map(([row]) => keys.batchKey(keys.lastPart(row)));
      for (const batch of await new Transaction(view).readAll(BATCH, batches)) {
        if (isReadable(batch)) yield statusOf(batch, this.#overdueAfterMs, this.#storage.now());
      }
    }
  }

  /** The receipts of a reference, a page at a time, without those that cannot be read. */
  async *receipts(reference: string): AsyncGenerator<ErasureReceipt> {
    for await (const rows of rangePages(this.#storage.view, ...keys.receiptsOf(reference)))
      for (const [key, text] of rows) yield* receipt(readRecord(RECEIPT, key, text));
  }

  /** The receipts of a user, under all storage keys. */
  async *receiptsOf(uid: string): AsyncGenerator<ErasureReceipt> {
    const { uids, view } = this.#storage;
    for (const uidHash of uids.hashes(uid)) {
      for await (const rows of rangePages(view, ...keys.referencesOf(uidHash))) {
        const receipts = rows.map(([row]) => keys.receiptKey(keys.lastPart(row), uidHash));
        for (const found of await new Transaction(view).readAll(RECEIPT, receipts)) yield* receipt(found);
      }
    }
  }

  /** @returns the age of the oldest reference that is not finished, in milliseconds, when it is overdue; never rejects */
  async overdueMs(): Promise<number | undefined> {
    try {
      const [oldest] = await this.#storage.view.range(...keys.allOf('erasureopen'), { limit: 1 });
      const ageMs = oldest ? this.#storage.now() - keys.momentOf(oldest[0]) : 0;
      return ageMs > this.#overdueAfterMs ? ageMs : undefined;
    } catch {
      return undefined; // the outbox reports a storage that cannot be reached
    }
  }

  /** How many users' erasures are not finished. */
  count(): Promise<number> {
    return this.#storage.count();
  }
}

function receipt(found: ReadRecord<StoredReceipt>): readonly ErasureReceipt[] {
  if (!isReadable(found)) return [];
  const { askedAt, doneAt, ...rest } = found;
  return [{ ...rest, askedAt: new Date(askedAt), doneAt: new Date(doneAt) }];
}
