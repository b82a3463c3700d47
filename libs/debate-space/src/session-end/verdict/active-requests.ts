import type { Containment } from '../../async/containment.js';
import { sessionLeftByOne } from './browser-cookies.js';
import type { CloseListener, SessionRequest } from './session-request.js';

interface ActiveSession {
  /** Absent when the session has no user any more, or no request. */
  uid: string | undefined;
  readonly holders: Holder[];
}

/** A session with fewer is kept for its next request: a user makes many. */
const MIN_SESSIONS = 1_000;

/** A request has left its browser without the session that it had loaded. */
export type OnAbandoned = (sid: string, uid: string, request: SessionRequest) => void;

/** A request that has loaded or saved a session with a user, until its response is closed. */
class Holder implements CloseListener {
  constructor(
    readonly containment: Containment,
    readonly request: SessionRequest,
    private readonly sid: string,
    private readonly session: ActiveSession,
    /** Whose session it was when this request loaded or saved it last. */
    public uid: string,
    private readonly onAbandoned: OnAbandoned,
  ) {}

  closed(): void {
    const { sid, request, session } = this;
    const { holders, uid } = session;
    const last = holders.pop();
    if (last && last !== this) holders[holders.indexOf(this)] = last;
    if (holders.length === 0) session.uid = undefined;
    if (uid !== undefined && sessionLeftByOne(request, sid) !== sid) this.onAbandoned(sid, uid, request);
  }
}

/**
 * Whose session it is, for the sessions that requests under way have loaded or saved with a user
 * (session-endings.md, rule 1). Holds no request and no uid beyond the response: what an idle session holds, the store
 * knows.
 */
export class ActiveRequests {
  readonly #containment: Containment;
  readonly #onAbandoned: OnAbandoned;
  /**
   * Those without holders are idle, and removed many at a time: a `Map` with few entries that come and go all the time
   * is a new table every few requests.
   */
  #sessions = new Map<string, ActiveSession>();
  #maxSessions = MIN_SESSIONS;

  constructor(containment: Containment, onAbandoned: OnAbandoned) {
    this.#containment = containment;
    this.#onAbandoned = onAbandoned;
  }

  uidOf(sid: string): string | undefined {
    return this.#sessions.get(sid)?.uid;
  }

  /** The user that one of these requests had loaded the session with, though another request has ended it since. */
  uidLoadedBy(sid: string, requests: readonly SessionRequest[]): string | undefined {
    return this.#sessions.get(sid)?.holders.find(({ request }) => requests.includes(request))?.uid;
  }

  requestsOf(sid: string): readonly SessionRequest[] {
    return this.#sessions.get(sid)?.holders.map(({ request }) => request) ?? [];
  }

  /** Every session that is known to have a user. */
  all(): readonly (readonly [sid: string, uid: string])[] {
    return [...this.#sessions].flatMap(([sid, { uid }]) => (uid === undefined ? [] : [[sid, uid] as const]));
  }

  /** The session was loaded or saved with this user, by this request or by no request at all. */
  link(sid: string, uid: string, request: SessionRequest | undefined): void {
    const known = this.#sessions.get(sid);
    if (known && known.holders.length > 0) known.uid = uid;
    if (!request) return;
    if (known)
      for (const holder of known.holders)
        if (holder.request === request) {
          holder.uid = uid;
          return;
        }
    const session = known ?? { uid, holders: [] };
    const holder = new Holder(this.#containment, request, sid, session, uid, this.#onAbandoned);
    if (!request.onClose(holder)) return;
    session.uid = uid;
    session.holders.push(holder);
    if (!known) this.#add(sid, session);
  }

  /** The session has no user any more. The requests that had loaded it are still known. */
  forget(sid: string): void {
    const session = this.#sessions.get(sid);
    if (session) session.uid = undefined;
  }

  #add(sid: string, session: ActiveSession): void {
    if (this.#sessions.size >= this.#maxSessions) {
      this.#sessions = new Map([...this.#sessions].filter(([, { holders }]) => holders.length > 0));
      this.#maxSessions = Math.max(MIN_SESSIONS, 2 * this.#sessions.size);
    }
    this.#sessions.set(sid, session);
  }
}
