import { rangePages } from '../storage/range-pages.js';
import { isReadable, readRecord, type ReadRecord } from '../storage/record-type.js';
import { Transaction } from '../storage/transaction.js';
import type { ErasureReceipt } from './erasure.js';
import * as keys from './erasure-keys.js';
import type { ErasureStorage } from './erasure-storage.js';
import { RECEIPT, type StoredReceipt } from './stored-erasure.js';

/** What is kept of finished erasures, a page at a time. A receipt that cannot be read is skipped. */
export class ErasureReceipts {
  readonly #storage: ErasureStorage;

  constructor(storage: ErasureStorage) {
    this.#storage = storage;
  }

  async *of(reference: string): AsyncGenerator<ErasureReceipt> {
    for await (const rows of rangePages(this.#storage.view, ...keys.receiptsOf(reference)))
      for (const [key, text] of rows) yield* receipt(readRecord(RECEIPT, key, text));
  }

  async *ofUser(uid: string): AsyncGenerator<ErasureReceipt> {
    const { uids, view } = this.#storage;
    for (const uidHash of uids.hashes(uid)) {
      for await (const rows of rangePages(view, ...keys.referencesOf(uidHash))) {
        const receipts = rows.map(([row]) => keys.receiptKey(keys.lastPart(row), uidHash));
        for (const found of await new Transaction(view).readAll(RECEIPT, receipts)) yield* receipt(found);
      }
    }
  }
}

function receipt(found: ReadRecord<StoredReceipt>): readonly ErasureReceipt[] {
  if (!isReadable(found)) return [];
  const { askedAt, doneAt, ...rest } = found;
  return [{ ...rest, askedAt: new Date(askedAt), doneAt: new Date(doneAt) }];
}
