import { setTimeout as sleep } from 'node:timers/promises';
import { raceAbort } from '../async/combined-signal.js';
import { withTimeout } from '../async/with-timeout.js';
import type { Storage } from '../storage/storage.js';

type Slots = Pick<Storage, 'takeSlot'>;

export interface RateLimit {
  readonly requests: number;
  readonly perMs: number;
}

/** No slot can come in time. */
export interface NoSlot {
  /** The earliest that one can come, in milliseconds from now. */
  readonly retryAfterMs: number;
}

export interface Patience {
  /** For how long the caller can wait, in milliseconds. @defaultValue `Infinity` */
  readonly withinMs?: number;
  /** How long a pause that the service requested may be, in milliseconds. @defaultValue `Infinity` */
  readonly maxPauseMs?: number;
  /** Whether the caller leaves some of the slots to direct calls. @defaultValue `false` */
  readonly isJob?: boolean;
}

type Kind = 'calls' | 'jobs';

/** The share of the slots that jobs leave to the calls. */
const RESERVED = 0.2;
/** Slots are counted from when they are taken; the service sees a request a little later. */
const ON_ITS_WAY_MS = 1_000;
/** How long the storage may take: a call of the host's waits for it. */
const STORAGE_TIMEOUT_MS = 1_000;
/** For how long only the slots of this process count after the storage has not answered. */
const LOCAL_ONLY_MS = 5_000;
// A timer that is set for longer fires immediately.
const MAX_TIMER_MS = 2 ** 31 - 1;

/**
 * Never more than `requests` in any window of `perMs`, over all instances that share the storage. First come, first served in
 * this process, calls and jobs each in a queue of their own. A caller whose slot cannot come in time is refused.
 */
export class RateLimiter {
  readonly #limit: RateLimit | undefined;
  readonly #permitted: Readonly<Record<Kind, number>>;
  readonly #shared: Slots;
  readonly #own: Slots;
  /** The turn of the last one in each queue. */
  readonly #turns: Record<Kind, Promise<unknown>> = { calls: Promise.resolve(), jobs: Promise.resolve() };
  /** Before this moment, there is no slot. */
  readonly #freeAt: Record<Kind, number> = { calls: 0, jobs: 0 };
  #pausedUntil = 0;
  #localUntil = 0;

  /**
   * @param shared the storage of all instances
   * @param own of this process: counts while the storage does not answer
   */
  constructor(limit: RateLimit | false, shared: Slots, own = shared) {
    this.#limit = limit === false ? undefined : limit;
    const { requests } = this.#limit ?? { requests: Infinity };
    this.#permitted = { calls: requests, jobs: Math.ceil(requests * (1 - RESERVED)) };
    this.#shared = shared;
    this.#own = own;
  }

  /** For which time a limited number of requests is permitted, in milliseconds. */
  get windowMs(): number {
    return this.#limit?.perMs ?? 0;
  }

  /** How many jobs a minute the limit permits. */
  get jobsPerMinute(): number {
    return this.#limit ? (this.#permitted.jobs * 60_000) / this.#limit.perMs : Infinity;
  }

  /** For how long the limit, or a pause that the service requested, holds up the last of so many jobs, in milliseconds. */
  jobWaitMs(jobs: number): number {
    const waitMs = Math.max(0, this.#waitMs('jobs'));
    return jobs > 1 && this.#limit ? waitMs + ((jobs - 1) * 60_000) / this.jobsPerMinute : waitMs;
  }

  /** Takes a slot as soon as there is one. Rejects with an `AbortError` when the signal is aborted before. */
  acquire(signal: AbortSignal, patience: Patience = {}): Promise<NoSlot | undefined> {
    const { withinMs = Infinity, maxPauseMs = Infinity, isJob = false } = patience;
    const kind = isJob ? 'jobs' : 'calls';
    const until = performance.now() + withinMs;
    // Behind others that wait, the moment of its own slot is unknown: at least the next one must come in time.
    const refusal = this.#refusal(kind, until, maxPauseMs);
    if (refusal && !signal.aborted) return Promise.resolve(refusal);
    const turn = this.#turns[kind].then(() => this.#take(kind, { until, maxPauseMs }, signal));
    this.#turns[kind] = turn.catch(() => undefined);
    return raceAbort(turn, signal);
  }

  /** Lets nobody through for a while: the service requested it. */
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

  /** @returns 0 when a slot is taken; or how long none is free, in milliseconds */
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
