import { rangePages, Transaction, UnreadableRecord } from 'durable-jobs';
import type { Emit } from '../../events.js';
import {
  explainUnreadable,
  finishedEvent,
  MAX_WAIT_MS,
  waitingOf,
  type ErasureChange,
} from './erasure-change.js';
import type { ClaimReports } from './erasure-claims.js';
import * as records from './erasure-records.js';
import { BATCH, type StoredBatch } from './erasure-records.js';
import type { ErasureStorage } from './erasure-storage.js';

const DAY_MS = 86_400_000;
const PER_COMMIT = 250;
const MAX_COMMITS = 20;

/** Does what time brings: reports what is overdue, removes old receipts, corrects moments that a wrong clock wrote. */
export class ErasureMaintenance implements ClaimReports {
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
    await this.#pullBack();
  }

  /** Reports a reference that has ended without an attempt. */
  reportEnd(batch: StoredBatch): void {
    this.emit(finishedEvent(batch));
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
      const late = await this.#change(row, (change, batch) => {
        if (batch.overdueAt !== records.momentOf(row)) return undefined; // another process was faster
        const { reference, mode, since, failed } = batch;
        const next = this.overdueAfterMs.find((ms) => since + ms > change.now); // what was missed is reported once
        change.edit(batch).overdueAt = next === undefined ? undefined : since + next;
        const days = Math.floor((change.now - since) / DAY_MS);
        return { reference, mode, waiting: waitingOf(batch) + failed, days };
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
      change.edit(batch); // or the last of its receipts could come meanwhile
      for (const [key] of receipts) {
        change.transaction.set(key, undefined);
        change.transaction.set(records.userKey(records.lastPart(key), reference), undefined);
      }
      if (receipts.length === PER_COMMIT) return true;
      await change.remove(batch);
      return false;
    });
  }

  /**
   * Makes due what a clock that was years ahead has put off for years. A steady clock ages what that has dated years ahead;
   * another may be the one that is wrong.
   */
  async #pullBack(): Promise<void> {
    const isSteady = this.storage.isSteady();
    const latest = this.storage.now() + MAX_WAIT_MS;
    const ranges = [records.timesOf('due', latest)];
    if (isSteady) {
      const overdueBy = latest + (this.overdueAfterMs.at(-1) ?? 0);
      ranges.push(
        records.timesOf('open', latest),
        records.timesOf('finished', latest),
        records.timesOf('overdue', overdueBy),
      );
    }
    for (const range of ranges) {
      for (const [row] of await this.storage.view.range(...range, { limit: PER_COMMIT, reverse: true }))
        await this.#change(row, (change, batch) => {
          pullBack(change, batch, isSteady, this.overdueAfterMs[0]);
        });
    }
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
      const batch = await change.findBatch(reference);
      return batch && work(change, batch);
    });
  }
}

function pullBack(change: ErasureChange, batch: StoredBatch, isSteady: boolean, overdueAfterMs = 0): void {
  const { now } = change;
  change.edit(batch);
  if (batch.dueAt !== undefined) change.dueBy(batch, now);
  if (!isSteady) return;
  for (const moment of ['since', 'resumedSince', 'finishedSince'] as const)
    if ((batch[moment] ?? 0) > now) batch[moment] = now;
  if (batch.overdueAt !== undefined) batch.overdueAt = Math.min(batch.overdueAt, now + overdueAfterMs);
}
