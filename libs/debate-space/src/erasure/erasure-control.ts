import type { Draft } from './draft.js';
import type { ErasureMode, ErasureStatus } from './erasure.js';
import { ErasureBatch } from './erasure-batch.js';
import { ErasureEntry } from './erasure-entry.js';
import * as keys from './erasure-keys.js';
import { AT_ONCE, type ErasureLedger } from './erasure-ledger.js';
import type { ErasureRecords } from './erasure-records.js';
import { settleReference } from './settle-reference.js';

/** Stops the work on a reference, and lets it go on. Rejects with an `ErasureError` when there is no such reference. */
export class ErasureControl {
  readonly #records: ErasureRecords;
  readonly #ledger: ErasureLedger;

  constructor(records: ErasureRecords, ledger: ErasureLedger) {
    this.#records = records;
    this.#ledger = ledger;
  }

  async pause(reference: string): Promise<ErasureStatus> {
    await this.#change(reference, ({ stored }) => {
      stored.paused = stored.finishedAt === undefined;
    });
    return this.#ledger.status(reference);
  }

  /** Goes on, also with those that were given up. */
  async resume(reference: string): Promise<ErasureStatus> {
    await this.#change(reference, (batch) => {
      if (batch.stored.paused) batch.stored.resumedAt = Date.now();
      batch.stored.paused = false;
      batch.dueBy(Date.now());
    });
    const { mode } = await this.#ledger.status(reference);
    for await (const chunk of this.#records.walk(keys.parkedOf(reference), AT_ONCE)) {
      await this.#records.change((draft) => revive(draft, chunk.map(keys.lastPart), mode));
    }
    return this.#ledger.status(reference);
  }

  /**
   * Gives up those of which nothing was sent, and those that had been given up already; what else may have been carried out
   * goes on.
   */
  async cancel(reference: string): Promise<ErasureStatus> {
    const { mode, finishedAt } = await this.#ledger.status(reference);
    const goOn = (batch: ErasureBatch): void => {
      Object.assign(batch.stored, { cancelling: true, paused: false });
      batch.dueBy(Date.now()); // what may have been carried out
    };
    if (!finishedAt) await this.#change(reference, goOn);
    for (const range of [keys.dueOf(reference), keys.parkedOf(reference)]) {
      for await (const chunk of this.#records.walk(range, AT_ONCE)) {
        await this.#change(reference, (batch, draft) =>
          cancelSome(draft, batch, chunk.map(keys.lastPart), mode),
        );
      }
    }
    return this.#ledger.status(reference);
  }

  async #change(
    reference: string,
    work: (batch: ErasureBatch, draft: Draft) => void | Promise<void>,
  ): Promise<void> {
    await this.#ledger.status(reference); // or it rejects
    await this.#records.change(async (draft) => {
      const batch = await ErasureBatch.find(draft, reference);
      if (!batch) return; // forgotten just now
      await work(batch, draft);
      batch.save(Date.now());
    });
  }
}

/** Those of which nothing was sent – what is claimed but not sent among them – and, with a receipt, the parked ones. */
async function cancelSome(
  draft: Draft,
  batch: ErasureBatch,
  hashes: readonly string[],
  mode: ErasureMode,
): Promise<void> {
  for (const entry of await ErasureEntry.findAll(draft, hashes, mode)) {
    if (!entry?.stored.references.includes(batch.reference)) continue;
    const { unknown, parked } = entry.stored;
    if (unknown && parked) {
      settleReference(draft, entry, batch, { outcome: 'cancelled', loggedOut: false }, Date.now());
    } else if (!unknown) {
      if (parked) batch.stored.failed -= 1;
      batch.stored.cancelled += 1;
      entry.leave(batch.reference);
    }
  }
}

/** Those that were given up are due again, for each of their references. */
async function revive(draft: Draft, hashes: readonly string[], mode: ErasureMode): Promise<void> {
  const now = Date.now();
  const batches = new Map<string, ErasureBatch>();
  for (const entry of await ErasureEntry.findAll(draft, hashes, mode)) {
    if (!entry?.stored.parked) continue;
    entry.change({ parked: false, dueAt: now, since: now, failures: 0 });
    for (const reference of entry.stored.references) {
      const batch = batches.get(reference) ?? (await ErasureBatch.find(draft, reference));
      if (!batch) continue;
      batches.set(reference, batch);
      batch.stored.failed -= 1;
      batch.dueBy(now);
    }
  }
  for (const batch of batches.values()) batch.save(now);
}
