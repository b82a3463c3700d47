import type { SessionRequest } from './session-request.js';

interface Live {
  uid: string;
  readonly requests: Set<SessionRequest>;
}

/**
 * Whose session it is, for the sessions that requests under way have loaded or saved with a user
 * (session-endings.md, rule 1). Holds nothing beyond the requests: what an idle session holds, the store knows.
 */
export class LiveSessions {
  readonly #sessions = new Map<string, Live>();
  /** Requests whose client left before the head of a response, with its cookies, could. */
  readonly #unanswered = new WeakSet<SessionRequest>();

  uidOf(sid: string): string | undefined {
    return this.#sessions.get(sid)?.uid;
  }

  requestsOf(sid: string): readonly SessionRequest[] {
    return [...(this.#sessions.get(sid)?.requests ?? [])];
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
    request.res.once('close', () => {
      this.#over(request);
      live.requests.delete(request);
      if (live.requests.size === 0 && this.#sessions.get(sid) === live) this.#sessions.delete(sid);
    });
  }

  /** The session has no user any more. */
  forget(sid: string): void {
    this.#sessions.delete(sid);
  }

  /** The session that a request leaves its browser with: another than before only if the cookie naming it has left. */
  leftWith(request: SessionRequest, before: string | undefined): string | undefined {
    const { sessionID, res } = request;
    if (sessionID === before || sessionID === undefined || before === undefined) return sessionID;
    const cookies = [res.getHeader('set-cookie') ?? []].flat().map(String);
    const named = cookies.some((cookie) => cookie.includes(encodeURIComponent(sessionID)));
    return named && res.headersSent && !this.#unanswered.has(request) ? sessionID : before;
  }

  #over(request: SessionRequest): void {
    if (!request.res.headersSent) this.#unanswered.add(request);
  }
}
