import type { Emit } from '../../events.js';

/** The pause that the service has requested: a 429 or 503 with `Retry-After`, from any of its routes. One event each. */
export class ServicePause {
  #until = 0;
  #unavailableUntil = 0;

  constructor(private readonly emit: Emit) {}

  /** Milliseconds until the pause ends; 0 without a pause. */
  get leftMs(): number {
    return Math.max(0, this.#until - performance.now());
  }

  /** Like `leftMs`, after a 503 only: that speaks of the service as a whole, a 429 of one of its limits. */
  get unavailableMs(): number {
    return Math.max(0, this.#unavailableUntil - performance.now());
  }

  /** @param pauseMs what the answer's `Retry-After` says */
  record(status: number, pauseMs = 0): void {
    if ((status !== 429 && status !== 503) || pauseMs === 0) return;
    const isNew = this.leftMs === 0;
    const until = performance.now() + pauseMs;
    this.#until = Math.max(this.#until, until);
    if (status === 503) this.#unavailableUntil = Math.max(this.#unavailableUntil, until);
    if (isNew) this.emit({ type: 'service-pause-requested', status, pauseMs });
  }
}

/** One odd header must not stop an application for years. */
export const MAX_RETRY_AFTER_MS = 60 * 60_000;

/**
 * `Retry-After` (RFC 9110, section 10.2.3), seconds or an HTTP date, in milliseconds from now; `undefined` when absent
 * or unreadable. A longer wait than an hour is not believed. A date is taken against the answer's own `Date`, so that two
 * clocks that differ do no harm.
 */
export function retryAfterMs(value = '', date = '', now = Date.now()): number | undefined {
  const seconds = /^\s*(\d+)\s*(?:,|$)/.exec(value)?.[1];
  const waitMs = seconds === undefined ? httpDate(value) - (httpDate(date) || now) : Number(seconds) * 1000;
  return Number.isNaN(waitMs) ? undefined : Math.min(Math.max(0, waitMs), MAX_RETRY_AFTER_MS);
}

function httpDate(text: string): number {
  return text.endsWith('GMT') ? Date.parse(text) : Number.NaN; // `Date` takes `soon 3`, too
}
