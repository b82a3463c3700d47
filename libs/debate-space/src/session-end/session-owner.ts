import { sessionRequest, type SessionRequest } from './session-request.js';

/**
 * On a session, the request that has it, as express-session's `req`. Copies and stores know nothing of symbols; a
 * `WeakMap` with the session of every request costs a fast host a quarter of its requests, in garbage (measured).
 */
const REQUEST = Symbol('request');

interface Owned {
  readonly req?: unknown;
  [REQUEST]?: SessionRequest;
}

/** Notes whose session it is, where the session library does not. */
export function setOwner(session: object, request: SessionRequest): void {
  if (!('req' in session)) (session as Owned)[REQUEST] = request;
}

/** The request that has a session; none when a job or a script has made it. */
export function ownerOf(session: unknown): SessionRequest | undefined {
  if (typeof session !== 'object' || session === null) return undefined;
  return sessionRequest((session as Owned).req) ?? (session as Owned)[REQUEST];
}
