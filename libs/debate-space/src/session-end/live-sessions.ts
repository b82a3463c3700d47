import { cookiesAfter, cookiesSent, setsCookieWith } from './browser-cookies.js';
import { isClosed, pathOf, setCookiesOf, type SessionRequest } from './session-request.js';

interface Live {
  uid: string;
  readonly requests: SessionRequest[];
}

/** A request has left its browser without the session that it had loaded. */
export type Abandoned = (sid: string, uid: string, request: SessionRequest) => void;

/**
 * Whose session it is, for the sessions that requests under way have loaded or saved with a user
 * (session-endings.md, rule 1). Holds nothing beyond the requests: what an idle session holds, the store knows.
 */
export class LiveSessions {
  readonly #abandoned: Abandoned;
  /**
   * No `Map` and no `Set`: with few entries that come and go all the time, theirs is a new table every few requests
   * (measured on Express: 16 instead of 8 µs a request).
   */
  readonly #sessions = Object.create(null) as Record<string, Live | undefined>;
  /** Requests whose client left before the head of a response, with its cookies, could. */
  readonly #unanswered = new WeakSet<SessionRequest>();

  constructor(abandoned: Abandoned) {
    this.#abandoned = abandoned;
  }

  uidOf(sid: string): string | undefined {
    return this.#sessions[sid]?.uid;
  }

  requestsOf(sid: string): readonly SessionRequest[] {
    return [...(this.#sessions[sid]?.requests ?? [])];
  }

  /** Every session that is known, with its user. */
  all(): readonly (readonly [sid: string, uid: string])[] {
    return Object.entries(this.#sessions).flatMap(([sid, live]) => (live ? [[sid, live.uid] as const] : []));
  }

  /** The session was loaded or saved with this user, by this request or by no request at all. */
  link(sid: string, uid: string, request: SessionRequest | undefined): void {
    const known = this.#sessions[sid];
    if (known) known.uid = uid;
    if (!request || known?.requests.includes(request)) return;
    if (isClosed(request.res)) {
      this.#over(request);
      return;
    }
    const live = known ?? (this.#sessions[sid] = { uid, requests: [] });
    live.requests.push(request);
    request.res.on('close', () => {
      this.#close(sid, live, request);
    });
  }

  /** The session has no user any more. */
  forget(sid: string): void {
    Reflect.deleteProperty(this.#sessions, sid);
  }

  /** The session that a request leaves its browser with: another than before only by the cookies that have left. */
  leftWith(request: SessionRequest, before: string | undefined): string | undefined {
    const { sessionID, res } = request;
    if (before === undefined) return sessionID;
    if (!res.headersSent || this.#unanswered.has(request)) return before;
    const setCookies = setCookiesOf(request);
    if (setCookies.length === 0) return before;
    // As on every request of rolling sessions.
    if (sessionID === before && setCookies.every((header) => setsCookieWith(before, header))) return before;
    const sent = cookiesSent(request.headers.cookie);
    const after = cookiesAfter(sent, setCookies, pathOf(request.native ?? request));
    const has = (sid: string | undefined): boolean =>
      sid !== undefined && Object.values(after).some((value) => value?.includes(sid));
    if (has(sessionID)) return sessionID;
    if (has(before)) return before;
    const wasSent = Object.values(sent).some((value) => value?.includes(before));
    return wasSent ? undefined : sessionID; // ids that cookies do not show
  }

  #close(sid: string, live: Live, request: SessionRequest): void {
    this.#over(request);
    live.requests.splice(live.requests.indexOf(request), 1);
    if (this.#sessions[sid] !== live) return;
    if (live.requests.length === 0) this.forget(sid);
    if (this.leftWith(request, sid) !== sid) this.#abandoned(sid, live.uid, request);
  }

  #over(request: SessionRequest): void {
    if (!request.res.headersSent) this.#unanswered.add(request);
  }
}
