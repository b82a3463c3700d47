import type { Emit } from '../../events.js';

/** The pause that the service requests: a 429 or 503 with `Retry-After` from any route. Emits one event for each pause. */
export class ServicePause {
  #until = 0;
  #unavailableUntil = 0;

  constructor(private readonly emit: Emit) {}

  /** Milliseconds until the pause ends; 0 without a pause. */
  get leftMs(): number {
    return Math.max(0, this.#until - performance.now());
  }

  /** Like `leftMs`, after a 503 only: a 503 is about the whole service, a 429 about one of its limits. */
  get unavailableMs(): number {
    return Math.max(0, this.#unavailableUntil - performance.now());
  }

  /** @param pauseMs the answer's `Retry-After`, in milliseconds */
  record(status: number, pauseMs = 0): void {
    if ((status !== 429 && status !== 503) || pauseMs === 0) return;
    const isNew = this.leftMs === 0;
    const until = performance.now() + pauseMs;
    this.#until = Math.max(this.#until, until);
    if (status === 503) this.#unavailableUntil = Math.max(this.#unavailableUntil, until);
    if (isNew) this.emit({ type: 'service-pause-requested', status, pauseMs });
  }
}

/** A longer `Retry-After` is not believed: one odd header must not stop an application for years. */
export const MAX_RETRY_AFTER_MS = 60 * 60_000;

/**
 * `Retry-After` (RFC 9110, section 10.2.3), seconds or an HTTP date, in milliseconds from now, an hour at most; `undefined`
 * when absent or unreadable. Compares a date with the answer's own `Date`, because the clocks may differ.
 */
export function retryAfterMs(value = '', date = '', now = Date.now()): number | undefined {
  const seconds = /^\s*(\d+)\s*(?:,|$)/.exec(value)?.[1];
  const waitMs = seconds === undefined ? httpDate(value) - (httpDate(date) || now) : Number(seconds) * 1000;
  return Number.isNaN(waitMs) ? undefined : Math.min(Math.max(0, waitMs), MAX_RETRY_AFTER_MS);
}

function httpDate(text: string): number {
  return text.endsWith('GMT') ? Date.parse(text) : Number.NaN; // `Date.parse` accepts `soon 3`, too
}
