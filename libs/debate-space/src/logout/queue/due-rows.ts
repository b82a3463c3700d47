import type { Storage, StorageRow } from 'durable-jobs';
import { dueAtOf, dueKey, dueKeysUntil, endOf, idOf, PAUSE_KEY } from './queue-keys.js';
import { transact } from '../../storage-errors.js';

/** Nothing waits longer: a row that is farther ahead was written when the clock was ahead. */
const MAX_WAIT_MS = 86_400_000;
/** Leaves the process that has claimed such a logout the time to renew its lease. */
const PULLED_BACK_MS = 60_000;
const PULLED_BACK = 32;

/** When logouts are due, and the pause of all of them. */
export class DueRows {
  #lastMicros = 0;

  constructor(private readonly storage: Storage) {}

  /** Now, in microseconds, and later than the last time: what comes within a millisecond keeps its order. */
  micros(): number {
    this.#lastMicros = Math.max(Math.floor(this.storage.now()) * 1000, this.#lastMicros + 1);
    return this.#lastMicros;
  }

  keyIn(ms: number, id: string): string {
    return dueKey(ms > 0 ? (this.storage.now() + ms) * 1000 : this.micros(), id);
  }

  /** Those that are due, the earliest first; none during a pause. */
  async first(limit: number): Promise<readonly StorageRow[]> {
    const now = this.storage.now();
    const rows = await this.storage.range(PAUSE_KEY, dueKeysUntil(now), { limit: limit + 1 });
    return pausedMs(rows, now) > 0 ? [] : rows.filter(([key]) => key !== PAUSE_KEY).slice(0, limit);
  }

  /** Milliseconds until the first is due, or until the pause has ended when that is later. */
  async nextMs(): Promise<number | undefined> {
    const rows = await this.storage.range(PAUSE_KEY, endOf('due:'), { limit: 2 });
    const first = rows.find(([key]) => key !== PAUSE_KEY);
    const now = this.storage.now();
    return first && Math.max(0, dueAtOf(first[0]) - now, pausedMs(rows, now));
  }

  /** Never shortens a pause. */
  async pause(ms: number): Promise<void> {
    await transact(this.storage, async (transaction) => {
      const now = this.storage.now();
      const before = await transaction.get(PAUSE_KEY);
      if (before !== undefined && pausedMs([[PAUSE_KEY, before]], now) >= ms) return;
      transaction.set(PAUSE_KEY, String(now + Math.min(ms, MAX_WAIT_MS)));
    });
  }

  /** Makes due soon what a clock that was years ahead has put off for years. */
  async pullBack(): Promise<void> {
    const now = this.storage.now();
    const last = { limit: PULLED_BACK, reverse: true };
    const rows = await this.storage.range('due:0', endOf('due:'), last);
    const late = rows.filter(([key]) => dueAtOf(key) > now + MAX_WAIT_MS);
    if (late.length === 0) return;
    const changes = new Map<string, string | undefined>(late.map(([key]) => [key, undefined]));
    for (const [key, turn] of late) changes.set(this.keyIn(PULLED_BACK_MS, idOf(key)), turn);
    await this.storage.commit(new Map(late), changes);
  }
}

function pausedMs([first]: readonly StorageRow[], now: number): number {
  const ms = first?.[0] === PAUSE_KEY ? Number(first[1]) - now : 0;
  return ms <= MAX_WAIT_MS ? ms : 0;
}
