import type { Containment } from '../../async/containment.js';
import { sessionLeftBy } from './browser-cookies.js';
import type { SessionRequest } from './session-request.js';

interface Holder {
  readonly request: SessionRequest;
  /** Whose session it was when this request loaded or saved it last. */
  uid: string;
}

interface ActiveSession {
  /** Absent when the session has no user any more. */
  uid: string | undefined;
  readonly holders: Holder[];
}

/** A request has left its browser without the session that it had loaded. */
export type OnAbandoned = (sid: string, uid: string, request: SessionRequest) => void;

/**
 * Whose session it is, for the sessions that requests under way have loaded or saved with a user
 * (session-endings.md, rule 1). Holds nothing beyond the requests: what an idle session holds, the store knows.
 */
export class ActiveRequests {
  readonly #containment: Containment;
  readonly #onAbandoned: OnAbandoned;
  /**
   * No `Map` and no `Set`: with few entries that come and go all the time, theirs is a new table every few requests
   * (measured on Express: 16 instead of 8 µs a request).
   */
  readonly #sessions = Object.create(null) as Record<string, ActiveSession | undefined>;

  constructor(containment: Containment, onAbandoned: OnAbandoned) {
    this.#containment = containment;
    this.#onAbandoned = onAbandoned;
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
    return Object.entries(this.#sessions).flatMap(([sid, session]) =>
      session?.uid === undefined ? [] : [[sid, session.uid] as const],
    );
  }

  /** The session was loaded or saved with this user, by this request or by no request at all. */
  link(sid: string, uid: string, request: SessionRequest | undefined): void {
    const known = this.#sessions[sid];
    if (known) known.uid = uid;
    if (!request) return;
    const holder = known?.holders.find((each) => each.request === request);
    if (holder) {
      holder.uid = uid;
      return;
    }
    const session = known ?? { uid, holders: [] };
    const added = { request, uid };
    const isOpen = request.onClose(this.#containment, () => {
      this.#close(sid, session, added);
    });
    if (!isOpen) return;
    this.#sessions[sid] = session;
    session.holders.push(added);
  }

  /** The session has no user any more. The requests that had loaded it are still known. */
  forget(sid: string): void {
    const session = this.#sessions[sid];
    if (session) session.uid = undefined;
  }

  #close(sid: string, session: ActiveSession, holder: Holder): void {
    session.holders.splice(session.holders.indexOf(holder), 1);
    if (this.#sessions[sid] !== session) return;
    if (session.holders.length === 0) Reflect.deleteProperty(this.#sessions, sid);
    const { uid } = session;
    if (uid !== undefined && sessionLeftBy([holder.request], sid) !== sid)
      this.#onAbandoned(sid, uid, holder.request);
  }
}
