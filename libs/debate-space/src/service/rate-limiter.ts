import { withTimeout } from '../async/with-timeout.js';
import type { Storage } from '../storage/storage.js';

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

interface Waiting {
  readonly settle: (slot: Slot | NoSlot) => void;
  readonly isJob: boolean;
  readonly until: number;
  readonly maxPauseMs: number;
}

/** The share of the slots that jobs leave to the calls. */
const RESERVED = 0.2;
// The service's clock has whole milliseconds, and a timer may fire up to one early.
const MARGIN_MS = 2;
// A timer that is set for longer fires immediately.
const MAX_TIMER_MS = 2 ** 31 - 1;
/** The slots of all instances are counted from when they are taken; the service sees a request a little later. */
const ON_ITS_WAY_MS = 1_000;
/** How long the storage may take: a call of the host's waits for it. */
const ANSWER_TIMEOUT_MS = 1_000;
/** For how long the storage is not asked again when it has not answered. */
const ALONE_MS = 5_000;

/**
 * Never more than `requests` in any window of `perMs`, as the service sees them: a slot comes free one window after
 * the *answer*, so that it does not matter how long a request was on its way. First come, first served. A caller whose
 * slot cannot come in time is refused as soon as that is certain. Where several instances share the limit, a request
 * needs a slot of theirs, too; while they cannot be asked, the limit of this process alone counts.
 */
export class RateLimiter {
  readonly #limit: RateLimit | undefined;
  /** How many slots jobs leave to the calls. */
  readonly #reserved: number;
  readonly #shared: Pick<Storage, 'takeSlot'> | undefined;
  readonly #waiting = new Set<Waiting>();
  /** When each answered request leaves the window, ascending. */
  readonly #cooling: number[] = [];
  #underWay = 0;
  #pausedUntil = 0;
  #timer: NodeJS.Timeout | undefined;
  /** Before this moment, all instances together have no slot for calls, or for jobs. */
  readonly #sharedFreeAt = { calls: 0, jobs: 0 };
  #isAsking = false;
  /** Until then, the limit of this process alone counts. */
  #aloneUntil = 0;

  /** @param shared the storage, where several instances share it */
  constructor(limit: RateLimit | false, shared?: Pick<Storage, 'takeSlot'>) {
    this.#limit = limit === false ? undefined : limit;
    this.#reserved = limit === false ? 0 : Math.floor(limit.requests * RESERVED);
    this.#shared = shared;
  }

  /** For which time a limited number of requests is permitted, in milliseconds. */
  get windowMs(): number {
    return this.#limit?.perMs ?? 0;
  }

  /**
   * Waits for a slot. Rejects with an `AbortError` when the signal is aborted before.
   * @param withinMs for how long the caller can wait, in milliseconds
   * @param isJob whether the caller leaves some of the slots to others; it holds up no call
   * @param maxPauseMs how long a pause that the service requested may be, in milliseconds
   */
  async acquire(
    signal: AbortSignal,
    withinMs = Infinity,
    isJob = false,
    maxPauseMs = Infinity,
  ): Promise<Slot | NoSlot> {
    signal.throwIfAborted();
    return new Promise((resolve, reject) => {
      const settle = (slot: Slot | NoSlot): void => {
        this.#waiting.delete(waiting);
        signal.removeEventListener('abort', aborted);
        resolve(slot);
      };
      const waiting = { settle, isJob, until: performance.now() + withinMs, maxPauseMs };
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

  /** Lets nobody through for a while: the service requested it. */
  pause(ms: number): void {
    this.#pausedUntil = Math.max(this.#pausedUntil, performance.now() + ms);
    this.#grant();
  }

  /** How many jobs a minute the limit permits. */
  get jobsPerMinute(): number {
    return this.#limit ? ((this.#limit.requests - this.#reserved) * 60_000) / this.#limit.perMs : Infinity;
  }

  /**
   * For how long the limit, or a pause that the service requested, holds up the last of so many jobs, in milliseconds.
   * Jobs that run in this process are the first of them.
   */
  jobWaitMs(jobs: number): number {
    const now = performance.now();
    const ahead = jobs - this.#underWay - 1;
    if (ahead < 0) return 0;
    const pauseMs = Math.max(0, this.#pausedUntil - now);
    if (!this.#limit) return pauseMs;
    const { requests, perMs } = this.#limit;
    const permitted = requests - this.#reserved;
    const ownAt = this.#freeAt(this.#reserved + (ahead % permitted), now);
    const windows = Math.floor(ahead / permitted);
    return Math.max(pauseMs, ownAt - now + windows * (perMs + MARGIN_MS), this.#sharedFreeAt.jobs - now);
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

  /**
   * Gives slots to those whose slot is free, and refuses those whose slot cannot come in time.
   * @param admitted who has just got a slot of all instances; the first one of them takes it
   */
  #grant(admitted?: 'calls' | 'jobs'): void {
    clearTimeout(this.#timer);
    const now = performance.now();
    while ((this.#cooling[0] ?? Infinity) <= now) this.#cooling.shift();
    const isAlone = !this.#limit || !this.#shared || now < this.#aloneUntil;
    let ahead = 0;
    let nextAt = Infinity;
    for (const { settle, isJob, until, maxPauseMs } of this.#waiting) {
      const kind = isJob ? 'jobs' : 'calls';
      const ownAt = this.#freeAt(isJob ? ahead + this.#reserved : ahead, now);
      const at = Math.max(ownAt, this.#pausedUntil, isAlone ? 0 : this.#sharedFreeAt[kind]);
      if (at <= now && (isAlone || admitted === kind)) {
        admitted = undefined;
        settle(this.#newSlot());
      } else if (at > now && (at > until || this.#pausedUntil - now > maxPauseMs)) {
        settle({ retryAfterMs: Math.ceil(at - now) });
      } else {
        if (at > now) nextAt = Math.min(nextAt, at);
        else void this.#ask(kind);
        if (!isJob) ahead += 1;
      }
    }
    // Not unref'd: somebody is waiting.
    if (nextAt < Infinity) {
      const ms = Math.min(Math.ceil(nextAt - now), MAX_TIMER_MS);
      this.#timer = setTimeout(this.#grant.bind(this, undefined), ms);
    }
  }

  /** Asks for a slot of all instances, one question at a time, so that calls keep their order. */
  async #ask(kind: 'calls' | 'jobs'): Promise<void> {
    if (this.#isAsking || !this.#limit || !this.#shared) return;
    this.#isAsking = true;
    const { requests, perMs } = this.#limit;
    const permitted = kind === 'jobs' ? requests - this.#reserved : requests;
    const answer = this.#shared.takeSlot(permitted, perMs + ON_ITS_WAY_MS);
    const waitMs = await withTimeout(answer, ANSWER_TIMEOUT_MS, undefined).catch(() => 0);
    this.#isAsking = false;
    if (waitMs === undefined) this.#aloneUntil = performance.now() + ALONE_MS;
    else this.#sharedFreeAt[kind] = performance.now() + waitMs;
    this.#grant(waitMs === 0 ? kind : undefined);
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
