/** A place in the window, taken until the request was answered and a whole window has passed since. */
export interface Turn {
  /**
   * The request is answered, or given up. Calling it again does nothing.
   * @param sent whether the service can have seen it; if not, the place is free at once
   */
  done(sent: boolean): void;
}

export interface RateLimit {
  readonly requests: number;
  readonly perMs: number;
}

// The service's clock has whole milliseconds, and a timer may fire up to one early.
const MARGIN_MS = 2;
// A timer that is set for longer fires at once.
const MOST_MS = 2 ** 31 - 1;

/** Why there is no turn: the service has asked for a longer pause than a call may wait. */
export interface Pause {
  readonly pausedMs: number;
}

interface Waiting {
  readonly granted: (refused?: Pause) => void;
  readonly reserved: number;
}

/**
 * Never more than `requests` in any window of `perMs`, as the service sees them: a place comes free one window after
 * the *answer*, so that it does not matter how long a request was on its way. First come, first served.
 */
export class RateLimiter {
  readonly #limit: RateLimit | undefined;
  readonly #mostPauseMs: number;
  readonly #waiting = new Set<Waiting>();
  /** When each answered request leaves the window, ascending. */
  readonly #cooling: number[] = [];
  #underWay = 0;
  #pausedUntil = 0;
  #timer: NodeJS.Timeout | undefined;

  /** @param mostPauseMs for how long a call waits for the service, when that has asked for a pause */
  constructor(limit: RateLimit | false, mostPauseMs = Infinity) {
    this.#mostPauseMs = mostPauseMs;
    this.#limit = limit === false ? undefined : limit;
  }

  /**
   * Waits for a place. Rejects with an `AbortError` when the signal is aborted before.
   * @param reserved how many places are left to others; who leaves some holds up nobody
   */
  async turn(signal: AbortSignal, reserved = 0): Promise<Turn | Pause> {
    signal.throwIfAborted();
    const refused = await new Promise<Pause | undefined>((resolve, reject) => {
      const granted = (pause?: Pause): void => {
        signal.removeEventListener('abort', aborted);
        resolve(pause);
      };
      const waiting = { granted, reserved };
      const aborted = (): void => {
        this.#waiting.delete(waiting);
        reject(new DOMException('aborted while waiting for the rate limit', 'AbortError'));
        this.#grant();
      };
      signal.addEventListener('abort', aborted, { once: true });
      this.#waiting.add(waiting);
      this.#grant();
    });
    return refused ?? { done: this.#doneOnce() };
  }

  /** Lets nobody through for a while: the service asked for it. */
  pause(ms: number): void {
    this.#pausedUntil = Math.max(this.#pausedUntil, performance.now() + ms);
    this.#grant();
  }

  #doneOnce(): (sent: boolean) => void {
    let open = true;
    return (sent) => {
      if (!open) return;
      open = false;
      this.#underWay -= 1;
      if (this.#limit && sent) this.#cooling.push(performance.now() + this.#limit.perMs + MARGIN_MS);
      this.#grant();
    };
  }

  #grant(): void {
    clearTimeout(this.#timer);
    const now = performance.now();
    while ((this.#cooling[0] ?? Infinity) <= now) this.#cooling.shift();
    const pausedMs = this.#pausedUntil - now;
    let nextMs = Infinity;
    for (const waiting of this.#waiting) {
      const { granted, reserved } = waiting;
      if (pausedMs > this.#mostPauseMs) {
        this.#waiting.delete(waiting);
        granted({ pausedMs });
        continue;
      }
      const wait = this.#waitMs(now, reserved);
      if (wait > 0) {
        nextMs = Math.min(nextMs, wait);
        if (reserved === 0) break;
        continue;
      }
      this.#waiting.delete(waiting);
      this.#underWay += 1;
      granted();
    }
    // Not unref'd: somebody is waiting. Without an end in sight, the next answer calls again.
    if (nextMs < Infinity)
      this.#timer = setTimeout(this.#grant.bind(this), Math.min(Math.ceil(nextMs), MOST_MS));
  }

  #waitMs(now: number, reserved: number): number {
    const taken = this.#underWay + this.#cooling.length;
    const most = this.#limit === undefined ? Infinity : this.#limit.requests - reserved;
    const free = taken >= most ? (this.#cooling[taken - most] ?? Infinity) : now;
    return Math.max(free, this.#pausedUntil) - now;
  }
}
