import { RateLimiter, type RateLimit } from './rate-limiter.js';
import { SharedRateLimiter, type Admit } from './shared-rate-limiter.js';
import { reservedPlaces, YieldingRateLimiter } from './yielding-rate-limiter.js';

export interface RateLimiters {
  /** For calls that somebody waits for. */
  readonly calls: Pick<RateLimiter, 'turn' | 'pause'>;
  /** For work that can wait: it leaves some of the places to the calls. */
  readonly work: Pick<RateLimiter, 'turn' | 'pause'>;
}

/** One limit, for both kinds of requests. @param admit given by an outbox that many instances share */
export function rateLimiters(
  limit: RateLimit | false,
  mostPauseMs: number,
  admit: Admit | undefined,
): RateLimiters {
  const calls = new RateLimiter(limit, mostPauseMs);
  const work = new YieldingRateLimiter(calls, limit);
  if (!admit || limit === false) return { calls, work };
  const fewer = { ...limit, requests: limit.requests - reservedPlaces(limit) };
  return {
    calls: new SharedRateLimiter(calls, admit, limit),
    work: new SharedRateLimiter(work, admit, fewer),
  };
}
