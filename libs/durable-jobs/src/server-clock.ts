import { performance } from 'node:perf_hooks';

const REFRESH_MS = 30_000;
const FIRST_SAMPLES = 3;

/**
 * The clock of a server, read without a round trip: its distance from this process's monotonic clock, so that setting
 * the clock of this machine changes nothing. It never goes back; while it is ahead of the server it runs at half speed.
 */
export class ServerClock {
  readonly #read: () => Promise<number>;
  /** Server time minus `performance.now()`, in ms. */
  #offset: number | undefined;
  #now = 0;
  #readAt = performance.now();
  #timer: NodeJS.Timeout | undefined;

  /** @param read returns the time of the server, in ms since 1970 */
  constructor(read: () => Promise<number>) {
    this.#read = read;
  }

  /** Measures the offset, and again every 30 s. Rejects with what `read` rejects with. */
  async start(contained: (work: () => void) => void): Promise<void> {
    for (let sample = 0; sample < FIRST_SAMPLES; sample += 1) await this.measure();
    const refresh = (): void => {
      this.measure().catch(() => undefined); // the last offset stays good for hours
    };
    this.#timer = setInterval(contained, REFRESH_MS, refresh).unref();
  }

  stop(): void {
    clearInterval(this.#timer);
  }

  /**
   * The server read its clock at some moment between question and answer. An offset that agrees with that stays as it
   * is, so that a slow answer cannot spoil the result of a fast one.
   */
  async measure(): Promise<void> {
    const asked = performance.now();
    const server = await this.#read();
    const answered = performance.now();
    if (!Number.isFinite(server)) throw new TypeError('not a time');
    const offset = this.#offset ?? server - (asked + answered) / 2;
    this.#offset = Math.min(Math.max(offset, server - answered), server - asked);
  }

  /** In whole ms since 1970. */
  now(): number {
    const machine = performance.now();
    const server = machine + (this.#offset ?? 0);
    // Fake timers of a test runner begin at 0.
    this.#now = Math.max(server, this.#now + Math.max(0, machine - this.#readAt) / 2);
    this.#readAt = machine;
    return Math.floor(this.#now);
  }
}
