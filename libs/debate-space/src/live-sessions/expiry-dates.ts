import type { SessionRecord } from '../session-end/session-end.js';

/** What stores give a session whose cookie has no end: connect-redis, connect-pg-simple and memorystore a day. */
const DAY_MS = 24 * 60 * 60 * 1000;

/** A session that is used with each click is registered once in this time. */
const RENEW_EVERY_MS = 60_000;

/** When a session expires, by its cookie, in milliseconds since 1970. A store that touches it may know better. */
export function expiryOf(session: SessionRecord, now: number): number {
  return cookieDate(session, 'expires') ?? now + DAY_MS;
}

/**
 * When a session expires that a request has just loaded. Its date in the row may be stale: connect-redis and
 * connect-pg-simple do not write the date when express-session touches the session, which it does with each answer.
 * @param isTouched whether the store can be told that a session is used
 */
export function loadedExpiry(session: SessionRecord, now: number, isTouched: boolean): number {
  // `@fastify/session` gives the cookie a new date when it loads the session, and may never save it.
  const stored = cookieDate(session, 'originalExpires');
  const { originalMaxAge } = cookieOf(session);
  if (stored === undefined && isTouched && typeof originalMaxAge === 'number') return now + originalMaxAge;
  return stored ?? expiryOf(session, now);
}

/**
 * How much later a session must expire to be registered again. A session that expires soon is registered more often, so
 * that it does not count as expired while it is used.
 */
export function renewalInterval(expiresAt: number, now: number): number {
  return Math.min(Math.max(0, (expiresAt - now) / 3), RENEW_EVERY_MS);
}

function cookieOf(session: SessionRecord): Cookie {
  return (session.cookie as Cookie | null | undefined) ?? {};
}

function cookieDate(session: SessionRecord, name: 'expires' | 'originalExpires'): number | undefined {
  const date = cookieOf(session)[name];
  if (!(date instanceof Date) && typeof date !== 'string') return undefined;
  const time = typeof date === 'string' ? Date.parse(date) : date.getTime();
  return Number.isNaN(time) ? undefined : time;
}

const LATEST_MS = 60 * 60_000;

/** Stores may keep the date of a cookie in seconds. */
const ACCURACY_MS = 1_000;

/**
 * When to look again at a session that is in the store although its time has come: soon if that was just now, then less
 * often. A row whose date is earlier than the registered one was touched since: it lives as long as the store has it.
 * @param registered the date of its cookie, as the registry has it
 * @returns `undefined` when it has expired: some stores return expired sessions
 */
export function nextLook(
  session: SessionRecord,
  registered: number,
  now: number,
  soonestMs: number,
): number | undefined {
  // Without a date in the row a handler may have given it one that was not saved, but told by a touch.
  const expiry = cookieDate(session, 'expires') ?? Infinity;
  if (expiry <= now && expiry >= registered - ACCURACY_MS) return undefined;
  const next = now + Math.min(Math.max((now - registered) / 2, soonestMs), LATEST_MS);
  // Do not wait for that date: a handler may have shortened the session without saving it.
  return expiry > now ? Math.min(next, expiry) : next;
}

type Cookie = Partial<Record<'expires' | 'originalExpires' | 'originalMaxAge', unknown>>;
