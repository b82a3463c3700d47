/** A slot of the rate limit, taken until the request was answered and a whole window has passed since. */
export interface Slot {
  /**
   * The request is answered, or given up. Calling it again does nothing.
   * @param sent whether the service can have seen it; if not, the slot is free immediately
   */
  release(sent: boolean): void;
}

export interface RateLimit {
  readonly requests: number;
  readonly perMs: number;
}

/** There is no slot: none can come in time. */
export interface NoSlot {
  /** The earliest that one can come, in milliseconds from now. */
  readonly retryAfterMs: number;
}

// The service's clock has whole milliseconds, and a timer may fire up to one early.
const MARGIN_MS = 2;
// A timer that is set for longer fires immediately.
const MAX_TIMER_MS = 2 ** 31 - 1;

interface Waiting {
  readonly settle: (slot: Slot | NoSlot) => void;
  readonly reserved: number;
  readonly until: number;
}

/**
 * Never more than `requests` in any window of `perMs`, as the service sees them: a slot comes free one window after
 * the *answer*, so that it does not matter how long a request was on its way. First come, first served. A caller whose
 * slot cannot come in time is refused as soon as that is certain.
 */
export class RateLimiter {
  readonly #limit: RateLimit | undefined;
  readonly #waiting = new Set<Waiting>();
  /** When each answered request leaves the window, ascending. */
  readonly #cooling: number[] = [];
  #underWay = 0;
  #pausedUntil = 0;
  #timer: NodeJS.Timeout | undefined;

  constructor(limit: RateLimit | false) {
    this.#limit = limit === false ? undefined : limit;
  }

  /**
   * Waits for a slot. Rejects with an `AbortError` when the signal is aborted before.
   * @param withinMs for how long the caller can wait, in milliseconds
   * @param reserved how many slots the caller leaves to others; a caller that leaves some holds up nobody
   */
  async acquire(signal: AbortSignal, withinMs = Infinity, reserved = 0): Promise<Slot | NoSlot> {
    signal.throwIfAborted();
    return new Promise((resolve, reject) => {
      const settle = (slot: Slot | NoSlot): void => {
        this.#waiting.delete(waiting);
        signal.removeEventListener('abort', aborted);
        resolve(slot);
      };
      const waiting = { settle, reserved, until: performance.now() + withinMs };
      const aborted = (): void => {
        this.#waiting.delete(waiting);
        reject(new DOMException('aborted while waiting for the rate limit', 'AbortError'));
        this.#grant();
      };
      signal.addEventListener('abort', aborted, { once: true });
      this.#waiting.add(waiting);
      this.#grant();
    });
  }

  /** Lets nobody through for a while: the service asked for it. */
  pause(ms: number): void {
    this.#pausedUntil = Math.max(this.#pausedUntil, performance.now() + ms);
    this.#grant();
  }

  #newSlot(): Slot {
    this.#underWay += 1;
    let open = true;
    const release = (sent: boolean): void => {
      if (!open) return;
      open = false;
      this.#underWay -= 1;
      if (this.#limit && sent) this.#cooling.push(performance.now() + this.#limit.perMs + MARGIN_MS);
      this.#grant();
    };
    return { release };
  }

  /** Gives slots to those whose slot is free, and refuses those whose slot cannot come in time. */
  #grant(): void {
    clearTimeout(this.#timer);
    const now = performance.now();
    while ((this.#cooling[0] ?? Infinity) <= now) this.#cooling.shift();
    let ahead = 0;
    let nextAt = Infinity;
    for (const { settle, reserved, until } of this.#waiting) {
      const at = Math.max(this.#freeAt(ahead + reserved, now), this.#pausedUntil);
      if (at <= now) settle(this.#newSlot());
      else if (at > until) settle({ retryAfterMs: Math.ceil(at - now) });
      else {
        nextAt = Math.min(nextAt, at);
        if (reserved === 0) ahead += 1;
      }
    }
    // Not unref'd: somebody is waiting.
    if (nextAt < Infinity) {
      const ms = Math.min(Math.ceil(nextAt - now), MAX_TIMER_MS);
      this.#timer = setTimeout(this.#grant.bind(this), ms);
    }
  }

  /** The earliest that a slot can be had by a caller with so many others before it. */
  #freeAt(ahead: number, now: number): number {
    if (!this.#limit) return now;
    const { requests, perMs } = this.#limit;
    const windowMs = perMs + MARGIN_MS;
    const position = ahead % requests;
    const free = requests - this.#underWay - this.#cooling.length;
    // One that is under way is free a window after its answer, which has not come.
    const at = position < free ? now : (this.#cooling[position - free] ?? now + windowMs);
    return at + Math.floor(ahead / requests) * windowMs;
  }
}
