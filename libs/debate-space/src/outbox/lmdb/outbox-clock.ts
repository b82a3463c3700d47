import type { LmdbFile } from './lmdb-file.js';

/** A reading, and what is to be written with the change that was made by it. */
export interface ClockReading {
  readonly now: number;
  /** How far the outbox's clock is ahead of the machine's. */
  readonly ahead: number;
}

interface StoredClock {
  readonly seen: number;
  readonly ahead: number;
}

/**
 * A clock that all processes share and that never goes back: when the machine's clock is put back it goes on from the last
 * moment that was written, so that nothing waits for a time to come round again. Forward it follows: things become due.
 */
export class OutboxClock {
  readonly #file: LmdbFile;
  /** Not written yet, when nothing was since the machine's clock went back. */
  #ahead = 0;

  constructor(file: LmdbFile) {
    this.#file = file;
  }

  read(): ClockReading {
    const stored = this.#file.databases.meta.get('clock') as StoredClock | undefined;
    const machine = Date.now();
    this.#ahead = Math.max(this.#ahead, stored?.ahead ?? 0);
    if (stored) this.#ahead = Math.max(this.#ahead, stored.seen - machine);
    return { now: machine + this.#ahead, ahead: this.#ahead };
  }

  /** As part of a change. */
  write({ now, ahead }: ClockReading): void {
    const stored: StoredClock = { seen: now, ahead };
    void this.#file.databases.meta.put('clock', stored, 1);
  }
}
