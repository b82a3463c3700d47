import type { ErasureStatus } from './erasure.js';
import { ErasureBatch, statusOf } from './erasure-batch.js';
import * as keys from './erasure-keys.js';
import type { ErasureRecords } from './erasure-records.js';

const AT_ONCE = 250;

export interface UpkeepOptions {
  /** After how long a reference that is not finished is told of, ascending, in milliseconds. */
  readonly overdueAfterMs: readonly number[];
  /** For how long the receipts of a finished reference are kept, in milliseconds. */
  readonly receiptRetentionMs: number;
}

/** What has to be done as time goes by: warnings, and the end of receipts. */
export class ErasureUpkeep {
  readonly #records: ErasureRecords;
  readonly #options: UpkeepOptions;

  constructor(records: ErasureRecords, options: UpkeepOptions) {
    this.#records = records;
    this.#options = options;
  }

  /** @returns the next reference that has to be told of: over all processes, each is given once for each warning */
  async nextOverdue(): Promise<ErasureStatus | undefined> {
    const [key] = await this.#records.keys(keys.until('w', Date.now()), 1);
    if (key === undefined) return undefined;
    return this.#records.change(async (draft) => {
      const now = Date.now();
      const { at, reference } = keys.atAndReference(key);
      const batch = await ErasureBatch.find(draft, reference);
      if (batch?.stored.warnAt !== at) return undefined;
      const { askedAt } = batch.stored;
      const next = this.#options.overdueAfterMs.find((ms) => askedAt + ms > now); // what was missed is told of once
      batch.warnAt(next === undefined ? undefined : askedAt + next);
      batch.save(now);
      return statusOf(reference, batch.stored, 0, now);
    });
  }

  /** Removes the receipts of one reference, a few at a time. @returns whether there was anything to remove */
  async prune(): Promise<boolean> {
    const [key] = await this.#records.keys(keys.until('f', Date.now() - this.#options.receiptRetentionMs), 1);
    if (key === undefined) return false;
    const { at, reference } = keys.atAndReference(key);
    const receipts = await this.#records.keys(keys.receiptsOf(reference), AT_ONCE);
    return this.#records.change(async (draft) => {
      const batch = await ErasureBatch.find(draft, reference);
      if (batch?.stored.finishedAt !== at) return true; // it goes on meanwhile
      for (const receipt of receipts) {
        draft.remove(receipt);
        draft.remove(keys.userKey(keys.lastPart(receipt), reference));
      }
      if (receipts.length < AT_ONCE) batch.remove();
      return true;
    });
  }
}
