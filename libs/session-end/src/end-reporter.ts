import type { Containment, MaybePromise } from './containment.js';
import type { EndReason, SessionEndListener } from './session-end.js';
import { isObject } from './session-user.js';

/** A session that has ended for its user. */
export interface ReportedEnd {
  readonly uid: string;
  readonly reason: EndReason;
  /** When, by `performance.now()`: the machine's clock may be put back. */
  readonly at: number;
}

/** The clock was put forward or back; less is what the two clocks differ by from call to call. */
const CLOCK_STEP_MS = 20;

/** Tells the listener of ends: each user once for each request. Never throws or rejects. */
export class EndReporter {
  /** How long an answer may wait for the listener. */
  readonly answerTimeoutMs: number;
  readonly #listener: SessionEndListener;
  readonly #containment: Containment;
  /** When who was reported because of which request, known by its response. */
  readonly #reportedAt = new WeakMap<object, Map<string, number>>();
  #clockOffsetMs = NaN;

  constructor(listener: SessionEndListener, containment: Containment, answerTimeoutMs: number) {
    this.#listener = listener;
    this.#containment = containment;
    this.answerTimeoutMs = answerTimeoutMs;
  }

  /**
   * Reports an end, unless one of these causes – responses, most often – was reported for this user.
   * @param since earlier reports do not count, by `performance.now()`: a socket is one request, and may end several sessions
   * @returns resolves when the listener has done; a promise only when the listener needs one
   */
  report({ uid, reason, at }: ReportedEnd, causes: readonly unknown[], since = 0): MaybePromise<unknown> {
    if (!this.#isFirst(uid, since, causes.filter(isObject))) return undefined;
    const end = { uid, reason, endedAt: new Date(this.#dateOf(at)) };
    return this.#containment.run<unknown>('onSessionEnd', () => this.#listener.onSessionEnd(end), undefined);
  }

  /** Whether anybody listens for logins. */
  get wantsLogins(): boolean {
    return this.#listener.loggedIn !== undefined;
  }

  /** @param at by `performance.now()` */
  loggedIn(uid: string, at = performance.now()): void {
    this.#containment.run('loggedIn', () => this.#listener.loggedIn?.(uid, this.#dateOf(at)));
  }

  /** A report covers what had ended by then. */
  #isFirst(uid: string, since: number, causes: readonly object[]): boolean {
    if (causes.some((cause) => (this.#reportedAt.get(cause)?.get(uid) ?? -Infinity) >= since)) return false;
    for (const cause of causes) {
      const reports = this.#reportedAt.get(cause) ?? new Map<string, number>();
      this.#reportedAt.set(cause, reports.set(uid, performance.now()));
    }
    return true;
  }

  /** By `Date.now()`, in the order of the moments: an end and a login may be less than a millisecond apart. */
  #dateOf(at: number): number {
    const offsetMs = Date.now() - performance.now();
    if (!(Math.abs(offsetMs - this.#clockOffsetMs) < CLOCK_STEP_MS)) this.#clockOffsetMs = offsetMs;
    return Math.floor(at + this.#clockOffsetMs);
  }
}
