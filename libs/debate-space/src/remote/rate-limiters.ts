import { RateLimiter, type NoTurn, type RateLimit, type Turn } from './rate-limiter.js';
import { SharedRateLimiter, type Admit } from './shared-rate-limiter.js';

/** A limit as a caller sees it. */
export interface Limiter {
  /**
   * Waits for a place, for `withinMs` at most. Rejects with an `AbortError` when the signal is aborted before.
   */
  turn(signal: AbortSignal, withinMs?: number): Promise<Turn | NoTurn>;
  /** Lets nobody through for a while: the service asked for it. */
  pause(ms: number): void;
}

export interface RateLimiters {
  /** For calls that somebody waits for. */
  readonly calls: Limiter;
  /** For work that can wait: it leaves some of the places to the calls, and does not hold them up. */
  readonly work: Limiter;
}

/** Of each limit, work that can wait leaves a fifth of the places to the calls. */
const RESERVED = 0.2;

/** One limit, for both kinds of requests. @param admit given by an outbox that many instances share */
export function rateLimiters(limit: RateLimit | false, admit: Admit | undefined): RateLimiters {
  const own = new RateLimiter(limit);
  const limiterFor = (reserved: number): Limiter => {
    const limiter: Limiter = {
      turn: (signal, withinMs) => own.turn(signal, withinMs, reserved),
      pause: (ms) => {
        own.pause(ms);
      },
    };
    if (!admit || limit === false) return limiter;
    return new SharedRateLimiter(limiter, admit, { ...limit, requests: limit.requests - reserved });
  };
  return {
    calls: limiterFor(0),
    work: limiterFor(limit === false ? 0 : Math.floor(limit.requests * RESERVED)),
  };
}
