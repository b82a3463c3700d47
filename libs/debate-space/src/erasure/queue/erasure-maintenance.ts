import { rangePages, Transaction, UnreadableRecord } from 'durable-jobs';
import type { Emit } from '../../events.js';
import { explainUnreadable, openOf, type ErasureChange } from './erasure-batch.js';
import * as records from './erasure-records.js';
import { BATCH, type StoredBatch } from './erasure-records.js';
import type { ErasureStorage } from './erasure-storage.js';

const DAY_MS = 86_400_000;
const PER_COMMIT = 250;
const MAX_COMMITS = 20;

/** Does what time brings: reports what is overdue, and removes old receipts. */
export class ErasureMaintenance {
  /** The references that were reported. */
  readonly #unreadable = new Set<string>();

  /**
   * @param overdueAfterMs ages in ms at which a reference that is not finished emits `erasure-overdue`, ascending
   * @param receiptRetentionMs how long the receipts of a finished reference are kept, in ms
   */
  constructor(
    private readonly storage: ErasureStorage,
    private readonly overdueAfterMs: readonly number[],
    private readonly receiptRetentionMs: number,
    private readonly emit: Emit,
  ) {}

  async run(): Promise<void> {
    await this.#reportOverdue();
    await this.#prune();
  }

  /** Reports a reference that cannot be carried out before its record can be read: each process does so once. */
  reportUnreadable(reference: string, record: UnreadableRecord): void {
    if (this.#unreadable.has(reference)) return;
    this.#unreadable.add(reference);
    this.emit({ type: 'erasure-unreadable', reference, ...explainUnreadable(record) });
  }

  /** Over all processes, each reference is reported once for each age. */
  async #reportOverdue(): Promise<void> {
    if (!this.storage.isSteady(this.overdueAfterMs[0])) return;
    for await (const row of this.#rowsOf('overdue', this.storage.now())) {
      const late = await this.#change(row, async (change, batch) => {
        if (batch.overdueAt !== records.momentOf(row)) return undefined; // another process was faster
        const { reference, mode, since } = batch;
        const next = this.overdueAfterMs.find((ms) => since + ms > change.now); // what was missed is reported once
        (await change.edit()).overdueAt = next === undefined ? undefined : since + next;
        const days = Math.floor((change.now - since) / DAY_MS);
        return { reference, mode, waiting: openOf(batch), days };
      });
      if (late) this.emit({ type: 'erasure-overdue', ...late });
    }
  }

  async #prune(): Promise<void> {
    if (!this.storage.isSteady(this.receiptRetentionMs)) return;
    let commits = 0;
    for await (const row of this.#rowsOf('finished', this.storage.now() - this.receiptRetentionMs)) {
      for (let isMore: boolean | undefined = true; isMore; commits += 1) {
        if (commits === MAX_COMMITS) return; // the rest next time
        isMore = await this.#pruneSome(row);
      }
    }
  }

  /** @returns whether there is more to remove */
  async #pruneSome(row: string): Promise<boolean | undefined> {
    const reference = records.lastPart(row);
    const receipts = await this.storage.view.range(...records.receiptsOf(reference), { limit: PER_COMMIT });
    return this.#change(row, async (change, batch) => {
      // The date of the machine can only object: it may be the storage's clock that was wrong when this was finished.
      const { finishedAt = Infinity, finishedSince } = batch;
      const isOutdated = finishedAt <= Date.now() - this.receiptRetentionMs;
      if (finishedSince !== records.momentOf(row) || !isOutdated) return false;
      await change.edit(); // or the last of its receipts could come meanwhile
      for (const [key] of receipts) {
        change.transaction.set(key, undefined);
        change.transaction.set(records.userKey(records.lastPart(key), reference), undefined);
      }
      if (receipts.length === PER_COMMIT) return true;
      await change.remove();
      return false;
    });
  }

  /** The rows until a moment of batches that can be read: the others stay until they can. */
  async *#rowsOf(kind: 'overdue' | 'finished', until: number): AsyncGenerator<string> {
    const { view } = this.storage;
    for await (const rows of rangePages(view, ...records.timesOf(kind, 0, until + 1))) {
      const found = await new Transaction(view).readAll(BATCH, rows.map(records.batchOf));
      for (const [n, [row]] of rows.entries()) {
        const batch = found[n];
        if (batch instanceof UnreadableRecord) this.reportUnreadable(records.lastPart(row), batch);
        else if (batch) yield row;
      }
    }
  }

  /** Changes the batch that the row leads to, if it can be read. */
  #change<T>(
    row: string,
    work: (change: ErasureChange, batch: StoredBatch) => T | Promise<T>,
  ): Promise<T | undefined> {
    const reference = records.lastPart(row);
    return this.storage.change(reference, async (change) => {
      const batch = await change.find();
      return batch && work(change, batch);
    });
  }
}
