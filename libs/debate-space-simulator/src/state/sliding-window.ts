import type { RateLimit } from '../simulator-options.js';

/** Counts requests per API key over a sliding window of time. Refused requests do not count. */
export class SlidingWindow {
  readonly #limit: RateLimit | false;
  readonly #now: () => number;
  readonly #admitted = new Map<string, number[]>();

  /** @param now a clock in milliseconds; the monotonic one, because skew must not widen the window */
  constructor(limit: RateLimit | false, now: () => number = () => performance.now()) {
    this.#limit = limit;
    this.#now = now;
  }

  /** Admits a request (returns 0), or returns the whole seconds after which one will be admitted. */
  admit(apiKey: string): number {
    if (this.#limit === false) return 0;
    const { requests, perMs } = this.#limit;
    const now = this.#now();
    const admitted = (this.#admitted.get(apiKey) ?? []).filter((at) => at > now - perMs);
    this.#admitted.set(apiKey, admitted);
    if (admitted.length < requests) {
      admitted.push(now);
      return 0;
    }
    const oldest = admitted[0] ?? now;
    return Math.max(1, Math.ceil((oldest + perMs - now) / 1000));
  }
}
