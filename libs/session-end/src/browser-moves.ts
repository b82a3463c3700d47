import { LRUCache } from 'lru-cache';
import { NOT_CHANGED, sessionLeftByOne } from './browser-cookies.js';
import { SessionRequest } from './session-request.js';

/** A session that a browser has, or no session; and whose it is, if that is known. */
export interface BrowserSession {
  readonly sid: string | undefined;
  readonly uid: string | undefined;
}

interface Move extends BrowserSession {
  /** When the answer left that has made the browser go on with it, as requests count. */
  readonly answer: number;
  /** When that was heard of, as requests count. */
  readonly heardAt: number;
}

const MAX_REMEMBERED = 10_000;
/** Longer than a request that was sent with the former id is under way. */
const REMEMBER_MS = 60_000;

/**
 * Which session a browser went on with after it had sent a session id. Requests that a browser sends at the same time carry
 * the same id, and one may be answered after another one has renewed the session.
 */
export class BrowserMoves {
  readonly #moves = new LRUCache<string, Move>({ max: MAX_REMEMBERED, ttl: REMEMBER_MS });

  /** The session that a browser that sent this id has now; `undefined` while no answer has changed it. */
  after(sid: string): BrowserSession | undefined {
    return this.#moves.size === 0 ? undefined : this.#moves.get(sid);
  }

  /** Whether the browser has gone on from this session while the request was under way, which does not bring it back. */
  isBehind(sid: string, request: SessionRequest | undefined): boolean {
    return request !== undefined && request.since <= (this.#moves.get(sid)?.heardAt ?? 0);
  }

  /**
   * The answer to a request that carried this id has left.
   * @param uid whose session that is
   * @param uidOf the user of another session, as far as requests under way know
   * @returns the session that the browser has left by it, if it has left one
   */
  answered(
    { sid, uid }: BrowserSession & { readonly sid: string },
    request: SessionRequest,
    uidOf: (sid: string) => string | undefined,
  ): BrowserSession | undefined {
    const left = sessionLeftByOne(request, sid);
    if (left === NOT_CHANGED) return undefined;
    const own = { sid: left, uid: left === undefined ? undefined : uidOf(left) };
    const move = this.#moves.get(sid);
    if (left === (move ?? { sid }).sid) return undefined;
    // Closed after an answer that had left later: the browser had gone on already.
    if (move && move.answer > request.answeredAt) return left === sid ? undefined : own;
    if (left === sid) this.#moves.delete(sid);
    else this.#moves.set(sid, { ...own, answer: request.answeredAt, heardAt: SessionRequest.moment() });
    return move ?? { sid, uid };
  }
}
