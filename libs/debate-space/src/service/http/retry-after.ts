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
