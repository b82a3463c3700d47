import type { ErasureLedger } from './erasure-ledger.js';

/** Whether erasures wait for too long, for whoever looks after the health of the app. */
export class OverdueErasures {
  readonly #ledger: ErasureLedger;
  readonly #overdueAfterMs: number;

  constructor(ledger: ErasureLedger, overdueAfterMs: number) {
    this.#ledger = ledger;
    this.#overdueAfterMs = overdueAfterMs;
  }

  /** @returns how long ago the oldest was asked for, in milliseconds, if that is too long ago; never rejects */
  async oldestMs(): Promise<number | undefined> {
    const askedAt = await this.#ledger.oldestOpen().catch(() => undefined); // of the engine itself others tell
    const ageMs = askedAt === undefined ? 0 : Date.now() - askedAt;
    return ageMs > this.#overdueAfterMs ? ageMs : undefined;
  }
}
