import { isReadable, readRecord, recordText, SteadyClock, type Storage, type StorageRow } from 'durable-jobs';
import type { FinishedEntry, LogoutContext, Outcome } from '../logout.js';
import { daysBetween, doneAtOf, doneDay, doneKey, donePrefix, endOf, idOf, queueId } from './queue-keys.js';
import { FINISHED, type StoredLogout } from './stored-logout.js';

const BATCH = 500;
const MAX_BATCHES = 20;
const MAX_OF_USER_AND_DAY = 1_000;

/** What is kept of finished logouts, under the hash of the uid. It is removed within a day after its time. */
export class LogoutHistory {
  readonly #keepMs: number;
  readonly #clock: SteadyClock;

  /** @param maxRows how many are kept at most, for a storage in the memory of the process */
  constructor(
    private readonly storage: Storage,
    { keepFinishedMs }: LogoutContext,
    private readonly maxRows = Infinity,
  ) {
    this.#keepMs = keepFinishedMs;
    this.#clock = new SteadyClock(storage);
  }

  /** The rows to write with the change that ends the logout. */
  rows(stored: StoredLogout, outcome: Outcome, attempts: number): readonly StorageRow[] {
    if (this.#keepMs <= 0) return [];
    const { id, reason, endedAt, uidHash } = stored;
    const finished = { id, reason, endedAt, attempts, outcome, finishedAt: Date.now() };
    return [[doneKey(this.storage.now(), uidHash, queueId(id)), recordText(FINISHED, finished)]];
  }

  /** The earliest first. */
  async of(uidHash: string): Promise<readonly FinishedEntry[]> {
    const now = this.storage.now();
    const since = now - this.#keepMs;
    const ranges = daysBetween(since, now).map(async (day) => {
      const prefix = donePrefix(day, uidHash);
      return this.storage.range(prefix, endOf(prefix), { limit: MAX_OF_USER_AND_DAY });
    });
    const rows = (await Promise.all(ranges)).flat().filter(([key]) => doneAtOf(key) > since);
    return rows.map(([key, text]) => readRecord(FINISHED, idOf(key), text)).filter(isReadable);
  }

  async prune(): Promise<void> {
    const outdated = this.#clock.isSteady() ? doneDay(this.storage.now() - this.#keepMs) : 'done:';
    for (let batch = 0; batch < MAX_BATCHES; batch += 1) {
      const isFull = this.maxRows < Infinity && (await this.storage.count('done')) > this.maxRows;
      const to = isFull ? endOf('done:') : outdated;
      const rows = await this.storage.range('done:', to, { limit: BATCH });
      if (rows.length === 0) return;
      await this.storage.commit(new Map(), new Map(rows.map(([key]) => [key, undefined])));
    }
  }
}
