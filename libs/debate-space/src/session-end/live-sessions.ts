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

  /** The session was loaded or saved with this user, by this request. */
  link(sid: string, uid: string, request: SessionRequest): void {
    if (request.res.closed) return;
    const live = this.#sessions.get(sid) ?? { uid, requests: new Set() };
    this.#sessions.set(sid, live);
    live.uid = uid;
    if (live.requests.has(request)) return;
    live.requests.add(request);
    request.res.once('close', () => {
      live.requests.delete(request);
      if (live.requests.size === 0 && this.#sessions.get(sid) === live) this.#sessions.delete(sid);
    });
  }

  /** The session has no user any more. */
  forget(sid: string): void {
    this.#sessions.delete(sid);
  }
}
