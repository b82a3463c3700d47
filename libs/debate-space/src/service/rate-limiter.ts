import { setTimeout as sleep } from 'node:timers/promises';
import { raceAbort } from '../async/combined-signal.js';
import { withTimeout } from '../async/with-timeout.js';
import type { Storage } from '../storage/storage.js';

type Slots = Pick<Storage, 'takeSlot'>;

export interface RateLimit {
  readonly requests: number;
  readonly perMs: number;
}

/** No slot can be free in time. */
export interface NoSlot {
  /** When a slot can be free at the earliest, in milliseconds from now. */
  readonly retryAfterMs: number;
}

export interface Patience {
  /** How long the caller can wait, in milliseconds. @defaultValue `Infinity` */
  readonly withinMs?: number;
  /** The longest pause of the service that the caller accepts, in milliseconds. @defaultValue `Infinity` */
  readonly maxPauseMs?: number;
  /** Whether the caller is a job, which leaves some slots to direct calls. @defaultValue `false` */
  readonly isJob?: boolean;
}

type Kind = 'calls' | 'jobs';

/** The share of the slots that jobs leave to direct calls. */
const RESERVED = 0.2;
/** Added to the window: the service receives a request later than its slot was taken. */
const ON_ITS_WAY_MS = 1_000;
/** How long the storage may take: a call of the host waits for it. */
const STORAGE_TIMEOUT_MS = 1_000;
/** How long only the slots of this process count after the storage has not answered. */
const LOCAL_ONLY_MS = 5_000;
// A timer that is set for longer fires immediately.
const MAX_TIMER_MS = 2 ** 31 - 1;

/**
 * Permits at most `requests` in any window of `perMs`, over all instances that share the storage. In this process, calls and
 * jobs wait in two queues, each in order of arrival. A caller whose slot cannot be free in time is refused.
 */
export class RateLimiter {
  readonly #limit: RateLimit | undefined;
  readonly #permitted: Readonly<Record<Kind, number>>;
  readonly #shared: Slots;
  readonly #own: Slots;
  /** The last one in each queue. */
  readonly #turns: Record<Kind, Promise<unknown>> = { calls: Promise.resolve(), jobs: Promise.resolve() };
  /** No slot is free before this moment. */
  readonly #freeAt: Record<Kind, number> = { calls: 0, jobs: 0 };
  #pausedUntil = 0;
  #localUntil = 0;

  /**
   * @param shared the slots of all instances
   * @param own the slots of this process, which count while the storage does not answer
   */
  constructor(limit: RateLimit | false, shared: Slots, own = shared) {
    this.#limit = limit === false ? undefined : limit;
    const { requests } = this.#limit ?? { requests: Infinity };
    this.#permitted = { calls: requests, jobs: Math.ceil(requests * (1 - RESERVED)) };
    this.#shared = shared;
    this.#own = own;
  }

  /** The window of the limit, in milliseconds; 0 without a limit. */
  get windowMs(): number {
    return this.#limit?.perMs ?? 0;
  }

  /** How many jobs a minute the limit permits. */
  get jobsPerMinute(): number {
    return this.#limit ? (this.#permitted.jobs * 60_000) / this.#limit.perMs : Infinity;
  }

  /** How long the limit, or a pause of the service, delays the last of this many jobs, in milliseconds. */
  jobWaitMs(jobs: number): number {
    const waitMs = Math.max(0, this.#waitMs('jobs'));
    return jobs > 1 && this.#limit ? waitMs + ((jobs - 1) * 60_000) / this.jobsPerMinute : waitMs;
  }

  /** Takes a slot as soon as one is free. Rejects with an `AbortError` if the signal is aborted before. */
  acquire(signal: AbortSignal, patience: Patience = {}): Promise<NoSlot | undefined> {
    const { withinMs = Infinity, maxPauseMs = Infinity, isJob = false } = patience;
    const kind = isJob ? 'jobs' : 'calls';
    const until = performance.now() + withinMs;
    // How long the others in the queue will take is unknown, so only the next slot is compared with the limit.
    const refusal = this.#refusal(kind, until, maxPauseMs);
    if (refusal && !signal.aborted) return Promise.resolve(refusal);
    const turn = this.#turns[kind].then(() => this.#take(kind, { until, maxPauseMs }, signal));
    this.#turns[kind] = turn.catch(() => undefined);
    return raceAbort(turn, signal);
  }

  /** Permits no request for a while, because the service requested it. */
  pause(ms: number): void {
    this.#pausedUntil = Math.max(this.#pausedUntil, performance.now() + ms);
  }

  async #take(
    kind: Kind,
    { until, maxPauseMs }: { readonly until: number; readonly maxPauseMs: number },
    signal: AbortSignal,
  ): Promise<NoSlot | undefined> {
    for (;;) {
      signal.throwIfAborted();
      const refusal = this.#refusal(kind, until, maxPauseMs);
      if (refusal) return refusal;
      const waitMs = this.#waitMs(kind);
      if (waitMs > 0) {
        await sleep(Math.min(Math.ceil(waitMs), MAX_TIMER_MS), undefined, { signal });
      } else {
        const occupiedMs = this.#limit ? await this.#takeSlot(kind, this.#limit) : 0;
        if (occupiedMs === 0 && this.#waitMs(kind) <= 0) return undefined; // no pause has begun
        this.#freeAt[kind] = performance.now() + occupiedMs;
      }
    }
  }

  #refusal(kind: Kind, until: number, maxPauseMs: number): NoSlot | undefined {
    const now = performance.now();
    const waitMs = this.#waitMs(kind);
    const isInTime = now + waitMs <= until && this.#pausedUntil - now <= maxPauseMs;
    return isInTime ? undefined : { retryAfterMs: Math.ceil(waitMs) };
  }

  #waitMs(kind: Kind): number {
    return Math.max(this.#freeAt[kind], this.#pausedUntil) - performance.now();
  }

  /** @returns 0 when it has taken a slot; otherwise how long no slot is free, in milliseconds */
  async #takeSlot(kind: Kind, { perMs }: RateLimit): Promise<number> {
    const limit = [this.#permitted[kind], perMs + Math.min(perMs, ON_ITS_WAY_MS)] as const;
    if (performance.now() >= this.#localUntil) {
      const answer = this.#shared.takeSlot(...limit);
      const waitMs = await withTimeout(answer, STORAGE_TIMEOUT_MS, undefined).catch(() => undefined);
      if (waitMs !== undefined) return waitMs;
      this.#localUntil = performance.now() + LOCAL_ONLY_MS;
    }
    return this.#own.takeSlot(...limit);
  }
}
