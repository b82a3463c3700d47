import { isPromise } from './containment.js';
import type { SessionRecord } from './session-end.js';
import { foundUid, RefusedUid } from '../uid-rule.js';

export function isObject(value: unknown): value is object {
  return typeof value === 'object' && value !== null;
}

/** Whether the cookie of a session has expired. A handler that saves such a session logs its user out. */
export function hasExpired(session: SessionRecord): boolean {
  const expires = (session.cookie as { readonly expires?: unknown } | null | undefined)?.expires;
  if (!(expires instanceof Date) && typeof expires !== 'string') return false;
  return (typeof expires === 'string' ? Date.parse(expires) : expires.getTime()) <= Date.now();
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
  const passport = session.passport as { user?: unknown } | null | undefined;
  return (
    foundUid(passport?.user) ??
    foundUid(passport) ??
    foundUid(session.user) ??
    foundUid(session.userId) ??
    foundUid(session.uid)
  );
}

/**
 * A uid out of what a resolver of the host returned.
 * @throws TypeError for a promise: the end is noted before the session ends, and nothing may wait for a lookup
 */
export function resolvedUid(value: unknown): string | RefusedUid | undefined {
  if (isPromise(value)) {
    value.then(undefined, () => undefined); // or its rejection would end the process
    throw new TypeError('a uid resolver must not return a promise');
  }
  return foundUid(value);
}
