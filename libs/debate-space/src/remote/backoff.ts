/**
 * Full jitter: a random time between 0 and `firstMs · 2^(failures − 1)`, at most `mostMs`.
 * @param failures how many attempts have failed so far, from 1
 * @param random a number from 0 to 1
 * @returns milliseconds
 */
export function fullJitter(
  failures: number,
  firstMs: number,
  mostMs: number,
  random = Math.random(),
): number {
  return Math.round(random * Math.min(mostMs, firstMs * 2 ** Math.min(failures - 1, 30)));
}

/**
 * `Retry-After` (RFC 9110, section 10.2.3), seconds or an HTTP date, in milliseconds from now; `undefined` when absent
 * or unreadable. A date is taken against the answer's own `Date`, so that two clocks that differ do no harm.
 */
export function retryAfterMs(
  value: string | undefined,
  date: string | undefined,
  now = Date.now(),
): number | undefined {
  const text = value?.trim();
  if (!text) return undefined;
  if (/^\d{1,9}$/.test(text)) return Number(text) * 1000;
  const at = httpDate(text);
  if (Number.isNaN(at)) return undefined;
  const serverNow = httpDate(date ?? '');
  return Math.max(0, at - (Number.isNaN(serverNow) ? now : serverNow));
}

/** An HTTP date in any of its three forms (RFC 9110, section 5.6.7); the one without a time zone is in UTC as well. */
function httpDate(text: string): number {
  if (!/^[A-Z][a-z]{2,8},? /.test(text)) return Number.NaN;
  return Date.parse(text.endsWith('GMT') ? text : `${text} GMT`);
}
