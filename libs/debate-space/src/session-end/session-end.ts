import type { IncomingHttpHeaders } from 'node:http';

/**
 * Why a session ended. `abandoned`: the browser left it for another or for none; `expired`: it ran out; `explicit`:
 * reported by the app.
 */
export type EndReason =
  'destroyed' | 'user-removed' | 'user-replaced' | 'cleared' | 'abandoned' | 'expired' | 'explicit';

/** A session has ended for its user. */
export interface SessionEnd {
  readonly uid: string;
  readonly reason: EndReason;
  readonly endedAt: Date;
}

/** The listener for ends. Its errors become faults, and never reach the app. */
export interface SessionEndListener {
  /**
   * Called once per user and request, and once per session and user. A promise holds the answer of the request that ended
   * the session, for `answerTimeoutMs` at most, and nothing else.
   */
  onSessionEnd(end: SessionEnd): void | PromiseLike<void>;
  /**
   * A user has logged in, in a session that was anonymous or another user's.
   * @param at in milliseconds since 1970; it may be known late, after the next end
   */
  loggedIn?(uid: string, at: number): void;
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

/** Whether an end is to be reported: it is if both are true. */
export interface EndVerdict {
  /** Whether no other process reports it. */
  readonly isFirst: boolean;
  /** Whether it counts: each does, or the user has no other live session. */
  readonly isLast: boolean;
}

/**
 * A port for those who keep every live session, over all processes: to report only the last end of a user, an end once over
 * several processes, or sessions that have expired. Its methods neither throw nor reject.
 */
export interface LiveSessions {
  /** Whether an end counts only if the user has no other live session. */
  readonly lastOnly: boolean;
  /** A request has loaded the session. @param isTouched whether the store can be told that a session is used */
  loaded(sid: string, uid: string, session: SessionRecord, isTouched: boolean): void;
  /** The session was saved with this user. */
  saved(sid: string, uid: string, session: SessionRecord): void;
  /** The session was used, by a request that may not have heard of its end. */
  touched(sid: string, uid: string, session: SessionRecord): void;
  /**
   * The session has no user.
   * @param wasSaved whether it was saved like that although nobody knew that it had a user: no end of it will follow
   */
  anonymous(sid: string, wasSaved?: boolean): void;
  /** The session has ended. If it is to be reported, {@link reported} follows, unless this process dies before. */
  ended(sid: string, uid: string): Promise<EndVerdict>;
  /** The end is reported. */
  reported(sid: string, uid: string): Promise<unknown>;
  /** The user has gone on with another session: this one is not to be reported. */
  forget(sid: string, uid: string): Promise<unknown>;
}

/** A setup in which ends are missed. */
export type SetupWarningCode =
  | 'uid-not-found'
  | 'uid-never-found'
  | 'cookie-without-uid'
  | 'session-without-store'
  | 'session-of-parent-app'
  | 'clear-not-listed'
  | 'store-not-watchable'
  | 'store-not-answering';

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
  /** The live sessions of all instances, which decide whether an end counts. @defaultValue none: each end counts */
  readonly liveSessions?: LiveSessions | undefined;
  /** A failure of the app's or of ours, which is contained. @param where such as `store.destroy` */
  readonly onFault?: ((where: string, error: unknown) => void) | undefined;
  /** Something in how the app sets up its sessions keeps ends from being seen. */
  readonly onWarning?: ((warning: SetupWarning) => void) | undefined;
  /** A store is watched from now on. @param name of its class */
  readonly onStore?: ((name: string) => void) | undefined;
}
