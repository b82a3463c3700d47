import type { Emit } from '../debate-space-event.js';
import { LEASE_MS } from '../jobs/job-queue.js';
import { isReadable } from '../storage/record-type.js';
import { rangePages } from '../storage/range-pages.js';
import { SteadyClock } from '../storage/steady-clock.js';
import { Transaction } from '../storage/transaction.js';
import { statusOf } from './erasure-batch.js';
import type { ErasureChange } from './erasure-change.js';
import { MAX_WAIT_MS } from './erasure-claims.js';
import * as keys from './erasure-keys.js';
import type { ErasureStorage } from './erasure-storage.js';
import type { ErasureStatus } from './erasure.js';
import { BATCH, type StoredBatch } from './stored-erasure.js';

const DAY_MS = 86_400_000;
const PER_COMMIT = 250;
const MAX_COMMITS = 20;

export interface MaintenanceOptions {
  /** Ages in ms at which a reference that is not finished emits `erasure-overdue`, ascending. */
  readonly overdueAfterMs: readonly number[];
  /** How long the receipts of a finished reference are kept, in ms. */
  readonly receiptRetentionMs: number;
}

/** Does what time brings: reports what is overdue, removes old receipts, corrects moments that a wrong clock wrote. */
export class ErasureMaintenance {
  readonly #storage: ErasureStorage;
  readonly #options: MaintenanceOptions;
  readonly #emit: Emit;
  readonly #clock: SteadyClock;

  constructor(storage: ErasureStorage, options: MaintenanceOptions, emit: Emit) {
    this.#storage = storage;
    this.#options = options;
    this.#emit = emit;
    this.#clock = new SteadyClock(storage);
  }

  async run(): Promise<void> {
    await this.#reportOverdue();
    await this.#prune();
    await this.#pullBack();
  }

  /** Over all processes, each reference is reported once for each age. */
  async #reportOverdue(): Promise<void> {
    for await (const row of this.#rowsOf(keys.until('erasureoverdue', this.#storage.now()))) {
      const late = await this.#change(row, (change, batch) => this.#overdue(change, row, batch));
      if (!late) continue;
      const { reference, mode, waiting, failed } = late.status;
      const days = Math.floor(late.ageMs / DAY_MS);
      this.#emit({ type: 'erasure-overdue', reference, mode, waiting: waiting + failed, days });
    }
  }

  #overdue(
    change: ErasureChange,
    row: string,
    batch: StoredBatch | undefined,
  ): { readonly status: ErasureStatus; readonly ageMs: number } | undefined {
    if (batch?.overdueAt !== keys.momentOf(row)) return undefined; // another process was faster
    const { since } = batch;
    const next = this.#options.overdueAfterMs.find((ms) => since + ms > change.now); // what was missed is reported once
    change.edit(batch).overdueAt = next === undefined ? undefined : since + next;
    return { status: statusOf(batch, 0, change.now), ageMs: change.now - since };
  }

  async #prune(): Promise<void> {
    const { receiptRetentionMs } = this.#options;
    if (!this.#clock.isSteady(receiptRetentionMs)) return;
    let commits = 0;
    for await (const row of this.#rowsOf(
      keys.until('erasurefinished', this.#storage.now() - receiptRetentionMs),
    )) {
      for (let isMore = true; isMore; commits += 1) {
        if (commits === MAX_COMMITS) return; // the rest next time
        isMore = await this.#pruneSome(row);
      }
    }
  }

  /** @returns whether there is more to remove */
  async #pruneSome(row: string): Promise<boolean> {
    const reference = keys.lastPart(row);
    const receipts = await this.#storage.view.range(...keys.receiptsOf(reference), { limit: PER_COMMIT });
    return this.#change(row, async (change, batch) => {
      const { transaction } = change;
      // The date of the machine can only object: it may be the storage's clock that was wrong when this was finished.
      const { finishedAt = Infinity, finishedSince } = batch ?? {};
      const isOutdated = finishedAt <= Date.now() - this.#options.receiptRetentionMs;
      if (!batch || finishedSince !== keys.momentOf(row) || !isOutdated) return false;
      change.edit(batch); // or the last of its receipts could come meanwhile
      for (const [key] of receipts) {
        transaction.set(key, undefined);
        transaction.set(keys.userKey(keys.lastPart(key), reference), undefined);
      }
      if (receipts.length === PER_COMMIT) return true;
      await change.remove(batch);
      return false;
    });
  }

  /** Makes due what a clock that was years ahead has put off for years, and ages what it has dated years ahead. */
  async #pullBack(): Promise<void> {
    const now = this.#storage.now();
    const { overdueAfterMs } = this.#options;
    const last = { limit: PER_COMMIT, reverse: true };
    const waiting = await this.#storage.view.range(...keys.after('erasurewait', now + MAX_WAIT_MS), last);
    if (waiting.length > 0) await this.#storage.change('', (change) => pullBackEntries(change, waiting.map(([row]) => row))); // prettier-ignore
    for (const family of ['erasureschedule', 'erasureoverdue', 'erasureopen', 'erasurefinished'] as const) {
      const aheadMs = MAX_WAIT_MS + (family === 'erasureoverdue' ? Math.max(0, ...overdueAfterMs) : 0);
      const rows = await this.#storage.view.range(...keys.after(family, now + aheadMs), last);
      for (const [row] of rows) {
        await this.#change(row, (change, batch) => {
          if (batch) pullBackBatch(change.edit(batch), change.now, overdueAfterMs[0]);
        });
      }
    }
  }

  /** The rows of batches that can be read: the others stay until they can. */
  async *#rowsOf(range: keys.KeyRange): AsyncGenerator<string> {
    const { view } = this.#storage;
    for await (const rows of rangePages(view, ...range)) {
      const batches = rows.map(([row]) => keys.batchKey(keys.lastPart(row)));
      const found = await new Transaction(view).readAll(BATCH, batches);
      for (const [n, [row]] of rows.entries()) if (isReadable(found[n])) yield row;
    }
  }

  /** @param row leads to the batch. The work gets `undefined` when it cannot be read or found. */
  #change<T>(
    row: string,
    work: (change: ErasureChange, batch: StoredBatch | undefined) => T | Promise<T>,
  ): Promise<T> {
    const reference = keys.lastPart(row);
    return this.#storage.change(reference, async (change) => work(change, await change.findBatch(reference)));
  }
}

async function pullBackEntries(change: ErasureChange, rows: readonly string[]): Promise<void> {
  for (const row of rows) {
    const { uidHash, mode } = keys.entryOfWait(row);
    const [entry] = await change.readEntries([uidHash], mode);
    if (!isReadable(entry) || entry.dueAt !== keys.momentOf(row)) {
      change.transaction.set(row, undefined); // leads nowhere
      continue;
    }
    entry.since = Math.min(entry.since, change.now);
    entry.dueAt = change.now + (entry.lease === undefined ? 0 : LEASE_MS); // its process may be alive
    await change.put(entry);
    for (const batch of await change.batchesOf(entry)) change.dueBy(batch, entry.dueAt);
  }
}

function pullBackBatch(batch: StoredBatch, now: number, overdueAfterMs = 0): void {
  for (const moment of ['since', 'resumedSince', 'finishedSince', 'dueAt'] as const)
    if ((batch[moment] ?? 0) > now) batch[moment] = now;
  if (batch.overdueAt !== undefined) batch.overdueAt = Math.min(batch.overdueAt, now + overdueAfterMs);
}
