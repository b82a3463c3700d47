import { isPromise } from '../async/promises.js';
import type { SessionRecord } from './session-end.js';
import { foundUid, RefusedUid } from '../uid-rule.js';

export function isObject(value: unknown): value is object {
  return typeof value === 'object' && value !== null;
}

type Cookie = Partial<Readonly<Record<'expires' | 'originalExpires' | 'originalMaxAge', unknown>>>;

/** When the cookie of a session expires, in milliseconds since 1970; `undefined` when it has no end. */
export function expiryOf({ cookie }: SessionRecord): number | undefined {
  return timeOf((cookie as Cookie | null | undefined)?.expires);
}

/**
 * When a session expires that a request has just loaded. The date in the row may be old: connect-redis and
 * connect-pg-simple do not write it when express-session touches the session, which it does with each answer.
 * @param isTouched whether the store has a method `touch`
 */
export function loadedExpiry(session: SessionRecord, isTouched: boolean): number | undefined {
  const { originalExpires, originalMaxAge } = (session.cookie ?? {}) as Cookie;
  // @fastify/session gives the cookie a new date when it loads the session, and may never save it.
  const stored = timeOf(originalExpires);
  if (stored === undefined && isTouched && typeof originalMaxAge === 'number')
    return Date.now() + originalMaxAge;
  return stored ?? expiryOf(session);
}

/** A handler that gives a session so little time means to end it, such as by `maxAge: 1`. */
const NO_TIME_MS = 100;

/** Whether the cookie of a session has expired. A handler that saves such a session logs its user out. */
export function hasExpired(session: SessionRecord): boolean {
  const expiry = expiryOf(session);
  return expiry !== undefined && expiry <= Date.now() + NO_TIME_MS;
}

/** The session with its user as a store keeps it: a class of the host may write itself in another way by `toJSON`. */
export function asStored(session: SessionRecord): SessionRecord {
  let stored: Record<string, unknown> | undefined;
  for (const key in session) {
    const value = session[key];
    if (key === 'cookie' || !isObject(value) || !('toJSON' in value) || typeof value.toJSON !== 'function')
      continue;
    stored ??= { ...session };
    stored[key] = Reflect.apply(value.toJSON, value, [key]);
  }
  return stored ?? session;
}

function timeOf(date: unknown): number | undefined {
  if (!(date instanceof Date) && typeof date !== 'string') return undefined;
  const time = typeof date === 'string' ? Date.parse(date) : date.getTime();
  return Number.isNaN(time) ? undefined : time;
}

/**
 * The first of `session.passport.user`, `session.passport` (@fastify/passport), `session.user`, `session.userId`,
 * `session.uid` that has a uid: a string, a number, an ObjectId, or an object or JSON of one with `uid`, `id`, `sub`,
 * `userId` or `_id`.
 */
export function defaultSessionUid(session: SessionRecord): string | undefined {
  const uid = userIn(session);
  return uid instanceof RefusedUid ? undefined : uid;
}

/** Like {@link defaultSessionUid}. A uid that is refused ends the search: the next place may name somebody else. */
export function userIn(session: SessionRecord): string | RefusedUid | undefined {
  const { passport } = session;
  return (
    (isObject(passport) ? foundUid(asStored(passport as SessionRecord).user) : undefined) ??
    foundUid(passport) ??
    foundUid(session.user) ??
    foundUid(session.userId) ??
    foundUid(session.uid)
  );
}

/**
 * A uid out of what a uid function of the host returned.
 * @throws TypeError for a promise: the end is noted before the session ends, and nothing may wait for a lookup
 */
export function resolvedUid(value: unknown): string | RefusedUid | undefined {
  if (isPromise(value)) {
    value.then(undefined, () => undefined); // or its rejection would end the process
    throw new TypeError('a uid function must not return a promise');
  }
  return foundUid(value);
}
