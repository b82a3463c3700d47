import type { SessionRecord } from '../session-end/session-end.js';
import { expiryOf } from '../session-end/session-user.js';

/** What stores give a session whose cookie has no end: connect-redis, connect-pg-simple and memorystore a day. */
export const DAY_MS = 24 * 60 * 60 * 1000;

/** A session that is used with each click is registered once in this time. */
const RENEW_EVERY_MS = 60_000;
const LATEST_MS = 60 * 60_000;
/** Stores may keep the date of a cookie in seconds. */
const ACCURACY_MS = 1_000;

/**
 * How much later a session must expire to be registered again. A session that expires soon is registered more often, so
 * that it does not count as expired while it is used.
 */
export function renewalInterval(expiresAt: number, now: number): number {
  return Math.min(Math.max(0, (expiresAt - now) / 3), RENEW_EVERY_MS);
}

/**
 * When to look again at a session that is in the store although a sweep was to look for it: when it expires, or, if its time
 * has come, soon, and then less often. A row whose date is earlier than the registered one was touched since: it lives as
 * long as the store has it.
 * @param registered the date of its cookie, as the registry has it
 * @returns `undefined` when it has expired: some stores return expired sessions
 */
export function nextLook(
  session: SessionRecord,
  registered: number,
  now: number,
  soonestMs: number,
): number | undefined {
  if (registered > now) return registered + renewalInterval(registered, now);
  // Without a date in the row a handler may have given it one that was not saved, but told by a touch.
  const expiry = expiryOf(session) ?? Infinity;
  if (expiry <= now && expiry >= registered - ACCURACY_MS) return undefined;
  const next = now + Math.min(Math.max((now - registered) / 2, soonestMs), LATEST_MS);
  // Do not wait for that date: a handler may have shortened the session without saving it.
  return expiry > now ? Math.min(next, expiry) : next;
}
