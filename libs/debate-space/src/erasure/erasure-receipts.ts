import type { ErasureReceipt } from './erasure.js';
import * as keys from './erasure-keys.js';
import type { ErasureRecords } from './erasure-records.js';
import type { StoredBatch, StoredReceipt } from './stored-erasure.js';

/** What is kept of the erasures that are over, a few at a time. */
export class ErasureReceipts {
  readonly #records: ErasureRecords;

  constructor(records: ErasureRecords) {
    this.#records = records;
  }

  async *of(reference: string): AsyncGenerator<ErasureReceipt> {
    for await (const chunk of this.#records.walk(keys.receiptsOf(reference))) {
      yield* await this.#receipts(chunk.map((key) => ({ reference, uidHash: keys.lastPart(key) })));
    }
  }

  async *ofUser(uid: string): AsyncGenerator<ErasureReceipt> {
    const uidHash = this.#records.uidHash(uid);
    for await (const chunk of this.#records.walk(keys.referencesOf(uidHash))) {
      yield* await this.#receipts(chunk.map((key) => ({ reference: keys.lastPart(key), uidHash })));
    }
  }

  async #receipts(
    found: readonly { readonly reference: string; readonly uidHash: string }[],
  ): Promise<readonly ErasureReceipt[]> {
    const receipts = await this.#records.get<StoredReceipt>(
      found.map(({ reference, uidHash }) => keys.receiptKey(reference, uidHash)),
    );
    const batches = await this.#records.get<StoredBatch>(
      found.map(({ reference }) => keys.batchKey(reference)),
    );
    return found.flatMap(({ reference, uidHash }, n) => {
      const [receipt, batch] = [receipts[n], batches[n]];
      if (!receipt || !batch) return []; // its time was over just now
      const { askedAt, doneAt, ...rest } = receipt;
      const { mode, requestedBy } = batch;
      const asked = { reference, mode, ...(requestedBy === undefined ? {} : { requestedBy }), uidHash };
      return [{ ...asked, askedAt: new Date(askedAt), doneAt: new Date(doneAt), ...rest }];
    });
  }
}
