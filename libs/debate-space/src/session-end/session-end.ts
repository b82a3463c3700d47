import type { IncomingHttpHeaders } from 'node:http';
import type { SessionEndReason, SetupWarningCode } from '../events.js';

/** A session has ended for its user. */
export interface SessionEnd {
  readonly uid: string;
  readonly reason: SessionEndReason;
  readonly endedAt: Date;
}

/** The listener for ends. Its errors become faults, and never reach the app. */
export interface SessionEndListener {
  /**
   * Called once per user and request, and once per session and user; rarely twice within a second. A promise delays the
   * answer of the request that ended the session, for at most `answerTimeoutMs`, and nothing else.
   * @param sid the id of the session in its store; absent for a session in a cookie. A secret
   */
  onSessionEnd(end: SessionEnd, sid?: string): void | PromiseLike<void>;
}

/** The content of one session in a store. */
export type SessionRecord = Readonly<Record<string, unknown>>;

/**
 * Finds the user in a session: a string, a number, an ObjectId, or an object or JSON text of one with one of them in `uid`,
 * `id`, `sub`, `userId` or `_id`. What cannot be a uid, such as a JWT, is a warning; anything else is nobody. It must not
 * return a promise.
 */
export type SessionUid = (session: SessionRecord, request?: unknown) => unknown;

/** The part of an express-session store that is needed; any store of that kind fits. */
export interface SessionStore {
  get(sid: string, callback: (error: unknown, session?: object | null) => void): unknown;
  set(sid: string, session: object, callback?: (error?: unknown) => void): unknown;
  destroy(sid: string, callback?: (error?: unknown) => void): unknown;
}

/** A request as the browser sent it, or as it would send the next one. */
export interface CookieRequest {
  readonly headers: IncomingHttpHeaders;
  /** By name, decoded: the cookies of the request, or their state after `Set-Cookie`. */
  readonly cookies: Readonly<Record<string, string | undefined>>;
}

/** A session that lives in a cookie. */
export interface SessionCookie {
  /** The cookie's name. Values that are cut into `name.0`, `name.1`, … are put together. */
  name: string;
  /**
   * Finds the user in the cookie's value. Must check its signature, or decrypt it: browsers send what they like. A value
   * that is refused (`undefined`, or an error) counts as anonymous.
   */
  uid: (
    value: string,
    request: CookieRequest,
  ) => string | number | undefined | PromiseLike<string | number | undefined>;
}

/** A session of a user, as the store has it. */
export interface FoundSession {
  readonly uid: string;
  readonly session: SessionRecord;
}

/** The live sessions of all processes, which a sweep looks through for expired ones. */
export interface LiveSessions {
  /**
   * A request has loaded, saved or touched the session with this user. Called with each request; must not throw.
   * @param expiresAt in milliseconds since 1970, by its cookie; `undefined` when the cookie has no end
   */
  register(sid: string, uid: string, expiresAt: number | undefined): void;
  /**
   * The session has lost its user, and there is nothing to report: the user continues with another session, or was
   * reported for the same request. Never rejects.
   */
  forget(sid: string, uid: string): Promise<void>;
}

/** Given once for each `code`. */
export interface SetupWarning {
  readonly code: SetupWarningCode;
  /** Has keys of sessions, never values. */
  readonly message: string;
  /** The option to set. */
  readonly hint: string;
}

/** Which sessions are watched, and who hears of their ends. */
export interface SessionEndOptions extends SessionEndListener {
  /**
   * Finds the user in a session. If it throws or returns a promise, the session counts as anonymous, and that is a fault.
   * @defaultValue {@link defaultSessionUid}
   */
  readonly uid?: SessionUid | undefined;
  /** The store or stores to watch, and no others. @defaultValue every store that the app's requests bring along */
  readonly store?: SessionStore | readonly SessionStore[] | undefined;
  /** Sessions that live in a cookie: cookie-session, iron-session, `@fastify/secure-session`, a JWT. @defaultValue `[]` */
  readonly cookies?: readonly SessionCookie[] | undefined;
  /** How long a response that is still open may delay the decision about an end, in milliseconds. @defaultValue `500` */
  readonly graceMs?: number | undefined;
  /**
   * How long an answer may wait for {@link SessionEndListener.onSessionEnd}, and a store's call for the read that finds its
   * user, in milliseconds. @defaultValue `250`
   */
  readonly answerTimeoutMs?: number | undefined;
  /** The live sessions of all instances. @defaultValue nobody keeps them */
  readonly liveSessions?: LiveSessions | undefined;
  /** A failure of the app's or of ours, which is contained. @param where such as `store.destroy` */
  readonly onFault?: ((where: string, error: unknown) => void) | undefined;
  /** Something in how the app sets up its sessions keeps ends from being seen. */
  readonly onWarning?: ((warning: SetupWarning) => void) | undefined;
  /** A store is watched from now on. @param name of its class */
  readonly onStore?: ((name: string) => void) | undefined;
}
