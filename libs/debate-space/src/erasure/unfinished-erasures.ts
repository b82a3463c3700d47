import type { ErasureLedger } from './erasure-ledger.js';

/** What is not finished, for whoever looks after the health of the app. */
export class UnfinishedErasures {
  readonly #ledger: ErasureLedger;
  readonly #overdueAfterMs: number;

  constructor(ledger: ErasureLedger, overdueAfterMs: number) {
    this.#ledger = ledger;
    this.#overdueAfterMs = overdueAfterMs;
  }

  /** @returns how long ago the oldest was asked for, in milliseconds, if that is too long ago; never rejects */
  async overdueMs(): Promise<number | undefined> {
    const askedAt = await this.#ledger.oldestOpen().catch(() => undefined); // of the engine itself others tell
    const ageMs = askedAt === undefined ? 0 : Date.now() - askedAt;
    return ageMs > this.#overdueAfterMs ? ageMs : undefined;
  }

  /** How many users are not erased yet. Looks at every reference. */
  async count(): Promise<number> {
    let count = 0;
    for await (const { waiting, failed } of this.#ledger.list()) count += waiting + failed;
    return count;
  }
}
