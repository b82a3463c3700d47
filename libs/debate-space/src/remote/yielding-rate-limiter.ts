import type { Pause, RateLimit, RateLimiter, Turn } from './rate-limiter.js';

const RESERVED = 0.2;

/** How many places of a limit work that can wait leaves to the calls that somebody waits for: a fifth. */
export function reservedPlaces({ requests }: RateLimit): number {
  return Math.floor(requests * RESERVED);
}

/** The same limit for work that can wait, and that must not hold up the host's own calls. */
export class YieldingRateLimiter {
  readonly #limiter: RateLimiter;
  readonly #reserved: number;

  constructor(limiter: RateLimiter, limit: RateLimit | false) {
    this.#limiter = limiter;
    this.#reserved = limit === false ? 0 : reservedPlaces(limit);
  }

  /** Waits for a place. Rejects with an `AbortError` when the signal is aborted before. */
  turn(signal: AbortSignal): Promise<Turn | Pause> {
    return this.#limiter.turn(signal, this.#reserved);
  }

  pause(ms: number): void {
    this.#limiter.pause(ms);
  }
}
