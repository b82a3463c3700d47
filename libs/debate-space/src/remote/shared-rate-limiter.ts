import { setTimeout as sleep } from 'node:timers/promises';
import { orAborted } from '../linked-signal.js';
import { withTimeout } from '../with-timeout.js';
import type { NoSlot, RateLimit, Slot } from './rate-limiter.js';
import type { Limiter } from './rate-limiters.js';

/**
 * Takes one of so many slots in any window of so many milliseconds, over all instances of an application.
 * @returns 0 when it has one, or the milliseconds after which to ask again
 */
export type TryAcquire = (requests: number, perMs: number) => Promise<number>;

/** Places are counted from when they are taken; the service sees a request a little later. */
const ON_ITS_WAY_MS = 1_000;
/** How long the storage may take: a call of the host's waits for it. */
const ANSWER_TIMEOUT_MS = 1_000;
/** For how long the storage is not asked again when it has not answered. */
const ALONE_MS = 5_000;

interface Waiting {
  readonly settle: (refused: NoSlot | undefined) => void;
  readonly until: number;
}

/**
 * One limit over all instances. Calls of one process keep their order; if the others cannot be asked, the limit of this
 * process alone counts.
 */
export class SharedRateLimiter implements Limiter {
  readonly #own: Limiter;
  readonly #tryAcquire: TryAcquire;
  readonly #limit: RateLimit;
  readonly #row = new Set<Waiting>();
  #isServing = false;
  /** Before this moment, no slot is free. */
  #freeAt = 0;
  /** Until then, the limit of this process alone counts. */
  #aloneUntil = 0;
  #pause = new AbortController();

  constructor(own: Limiter, tryAcquire: TryAcquire, limit: RateLimit) {
    this.#own = own;
    this.#tryAcquire = tryAcquire;
    this.#limit = limit;
  }

  async acquire(signal: AbortSignal, withinMs = Infinity): Promise<Slot | NoSlot> {
    const until = performance.now() + withinMs;
    const slot = await this.#own.acquire(signal, withinMs);
    if ('retryAfterMs' in slot) return slot;
    let refused: NoSlot | undefined = { retryAfterMs: 0 }; // unless the row says otherwise
    try {
      refused = await this.#waitInRow(signal, until);
    } finally {
      if (refused) slot.release(false);
    }
    return refused ?? slot;
  }

  pause(ms: number): void {
    this.#own.pause(ms);
  }

  async #waitInRow(signal: AbortSignal, until: number): Promise<NoSlot | undefined> {
    const { promise, waiting } = waitingUntil(until);
    this.#row.add(waiting);
    if (this.#isServing) this.#refuseLate();
    else void this.#serve();
    try {
      return await orAborted(promise, signal);
    } finally {
      this.#row.delete(waiting);
      if (this.#row.size === 0) this.#pause.abort();
    }
  }

  /** Gives slots in order, as the instances have them, until nobody waits. */
  async #serve(): Promise<void> {
    this.#isServing = true;
    while (this.#row.size > 0) {
      const waitMs = await this.#ask();
      this.#freeAt = performance.now() + waitMs;
      if (waitMs <= 0) {
        const [first] = this.#row;
        if (first) this.#settle(first, undefined);
        continue;
      }
      this.#refuseLate();
      this.#pause = new AbortController();
      if (this.#row.size > 0)
        await sleep(waitMs, undefined, { signal: this.#pause.signal }).catch(() => undefined);
    }
    this.#isServing = false;
  }

  #refuseLate(): void {
    for (const waiting of this.#row) {
      if (waiting.until < this.#freeAt)
        this.#settle(waiting, { retryAfterMs: Math.ceil(this.#freeAt - performance.now()) });
    }
  }

  #settle(waiting: Waiting, refused: NoSlot | undefined): void {
    this.#row.delete(waiting);
    waiting.settle(refused);
  }

  async #ask(): Promise<number> {
    const { requests, perMs } = this.#limit;
    if (performance.now() < this.#aloneUntil) return 0;
    try {
      const answer = this.#tryAcquire(requests, perMs + ON_ITS_WAY_MS);
      const waitMs = await withTimeout(answer, ANSWER_TIMEOUT_MS, undefined);
      if (waitMs === undefined) this.#aloneUntil = performance.now() + ALONE_MS;
      return waitMs ?? 0;
    } catch {
      return 0;
    }
  }
}

function waitingUntil(until: number): { promise: Promise<NoSlot | undefined>; waiting: Waiting } {
  let settle: Waiting['settle'] = () => undefined;
  const promise = new Promise<NoSlot | undefined>((resolve) => (settle = resolve));
  return { promise, waiting: { settle, until } };
}
