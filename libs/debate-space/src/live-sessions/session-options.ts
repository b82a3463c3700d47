import type { SessionCookie, SessionRecord, SessionStore } from '../session-end/session-end.js';

/** Where the sessions are, who their user is, and whether sessions that expire count. */
export interface DebateSpaceSessionOptions<Session extends object = SessionRecord> {
  /**
   * Finds the user in a session (docs/getting-started.md#which-user): the uid under which the user was registered in the
   * service, as a string, a number, an ObjectId, or an object or JSON text of one with one of them in `uid`, `id`, `sub`,
   * `userId` or `_id`. If the function throws or returns a promise, the session counts as anonymous, and a `fault` event
   * reports it.
   * @defaultValue the first of `session.passport.user`, `session.passport` (`@fastify/passport`), `session.user`,
   * `session.userId`, `session.uid` that is a string, a number, an ObjectId, or an object with one of them in `uid`, `id`,
   * `sub`, `userId` or `_id`
   */
  uid?: ((session: Session, request?: unknown) => unknown) | undefined;
  /** The store or stores to watch, and no others. @defaultValue every store that the app's requests bring along */
  store?: SessionStore | readonly SessionStore[] | undefined;
  /**
   * Sessions that live in a cookie: cookie-session, iron-session, `@fastify/secure-session`, a JWT
   * (docs/sessions.md#sessions-in-a-cookie). @defaultValue `[]`
   */
  cookies?: readonly SessionCookie[] | undefined;
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
