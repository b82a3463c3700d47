import type { Containment } from '../containment.js';
import { cookiesAfter, cookiesSent, setsCookieWith } from './browser-cookies.js';
import { pathOf, type SessionRequest } from './session-request.js';

interface Holder {
  readonly request: SessionRequest;
  /** Whose session it was when this request loaded or saved it last. */
  uid: string;
}

interface Live {
  /** Absent when the session has no user any more. */
  uid: string | undefined;
  readonly holders: Holder[];
}

/** The response leaves the browser's session as it is. */
const NOT_CHANGED = Symbol('not changed');

/** A request has left its browser without the session that it had loaded. */
export type Abandoned = (sid: string, uid: string, request: SessionRequest) => void;

/**
 * Whose session it is, for the sessions that requests under way have loaded or saved with a user
 * (session-endings.md, rule 1). Holds nothing beyond the requests: what an idle session holds, the store knows.
 */
export class LiveSessions {
  readonly #containment: Containment;
  readonly #abandoned: Abandoned;
  /**
   * No `Map` and no `Set`: with few entries that come and go all the time, theirs is a new table every few requests
   * (measured on Express: 16 instead of 8 µs a request).
   */
  readonly #sessions = Object.create(null) as Record<string, Live | undefined>;

  constructor(containment: Containment, abandoned: Abandoned) {
    this.#containment = containment;
    this.#abandoned = abandoned;
  }

  uidOf(sid: string): string | undefined {
    return this.#sessions[sid]?.uid;
  }

  /** The user that one of these requests had loaded the session with, though another request has ended it since. */
  uidLoadedBy(sid: string, requests: readonly SessionRequest[]): string | undefined {
    return this.#sessions[sid]?.holders.find(({ request }) => requests.includes(request))?.uid;
  }

  requestsOf(sid: string): readonly SessionRequest[] {
    return this.#sessions[sid]?.holders.map(({ request }) => request) ?? [];
  }

  /** Every session that is known to have a user. */
  all(): readonly (readonly [sid: string, uid: string])[] {
    return Object.entries(this.#sessions).flatMap(([sid, live]) =>
      live?.uid === undefined ? [] : [[sid, live.uid] as const],
    );
  }

  /** The session was loaded or saved with this user, by this request or by no request at all. */
  link(sid: string, uid: string, request: SessionRequest | undefined): void {
    const known = this.#sessions[sid];
    if (known) known.uid = uid;
    const holder = request && known?.holders.find((each) => each.request === request);
    if (holder) holder.uid = uid;
    if (holder || !request) return;
    const live = known ?? { uid, holders: [] };
    const added = { request, uid };
    const isOpen = request.onClose(this.#containment, () => {
      this.#close(sid, live, added);
    });
    if (!isOpen) return;
    this.#sessions[sid] = live;
    live.holders.push(added);
  }

  /** The session has no user any more. The requests that had loaded it are still known. */
  forget(sid: string): void {
    const live = this.#sessions[sid];
    if (live) live.uid = undefined;
  }

  /**
   * The session that requests of one browser leave it with: another than before only by the cookies that have left, and
   * those of the last response count.
   */
  leftWith(requests: readonly SessionRequest[], before: string | undefined): string | undefined {
    let left = before;
    for (const request of requests.toSorted((one, other) => one.closedAt - other.closedAt)) {
      const own = leftBy(request, before);
      if (own !== NOT_CHANGED) left = own;
    }
    return left;
  }

  #close(sid: string, live: Live, holder: Holder): void {
    live.holders.splice(live.holders.indexOf(holder), 1);
    if (this.#sessions[sid] !== live) return;
    const { uid } = live;
    if (live.holders.length === 0) Reflect.deleteProperty(this.#sessions, sid);
    if (uid !== undefined && this.leftWith([holder.request], sid) !== sid)
      this.#abandoned(sid, uid, holder.request);
  }
}

/** The session that the response sets, as far as its cookies have left. */
function leftBy(
  request: SessionRequest,
  before: string | undefined,
): string | undefined | typeof NOT_CHANGED {
  const { sessionID } = request;
  if (before === undefined) return sessionID;
  if (!request.isAnswered) return NOT_CHANGED;
  const { setCookies } = request;
  if (setCookies.length === 0) return NOT_CHANGED;
  // As on every request of rolling sessions.
  if (sessionID === before && setCookies.every((header) => setsCookieWith(before, header))) return before;
  const sent = cookiesSent(request.headers.cookie);
  const after = cookiesAfter(sent, setCookies, pathOf(request.native));
  const has = (sid: string | undefined): boolean =>
    sid !== undefined && Object.values(after).some((value) => value?.includes(sid));
  if (has(sessionID) && sessionID !== before) return sessionID;
  if (has(before)) return setCookies.some((header) => setsCookieWith(before, header)) ? before : NOT_CHANGED;
  const wasSent = Object.values(sent).some((value) => value?.includes(before));
  return wasSent ? undefined : sessionID; // ids that cookies do not show
}
