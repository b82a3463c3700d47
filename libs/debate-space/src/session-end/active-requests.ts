import { LRUCache } from 'lru-cache';
import type { Containment } from './containment.js';
import { BrowserMoves } from './browser-cookies.js';
import type { CloseListener, SessionRequest } from './session-request.js';

interface ActiveSession {
  /** Absent when the session has no user any more, or no request. */
  uid: string | undefined;
  readonly holders: Holder[];
}

/** A session with fewer is kept for its next request: a user makes many. */
const MIN_SESSIONS = 1_000;

/** How long the handler of a request whose client has gone may still use its session. */
const ABORTED_MS = 60_000;
const MAX_ABORTED = 1_000;

/** A request has left its browser without a session that the browser had; others may give it to the browser again. */
export type OnAbandoned = (
  sid: string,
  uid: string,
  request: SessionRequest,
  ...others: readonly SessionRequest[]
) => void;

/** A request that has loaded or saved a session with a user, until its response is closed. */
class Holder implements CloseListener {
  constructor(
    readonly containment: Containment,
    readonly request: SessionRequest,
    private readonly sid: string,
    private readonly session: ActiveSession,
    /** Whose session it was when this request loaded or saved it last. */
    public uid: string,
    private readonly requests: ActiveRequests,
  ) {}

  closed(): void {
    const { sid, request, session } = this;
    const { holders, uid } = session;
    const last = holders.pop();
    if (last && last !== this) holders[holders.indexOf(this)] = last;
    if (holders.length === 0) session.uid = undefined;
    this.requests.closed(sid, uid, request, this.uid);
  }
}

/**
 * Whose session it is, for the sessions that requests under way have loaded or saved with a user
 * (session-endings.md, rule 1). Holds no request and no uid beyond the response, but for a minute where the client has
 * gone: what an idle session holds, the store knows.
 */
export class ActiveRequests {
  readonly moves = new BrowserMoves();
  readonly #containment: Containment;
  readonly #onAbandoned: OnAbandoned;
  /**
   * Those without holders are idle, and removed many at a time: a `Map` with few entries that come and go all the time
   * is a new table every few requests.
   */
  #sessions = new Map<string, ActiveSession>();
  #maxSessions = MIN_SESSIONS;
  /** The uids of sessions whose requests were aborted, by session id. Their handlers may still run. */
  readonly #aborted = new LRUCache<string, string>({ max: MAX_ABORTED, ttl: ABORTED_MS });

  constructor(containment: Containment, onAbandoned: OnAbandoned) {
    this.#containment = containment;
    this.#onAbandoned = onAbandoned;
  }

  uidOf(sid: string): string | undefined {
    return this.#sessions.get(sid)?.uid ?? this.#aborted.get(sid);
  }

  /** Whether the session of a request is known to have no user, when it has no uid here. */
  knows(request: SessionRequest): boolean {
    if (!request.isClosed) return true;
    return !request.isFinished && Date.now() - request.abortedAt < ABORTED_MS;
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
    const holder = new Holder(this.#containment, request, sid, session, uid, this);
    if (!request.onClose(holder)) {
      this.#aborted.set(sid, uid);
      return;
    }
    session.uid = uid;
    session.holders.push(holder);
    if (!known) this.#add(sid, session);
  }

  /** The session has no user any more. The requests that had loaded it are still known. */
  forget(sid: string): void {
    this.#aborted.delete(sid);
    const session = this.#sessions.get(sid);
    if (session) session.uid = undefined;
  }

  /**
   * The browser has sent this session, and the request goes on with another one. What its answer makes of the browser
   * counts, if other requests of that session are or were under way: one may have renewed it.
   */
  follow(request: SessionRequest, sent: string): void {
    const holders = this.#sessions.get(sent)?.holders ?? [];
    if (holders.some((holder) => holder.request === request)) return;
    if (holders.length === 0 && !this.moves.after(sent)) return;
    const closed = (): void => {
      this.closed(sent, undefined, request);
    };
    request.onClose({ containment: this.#containment, closed });
  }

  /** The requests of this user that are not answered. */
  requestsOfUser(uid: string): readonly SessionRequest[] {
    return this.#unanswered((holder) => holder.uid === uid);
  }

  unanswered(): readonly SessionRequest[] {
    return this.#unanswered(() => true);
  }

  #unanswered(isWanted: (holder: Holder) => boolean): readonly SessionRequest[] {
    const requests: SessionRequest[] = [];
    for (const { holders } of this.#sessions.values())
      for (const holder of holders)
        if (isWanted(holder) && !holder.request.isCommitted) requests.push(holder.request);
    return requests;
  }

  /**
   * The response of a request of this session is closed.
   * @param uid `undefined` when the session has no user any more
   * @param own whose session it was when the request loaded or saved it last
   */
  closed(sid: string, uid: string | undefined, request: SessionRequest, own = uid): void {
    const isFinished = request.isUpgrade || request.res.writableEnded;
    if (uid !== undefined && !isFinished) this.#aborted.set(sid, uid);
    if (request.setCookies.length === 0 && !request.clearsCookies) return; // most requests
    const left = this.moves.answered({ sid, uid }, request, (other) => this.#sessions.get(other)?.uid);
    if (left?.sid === undefined || left.uid === undefined) return;
    // Those that have logged another user in there since are not answered.
    const holders = own === left.uid ? [] : (this.#sessions.get(left.sid)?.holders ?? []);
    const others = holders.filter((holder) => holder.uid === left.uid).map((holder) => holder.request);
    this.#onAbandoned(left.sid, left.uid, request, ...others);
  }

  #add(sid: string, session: ActiveSession): void {
    if (this.#sessions.size >= this.#maxSessions) {
      this.#sessions = new Map([...this.#sessions].filter(([, { holders }]) => holders.length > 0));
      this.#maxSessions = Math.max(MIN_SESSIONS, 2 * this.#sessions.size);
    }
    this.#sessions.set(sid, session);
  }
}

/** The requests under way that may log a user in, with a session or without one. */
export class OpenRequests implements CloseListener {
  readonly containment: Containment;
  /** Whether those that only read count, too: a login at an identity provider comes back by `GET`. */
  readonly countsAll: boolean;
  readonly #open = new Set<SessionRequest>();

  constructor(containment: Containment, countsAll: boolean) {
    this.containment = containment;
    this.countsAll = countsAll;
  }

  counts(method: string | undefined): boolean {
    return this.countsAll || (method !== 'GET' && method !== 'HEAD' && method !== 'OPTIONS');
  }

  add(request: SessionRequest): void {
    if (request.onClose(this)) this.#open.add(request);
  }

  closed(request: SessionRequest): void {
    this.#open.delete(request);
  }

  /** Those that can still change whom their browser is logged in as. */
  unanswered(): readonly SessionRequest[] {
    return [...this.#open].filter((request) => !request.isCommitted);
  }
}
