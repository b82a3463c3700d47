import type { Storage } from './storage.js';

const STEADY_MS = 600_000;
const JUMP_MS = 60_000;

/**
 * Says whether the clock of a storage may be trusted to do what cannot be undone, such as to remove what is outdated: one
 * that is years ahead for seconds must not. It is steady when it has run like the machine's own for ten minutes.
 */
export class SteadyClock {
  readonly #storage: Pick<Storage, 'now'>;
  #skew: number;
  #since = performance.now();

  constructor(storage: Pick<Storage, 'now'>) {
    this.#storage = storage;
    this.#skew = this.#skewNow();
  }

  /**
   * To be called every few seconds: a jump is noticed by the difference to the calls before.
   * @param ageMs the age at which it is done: a clock that is steady for that long is enough
   */
  isSteady(ageMs = Infinity): boolean {
    const skew = this.#skewNow();
    // Compared with the beginning, not with the last call: a clock that was put back may run slowly instead of jumping.
    if (Math.abs(skew - this.#skew) > JUMP_MS) {
      this.#skew = skew;
      this.#since = performance.now();
    }
    return performance.now() - this.#since >= Math.min(STEADY_MS, ageMs);
  }

  #skewNow(): number {
    return this.#storage.now() - performance.now();
  }
}

/** Milliseconds of the machine's monotonic clock. The processes of a machine share it from one boot to the next. */
export const monotonicMs = (): number => Number(process.hrtime.bigint()) / 1e6;

/** A clock that runs at the pace of the machine's monotonic clock: it never goes back, and no jump of the date moves it. */
export class MonotonicClock {
  #offset: number;
  #last = monotonicMs();

  /** @param offset what this clock is ahead of the machine's monotonic clock, in ms */
  constructor(offset = Date.now() - monotonicMs()) {
    this.#offset = offset;
  }

  /** Whole milliseconds since 1970. */
  now(): number {
    const monotonic = monotonicMs();
    // Fake timers of a test runner replace the monotonic clock by one that begins at 0.
    if (monotonic < this.#last) this.#offset += this.#last - monotonic;
    this.#last = monotonic;
    return Math.floor(this.#offset + monotonic);
  }
}
