import { isPromise } from './containment.js';
import type { SessionRecord } from './session-end.js';

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
 * `session.uid` that names a user: a string, a number, an ObjectId, or an object with `uid`, `id`, `sub`,
 * `userId` or `_id`.
 */
export function defaultSessionUid(session: SessionRecord): string | undefined {
  const passport = session.passport as { user?: unknown } | null | undefined;
  return (
    uidOf(passport?.user) ??
    uidOf(passport) ??
    uidOf(session.user) ??
    uidOf(session.userId) ??
    uidOf(session.uid)
  );
}

/**
 * A uid out of what a resolver of the host returned.
 * @throws TypeError for a promise: the end is noted before the session ends, and nothing may wait for a lookup
 */
export function resolvedUid(value: unknown): string | undefined {
  if (isPromise(value)) {
    value.then(undefined, () => undefined); // or its rejection would end the process
    throw new TypeError('a uid resolver must not return a promise');
  }
  return uidOf(value);
}

/** A uid out of what hosts keep as their user: the value itself, or its `uid`, `id`, `sub`, `userId` or `_id`. */
export function uidOf(user: unknown): string | undefined {
  const own = scalar(user);
  if (own !== undefined || typeof user !== 'object' || user === null) return own;
  const { uid, id, sub, userId, _id } = user as Record<string, unknown>;
  return scalar(uid) ?? scalar(id) ?? scalar(sub) ?? scalar(userId) ?? scalar(_id);
}

function scalar(value: unknown): string | undefined {
  if (typeof value === 'string') return value === '' ? undefined : value;
  if (isObjectId(value)) return value.toHexString();
  // `Number(undefined)` of a session without a user names nobody.
  return typeof value === 'bigint' || Number.isFinite(value) ? String(value) : undefined;
}

/** MongoDB's ObjectId, of whichever version of its driver; a store that keeps BSON gives it back. */
function isObjectId(value: unknown): value is { toHexString(): string } {
  return typeof (value as { toHexString?: unknown } | null | undefined)?.toHexString === 'function';
}
