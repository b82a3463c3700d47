import type { IncomingHttpHeaders } from 'node:http';

/** What a store keeps for one session. */
export type SessionRecord = Readonly<Record<string, unknown>>;

/** The uid under which the session's user was registered in the service; `undefined` for nobody. */
export type SessionUid = (session: SessionRecord, request?: unknown) => string | number | undefined;

/** The part of an express-session store that is needed; any store of that kind fits. */
export interface SessionStore {
  get(sid: string, callback: (error: unknown, session?: object | null) => void): unknown;
  set(sid: string, session: object, callback?: (error?: unknown) => void): unknown;
  destroy(sid: string, callback?: (error?: unknown) => void): unknown;
}

/** A request as the browser sent it, or as it would send the next one. */
export interface CookieRequest {
  readonly headers: IncomingHttpHeaders;
  /** By name, decoded: those that came with the request, or what `Set-Cookie` has made of them. */
  readonly cookies: Readonly<Record<string, string | undefined>>;
}

/** A session that lives in a cookie. */
export interface SessionCookie {
  /** The cookie's name. Values that are cut into `name.0`, `name.1`, … are put together. */
  name: string;
  /**
   * Finds the user in the cookie's value. Must check its signature, or decrypt it: browsers send what they like. A value
   * that is refused – `undefined`, or an error – is nobody's.
   */
  uid: (
    value: string,
    request: CookieRequest,
  ) => string | number | undefined | PromiseLike<string | number | undefined>;
}

export interface DebateSpaceSessionOptions {
  /**
   * Finds the user in a session (docs/getting-started.md#which-user). One that throws names nobody, and a `fault` event
   * reports it.
   * @defaultValue the first of `session.passport.user`, `session.passport` (`@fastify/passport`), `session.user`,
   * `session.userId`, `session.uid` that is a string, a number, an ObjectId, or an object with one of them in `uid`, `id`,
   * `sub`, `userId` or `_id`
   */
  uid?: SessionUid | undefined;
  /** The store or stores to watch, and no others. @defaultValue every store that the app's requests bring along */
  store?: SessionStore | readonly SessionStore[] | undefined;
  /**
   * Sessions that live in a cookie: cookie-session, iron-session, `@fastify/secure-session`, a JWT
   * (docs/cookie-sessions.md). @defaultValue `[]`
   */
  cookies?: readonly SessionCookie[] | undefined;
  /**
   * Which ends of a user's sessions notify. `'any'`: each. `'last'`: only when the user has no other live session; for
   * sessions in stores. Keeps the live sessions in `storage`, which all instances must share. @defaultValue `'any'`
   */
  policy?: 'any' | 'last' | undefined;
  /**
   * Whether users whose session expired count as logged out. `true` looks every minute. Needs `store`, where the sweep
   * looks whether a session is really gone. Keeps the live sessions in `storage`. @defaultValue `false`
   */
  expiry?: boolean | { readonly sweepMs: number } | undefined;
  /**
   * How long a response that is still open may delay the decision about an end, in milliseconds. @defaultValue `500`
   */
  graceMs?: number | undefined;
}
