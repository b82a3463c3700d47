import type { SessionRecord } from '../session-options.js';

/** What stores give a session whose cookie has no end: connect-redis, connect-pg-simple and memorystore a day. */
const DAY_MS = 24 * 60 * 60 * 1000;
const LATEST_MS = 60 * 60_000;

/** When a session expires, by its cookie, in milliseconds since 1970. A store that touches it may know better. */
export function expiryOf(session: SessionRecord, now: number): number {
  return cookieExpiry(session) ?? now + DAY_MS;
}

/** Whether the cookie of a session has expired. A handler that saves such a session logs its user out. */
export function hasExpired(session: SessionRecord): boolean {
  const expiry = cookieExpiry(session);
  return expiry !== undefined && expiry <= Date.now();
}

/**
 * When to look again at a session that is in the store although its time has come: soon if that was just now – somebody
 * has used it since –, and ever less often, because some stores keep what has expired.
 */
export function nextLook(session: SessionRecord, now: number, soonestMs: number): number {
  const expiry = cookieExpiry(session);
  if (expiry === undefined) return now + LATEST_MS;
  if (expiry > now) return expiry;
  return now + Math.min(Math.max((now - expiry) / 2, soonestMs), LATEST_MS);
}

function cookieExpiry(session: SessionRecord): number | undefined {
  const cookie = session.cookie as { expires?: unknown } | null | undefined;
  const { expires } = cookie ?? {};
  if (!(expires instanceof Date) && typeof expires !== 'string') return undefined;
  const time = typeof expires === 'string' ? Date.parse(expires) : expires.getTime();
  return Number.isNaN(time) ? undefined : time;
}
