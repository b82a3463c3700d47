import type { MaybePromise } from './maybe-promise.js';
import { idOf, momentOf, type JobRecords } from './job-records.js';
import { transact } from './transaction.js';
import type { StorageRow } from './storage.js';
import type { TimedStorage } from './timed-storage.js';

/** The longest pause of a whole queue. */
const MAX_PAUSE_MS = 86_400_000;
/** Sorts before every position, so that a claim reads the pause with the range of the due rows. */
const PAUSE = '!';

/** When jobs are due, and the pause of all of them. */
export class DueJobs {
  #lastMicros = 0;
  readonly #pause: string;

  /** @param priorities how many there are */
  constructor(
    private readonly storage: TimedStorage,
    private readonly records: Pick<JobRecords<never>, 'key'>,
    private readonly priorities: number,
  ) {
    this.#pause = records.key('due', PAUSE);
  }

  /**
   * A place in the order of the jobs. In microseconds, and later than the last one of this process: what comes within a
   * millisecond keeps its order.
   */
  position(priority: number, delayMs = 0): string {
    const now = this.storage.now() * 1000;
    if (delayMs > 0) return positionOf(priority, now + delayMs * 1000);
    this.#lastMicros = Math.max(Math.floor(now), this.#lastMicros + 1);
    return positionOf(priority, this.#lastMicros);
  }

  key(position: string, id: string): string {
    return this.records.key('due', `${position}:${id}`);
  }

  keyIn(priority: number, delayMs: number, id: string): string {
    return this.key(this.position(priority, delayMs), id);
  }

  /** Those that are due, the first ones first; none during a pause. */
  async first(limit: number): Promise<readonly StorageRow[]> {
    const now = this.storage.now();
    const found: StorageRow[] = [];
    for (let priority = 0; priority < this.priorities && found.length < limit; priority += 1) {
      const to = this.records.key('due', positionOf(priority, (Math.floor(now) + 1) * 1000));
      const rows = await this.#range(priority, to, limit - found.length);
      if (this.#pausedMs(rows, now) > 0) return [];
      found.push(...this.#withoutPause(rows).slice(0, limit - found.length));
    }
    return found;
  }

  /** Milliseconds until the first is due, or until the pause has ended when that is later; `undefined`: none waits. */
  async nextMs(): Promise<number | undefined> {
    const now = this.storage.now();
    let pausedMs = 0;
    let nextMs: number | undefined;
    for (let priority = 0; priority < this.priorities; priority += 1) {
      const rows = await this.#range(priority, this.records.key('due', `${priority + 1}`), 1);
      pausedMs = Math.max(pausedMs, this.#pausedMs(rows, now));
      const [first] = this.#withoutPause(rows);
      if (first) nextMs = Math.min(nextMs ?? Infinity, momentOf(positionIn(first[0])) - now);
    }
    return nextMs === undefined ? undefined : Math.max(0, nextMs, pausedMs);
  }

  /** Nothing is claimed for `ms`, at most a day, by no process; never shortens a pause. */
  async pause(ms: number): Promise<void> {
    await transact(this.storage, async (transaction) => {
      const now = this.storage.now();
      const before = await transaction.get(this.#pause);
      if (before === undefined || Number(before) - now < ms)
        transaction.set(this.#pause, String(now + Math.min(ms, MAX_PAUSE_MS)));
    });
  }

  /** The pause, if there is one, and at most `limit` rows behind it. */
  #range(priority: number, to: string, limit: number): MaybePromise<readonly StorageRow[]> {
    const isFirst = priority === 0;
    const from = isFirst ? this.#pause : this.records.key('due', `${priority}`);
    return this.storage.range(from, to, { limit: limit + Number(isFirst) });
  }

  #pausedMs([first]: readonly StorageRow[], now: number): number {
    return first?.[0] === this.#pause ? Number(first[1]) - now : 0;
  }

  #withoutPause(rows: readonly StorageRow[]): readonly StorageRow[] {
    return rows.filter(([key]) => key !== this.#pause);
  }
}

const positionOf = (priority: number, micros: number): string =>
  `${priority}${String(Math.max(0, Math.floor(micros))).padStart(18, '0')}`;

/** The position in the key of a due row. */
export const positionIn = (key: string): string => {
  const end = key.length - idOf(key).length - 1;
  return key.slice(key.lastIndexOf(':', end - 1) + 1, end);
};
