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
  /** Whether the caller leaves some of the slots to others, and goes behind them. @defaultValue `false` */
  readonly isJob?: boolean;
}

interface Waiting {
  readonly settle: (refusal?: NoSlot) => void;
  readonly kind: 'calls' | 'jobs';
  readonly until: number;
}

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
 * Never more than `requests` in any window of `perMs`, over all instances that share the storage. First come, first served,
 * calls before jobs. A caller whose slot cannot come in time is refused as soon as that is certain.
 */
export class RateLimiter {
  readonly #limit: RateLimit | undefined;
  readonly #permitted: Readonly<Record<Waiting['kind'], number>>;
  readonly #shared: Slots;
  readonly #own: Slots;
  readonly #waiting = new Set<Waiting>();
  /** Before this moment, there is no slot for calls, or for jobs. */
  readonly #freeAt = { calls: 0, jobs: 0 };
  #pausedUntil = 0;
  #localUntil = 0;
  #isServing = false;
  #timer: NodeJS.Timeout | undefined;

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
    const waitMs = Math.max(0, this.#openAt('jobs') - performance.now());
    return jobs > 1 && this.#limit ? waitMs + ((jobs - 1) * 60_000) / this.jobsPerMinute : waitMs;
  }

  /** Takes a slot as soon as there is one. Rejects with an `AbortError` when the signal is aborted before. */
  async acquire(
    signal: AbortSignal,
    { withinMs = Infinity, isJob = false }: Patience = {},
  ): Promise<NoSlot | undefined> {
    signal.throwIfAborted();
    return new Promise((resolve, reject) => {
      const settle = (refusal?: NoSlot): void => {
        this.#waiting.delete(waiting);
        signal.removeEventListener('abort', abort);
        resolve(refusal);
      };
      const kind = isJob ? 'jobs' : 'calls';
      const waiting: Waiting = { settle, kind, until: performance.now() + withinMs };
      const abort = (): void => {
        this.#waiting.delete(waiting);
        reject(new DOMException('aborted while waiting for the rate limit', 'AbortError'));
        void this.#serve();
      };
      signal.addEventListener('abort', abort, { once: true });
      this.#waiting.add(waiting);
      void this.#serve();
    });
  }

  /** Lets nobody through for a while: the service requested it. */
  pause(ms: number): void {
    this.#pausedUntil = Math.max(this.#pausedUntil, performance.now() + ms);
    void this.#serve();
  }

  /** Takes one slot after another from the storage, and refuses those whose slot cannot come in time. */
  async #serve(): Promise<void> {
    if (this.#isServing) return;
    this.#isServing = true;
    clearTimeout(this.#timer);
    for (let kind = this.#nextKind(); kind !== undefined; kind = this.#nextKind()) {
      const waitMs = this.#limit ? await this.#take(kind, this.#limit) : 0;
      if (waitMs > 0) this.#freeAt[kind] = performance.now() + waitMs;
      else if (this.#openAt(kind) <= performance.now()) this.#firstOf(kind)?.settle(); // no pause has begun
    }
    this.#isServing = false;
    const openAt = Math.min(...[...this.#waiting].map(({ kind }) => this.#openAt(kind)));
    if (openAt === Infinity) return;
    // Not unref'd: somebody is waiting.
    const ms = Math.min(Math.ceil(openAt - performance.now()), MAX_TIMER_MS);
    this.#timer = setTimeout(() => void this.#serve(), ms);
  }

  /** Whose turn it is; `undefined` when nobody waits, or no slot is free. */
  #nextKind(): Waiting['kind'] | undefined {
    const now = performance.now();
    for (const { settle, kind, until } of this.#waiting) {
      const openAt = this.#openAt(kind);
      if (openAt > now && openAt > until) settle({ retryAfterMs: Math.ceil(openAt - now) });
    }
    return (['calls', 'jobs'] as const).find((kind) => this.#openAt(kind) <= now && this.#firstOf(kind));
  }

  #firstOf(kind: Waiting['kind']): Waiting | undefined {
    for (const waiting of this.#waiting) if (waiting.kind === kind) return waiting;
    return undefined;
  }

  #openAt(kind: Waiting['kind']): number {
    return Math.max(this.#freeAt[kind], this.#pausedUntil);
  }

  /** @returns 0, or how long no slot is free, in milliseconds */
  async #take(kind: Waiting['kind'], { perMs }: RateLimit): Promise<number> {
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
