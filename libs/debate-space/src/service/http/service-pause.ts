import type { Emit } from '../../events.js';

/** The pause that the service has requested: a 429 or 503 with `Retry-After`, from any of its routes. One event each. */
export class ServicePause {
  #until = 0;
  #unavailableUntil = 0;

  constructor(private readonly emit: Emit) {}

  /** Milliseconds until the pause ends; 0 when there is none. */
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
 * or unreadable. Of a repeated header, the first value counts. A longer wait than an hour is not believed. A date is
 * taken against the answer's own `Date`, so that two clocks that differ do no harm.
 */
export function retryAfterMs(
  value: string | undefined,
  date: string | undefined,
  now = Date.now(),
): number | undefined {
  const text = firstOf(value);
  if (/^\d+$/.test(text)) return Math.min(Number(text) * 1000, MAX_RETRY_AFTER_MS);
  const at = httpDate(text);
  if (Number.isNaN(at)) return undefined;
  const serverNow = httpDate(firstOf(date));
  const waitMs = at - (Number.isNaN(serverNow) ? now : serverNow);
  return Math.min(Math.max(0, waitMs), MAX_RETRY_AFTER_MS);
}

/** The first value of a header that may have been repeated. The name of a day may end with a comma of its own. */
function firstOf(value = ''): string {
  return /^\s*([A-Z][a-z]{2,8},)?[^,]*/.exec(value)?.[0].trim() ?? '';
}

/** An HTTP date in any of its three forms (RFC 9110, section 5.6.7); the one without a time zone is in UTC as well. */
function httpDate(text: string): number {
  if (!/^[A-Z][a-z]{2,8},? /.test(text)) return Number.NaN;
  return Date.parse(text.endsWith('GMT') ? text : `${text} GMT`);
}
