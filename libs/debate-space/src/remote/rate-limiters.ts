import { RateLimiter, type NoSlot, type RateLimit, type Slot } from './rate-limiter.js';
import { SharedRateLimiter, type TryAcquire } from './shared-rate-limiter.js';

/** A limit as a caller sees it. */
export interface Limiter {
  /**
   * Waits for a slot, for `withinMs` at most. Rejects with an `AbortError` when the signal is aborted before.
   */
  acquire(signal: AbortSignal, withinMs?: number): Promise<Slot | NoSlot>;
  /** Lets nobody through for a while: the service asked for it. */
  pause(ms: number): void;
}

export interface RateLimiters {
  /** For calls that somebody waits for. */
  readonly calls: Limiter;
  /** For jobs: they leave some of the slots to the calls, and do not hold them up. */
  readonly jobs: Limiter;
}

/** Jobs leave a fifth of the slots to the calls. */
const RESERVED = 0.2;

/** One limit, for both kinds of requests. @param tryAcquire of a storage that several instances share */
export function rateLimiters(limit: RateLimit | false, tryAcquire: TryAcquire | undefined): RateLimiters {
  const own = new RateLimiter(limit);
  const limiterFor = (reserved: number): Limiter => {
    const limiter: Limiter = {
      acquire: (signal, withinMs) => own.acquire(signal, withinMs, reserved),
      pause: (ms) => {
        own.pause(ms);
      },
    };
    if (!tryAcquire || limit === false) return limiter;
    return new SharedRateLimiter(limiter, tryAcquire, { ...limit, requests: limit.requests - reserved });
  };
  return {
    calls: limiterFor(0),
    jobs: limiterFor(limit === false ? 0 : Math.floor(limit.requests * RESERVED)),
  };
}
