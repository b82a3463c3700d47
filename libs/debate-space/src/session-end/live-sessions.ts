import { cookiesAfter, cookiesSent } from './browser-cookies.js';
import { setCookiesOf, type SessionRequest } from './session-request.js';

interface Live {
  uid: string;
  readonly requests: Set<SessionRequest>;
}

/** A request has left its browser without the session that it had loaded. */
export type Abandoned = (sid: string, uid: string, request: SessionRequest) => void;

/**
 * Whose session it is, for the sessions that requests under way have loaded or saved with a user
 * (session-endings.md, rule 1). Holds nothing beyond the requests: what an idle session holds, the store knows.
 */
export class LiveSessions {
  readonly #abandoned: Abandoned;
  readonly #sessions = new Map<string, Live>();
  /** Those under way that have, or had, a session with a user. */
  readonly #requests = new Set<SessionRequest>();
  /** Requests whose client left before the head of a response, with its cookies, could. */
  readonly #unanswered = new WeakSet<SessionRequest>();

  constructor(abandoned: Abandoned) {
    this.#abandoned = abandoned;
  }

  uidOf(sid: string): string | undefined {
    return this.#sessions.get(sid)?.uid;
  }

  requestsOf(sid: string): readonly SessionRequest[] {
    return [...(this.#sessions.get(sid)?.requests ?? [])];
  }

  /** The request that has this session object now. */
  requestWith(session: unknown): SessionRequest | undefined {
    for (const request of this.#requests) if (request.session === session) return request;
    return undefined;
  }

  /** Every session that is known, with its user. */
  all(): readonly (readonly [sid: string, uid: string])[] {
    return [...this.#sessions].map(([sid, { uid }]) => [sid, uid] as const);
  }

  /** The session was loaded or saved with this user, by this request or by no request at all. */
  link(sid: string, uid: string, request: SessionRequest | undefined): void {
    const known = this.#sessions.get(sid);
    if (known) known.uid = uid;
    if (!request || known?.requests.has(request)) return;
    if (request.res.closed) {
      this.#over(request);
      return;
    }
    const live = known ?? { uid, requests: new Set() };
    this.#sessions.set(sid, live);
    live.requests.add(request);
    this.#requests.add(request);
    request.res.once('close', () => {
      this.#over(request);
      if (this.#sessions.get(sid) === live && this.leftWith(request, sid) !== sid)
        this.#abandoned(sid, live.uid, request);
      this.#requests.delete(request);
      live.requests.delete(request);
      if (live.requests.size === 0 && this.#sessions.get(sid) === live) this.#sessions.delete(sid);
    });
  }

  /** The session has no user any more. */
  forget(sid: string): void {
    this.#sessions.delete(sid);
  }

  /** The session that a request leaves its browser with: another than before only by the cookies that have left. */
  leftWith(request: SessionRequest, before: string | undefined): string | undefined {
    const { sessionID, res } = request;
    if (before === undefined) return sessionID;
    if (!res.headersSent || this.#unanswered.has(request)) return before;
    const setCookies = setCookiesOf(request);
    if (setCookies.length === 0) return before;
    const sent = cookiesSent(request.headers.cookie);
    const after = cookiesAfter(sent, setCookies);
    const has = (sid: string | undefined): boolean =>
      sid !== undefined && Object.values(after).some((value) => value?.includes(sid));
    if (has(sessionID)) return sessionID;
    if (has(before)) return before;
    const wasSent = Object.values(sent).some((value) => value?.includes(before));
    return wasSent ? undefined : sessionID; // ids that cookies do not show
  }

  #over(request: SessionRequest): void {
    if (!request.res.headersSent) this.#unanswered.add(request);
  }
}
