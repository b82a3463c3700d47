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
