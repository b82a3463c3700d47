import type { FinishedEntry, OutboxContext, Outcome } from '../outbox.js';
import type { FinishedPlace } from './lmdb-databases.js';
import type { LmdbFile } from './lmdb-file.js';
import type { OutboxClock } from './outbox-clock.js';
import type { StoredEntry } from './stored-entry.js';

/** So many of those whose time is over go at once: no more than a write can do besides. */
const AT_ONCE = 500;

/** What is kept of the entries that are over, under the hash of their uid. */
export class FinishedLog {
  readonly #file: LmdbFile;
  readonly #clock: OutboxClock;
  readonly #keepMs: number;
  #pruning = false;

  constructor(file: LmdbFile, clock: OutboxClock, { keepFinishedMs }: OutboxContext) {
    this.#file = file;
    this.#clock = clock;
    this.#keepMs = keepFinishedMs;
  }

  /** As part of a change. */
  add({ entry, uidHash }: StoredEntry, outcome: Outcome, attempts: number): void {
    if (this.#keepMs <= 0) return;
    const { finished, finishedByAge } = this.#file.databases;
    const { now } = this.#clock.read();
    const { id, reason, endedAt } = entry;
    const over = { reason, endedAt, attempts, outcome, finishedAt: Date.now() };
    void finished.put([uidHash, now, id], over);
    void finishedByAge.put([now, uidHash, id], 0);
  }

  /** The earliest first. */
  of(uidHash: string): readonly FinishedEntry[] {
    const since = this.#clock.read().now - this.#keepMs;
    const range = { start: [uidHash, since], end: [uidHash, Infinity], exclusiveStart: true };
    const rows = [...this.#file.databases.finished.getRange(range)];
    return rows.map(({ key: [, , id], value }) => ({ id, ...value }));
  }

  /** Removes what is kept no longer, with whatever is written at the moment; by an index, never by a scan. */
  prune(): void {
    if (this.#pruning) return;
    const outdated = this.#outdated(AT_ONCE);
    if (outdated.length === 0) return;
    this.#pruning = true;
    const write = this.#file.writeAnyhow(() => {
      this.#remove(outdated);
    });
    const over = (): void => {
      this.#pruning = false;
    };
    write.then(over, over); // what could not be removed is found again the next time
  }

  #outdated(most: number): readonly FinishedPlace[] {
    const end = [this.#clock.read().now - this.#keepMs];
    return [...this.#file.databases.finishedByAge.getKeys({ end, limit: most })];
  }

  #remove(keys: readonly FinishedPlace[]): void {
    const { finished, finishedByAge } = this.#file.databases;
    for (const key of keys) {
      const [at, uidHash, id] = key;
      void finishedByAge.remove(key);
      void finished.remove([uidHash, at, id]);
    }
  }
}
