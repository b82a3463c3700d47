import { InTurn } from './in-turn.js';
import { indexRows } from './lmdb-databases.js';
import type { LmdbFile } from './lmdb-file.js';
import type { ClockReading, OutboxClock } from './outbox-clock.js';
import { readStored, type StoredEntry } from './stored-entry.js';

/** What becomes of an entry: another in its place, or none; and what is written with it. */
export interface EntryChange {
  readonly after?: StoredEntry;
  readonly also?: () => void;
}

/** @returns `undefined` when nothing is to be done. May be asked again, when another process was faster. */
export type Decide = (before: StoredEntry | undefined, clock: ClockReading) => EntryChange | undefined;

/** The entries and everything that leads to them, changed together. */
export class LmdbEntries {
  readonly #file: LmdbFile;
  readonly #clock: OutboxClock;
  readonly #inTurn = new InTurn();

  constructor(file: LmdbFile, clock: OutboxClock) {
    this.#file = file;
    this.#clock = clock;
  }

  get(id: string): StoredEntry | undefined {
    const text = this.#file.databases.entries.get(id);
    return text === undefined ? undefined : readStored(id, text);
  }

  /** @returns whether something was changed, when it is on the disk */
  change(id: string, decide: Decide): Promise<boolean> {
    return this.#inTurn.run(id, async () => {
      for (;;) {
        const { entries } = this.#file.databases;
        const row = entries.getEntry(id);
        const before = row && readStored(id, row.value);
        const clock = this.#clock.read();
        const change = decide(before, clock);
        if (!change) return false;
        const write = () => {
          this.#replace(id, row?.version ?? 0, before, change.after);
          change.also?.();
          this.#clock.write(clock);
        };
        if (await this.#file.write(entries, id, row?.version, write)) return true;
      }
    });
  }

  idle(): Promise<void> {
    return this.#inTurn.idle();
  }

  #replace(
    id: string,
    version: number,
    before: StoredEntry | undefined,
    after: StoredEntry | undefined,
  ): void {
    const { databases } = this.#file;
    const old = indexRows(databases, before);
    const young = indexRows(databases, after);
    for (const row of old) if (!young.some(({ name }) => name === row.name)) row.remove();
    for (const row of young) if (!old.some(({ name }) => name === row.name)) row.put();
    if (after) void databases.entries.put(id, JSON.stringify(after), version + 1);
    else if (before) void databases.entries.remove(id);
  }
}
