import { setTimeout as pause } from 'node:timers/promises';
import { orAborted } from '../linked-signal.js';
import type { Pause, RateLimit, RateLimiter, Turn } from './rate-limiter.js';

/**
 * Takes one of so many places in any window of so many milliseconds, over all instances of an application.
 * @returns 0 when it has one, or the milliseconds after which to ask again
 */
export type Admit = (requests: number, perMs: number) => Promise<number>;

/** Places are counted from when they are taken; the service sees a request a little later. */
const ON_ITS_WAY_MS = 1_000;

/**
 * One limit over all instances. Calls of one process keep their order; if the others cannot be asked, the limit of this
 * process alone counts.
 */
export class SharedRateLimiter {
  readonly #own: Pick<RateLimiter, 'turn' | 'pause'>;
  readonly #admit: Admit;
  readonly #limit: RateLimit;
  /** Over when the last one in the row has its place. */
  #last: Promise<void> = Promise.resolve();

  constructor(own: Pick<RateLimiter, 'turn' | 'pause'>, admit: Admit, limit: RateLimit) {
    this.#own = own;
    this.#admit = admit;
    this.#limit = limit;
  }

  /** Waits for a place. Rejects with an `AbortError` when the signal is aborted before. */
  async turn(signal: AbortSignal): Promise<Turn | Pause> {
    const turn = await this.#own.turn(signal);
    if ('pausedMs' in turn) return turn;
    const ahead = this.#last;
    let done: () => void = () => undefined;
    this.#last = new Promise((resolve) => (done = resolve));
    try {
      await orAborted(ahead, signal);
      for (let waitMs = await this.#ask(); waitMs > 0; waitMs = await this.#ask()) {
        await pause(waitMs, undefined, { signal });
      }
    } catch (error) {
      turn.done(false);
      throw error;
    } finally {
      void ahead.then(done); // who gives up does not let the next one overtake
    }
    return turn;
  }

  pause(ms: number): void {
    this.#own.pause(ms);
  }

  async #ask(): Promise<number> {
    const { requests, perMs } = this.#limit;
    return this.#admit(requests, perMs + ON_ITS_WAY_MS).catch(() => 0);
  }
}
