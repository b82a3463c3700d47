import type { SessionRecord } from './session-end.js';
import { cookiesAfter, cookiesSent, isOfAnother } from './browser-cookies.js';
import { pathOf, type SessionRequest } from './session-request.js';

/** How the value of a cookie becomes a session id: signed by express-session, signed by @fastify/session, not signed. */
const FRAMES = [
  (value: string) => (value.startsWith('s:') ? value.slice(2, value.lastIndexOf('.')) : undefined),
  (value: string) => (value.includes('.') ? value.slice(0, value.lastIndexOf('.')) : undefined),
  (value: string) => value,
] as const;

interface LearnedCookie {
  readonly name: string;
  readonly idIn: (value: string) => string | undefined;
  /** The path and the domain of the session's cookie. */
  readonly attributes: unknown;
}

/** A browser has left a session for another one, or for none. */
export interface LeftSession {
  readonly sid: string;
  readonly next: string | undefined;
}

/** One request in so many is looked at once a cookie is known: a host may have another. */
const LOOK_AGAIN = 1_000;
const MAX_COOKIES = 8;

/**
 * The names of the cookies that carry session ids, and how: learned from requests that have loaded their session. Then a
 * response that clears such a cookie is understood although its request has not loaded the session.
 */
export class LearnedCookies {
  readonly #cookies: LearnedCookie[] = [];
  #untilLook = 0;
  #misses = 0;

  /** A request has loaded a session. */
  learn(sid: string, session: SessionRecord, request: SessionRequest): void {
    if (this.#untilLook > 0) {
      this.#untilLook -= 1;
      return;
    }
    const { cookieHeader } = request;
    if (cookieHeader === undefined) return; // a login
    const sent = Object.entries(cookiesSent(cookieHeader));
    for (const idIn of FRAMES) {
      const name = sent.find(([, value]) => value !== undefined && idIn(value) === sid)?.[0];
      if (name === undefined) continue;
      this.#untilLook = LOOK_AGAIN;
      if (this.#cookies.length < MAX_COOKIES && !this.#cookies.some((known) => known.name === name))
        this.#cookies.push({ name, idIn, attributes: attributesOf(session) });
      return;
    }
    // The session may be new. A host whose cookies show no id is looked at less and less.
    this.#misses += 1;
    this.#untilLook = Math.min(LOOK_AGAIN, this.#misses);
  }

  /** The id that the browser has sent, of a request that may not have loaded that session: it may have ended before. */
  sentBy({ cookieHeader }: SessionRequest): string | undefined {
    if (cookieHeader === undefined || !this.mayBeIn(cookieHeader)) return undefined;
    const sent = cookiesSent(cookieHeader);
    for (const { name, idIn } of this.#cookies) {
      const value = sent[name];
      const sid = value === undefined ? undefined : idIn(value);
      if (sid !== undefined) return sid;
    }
    return undefined;
  }

  /** Whether a browser with these cookies may have a session. */
  mayBeIn(cookieHeader: string): boolean {
    for (const { name } of this.#cookies) if (cookieHeader.includes(name)) return true;
    return false;
  }

  /** The sessions that the browser of a request has left by the response. */
  leftBy(request: SessionRequest): readonly LeftSession[] {
    const { cookieHeader = '', setCookies, clearsCookies } = request;
    if (!this.mayBeIn(cookieHeader)) return [];
    const sent = cookiesSent(cookieHeader);
    return this.#cookies.flatMap(({ name, idIn, attributes }) => {
      const own = setCookies.filter((header) => !isOfAnother(header, attributes, request));
      const after = cookiesAfter(sent, { setCookies: own, clearsCookies }, pathOf(request.native));
      const [sid, next] = [sent[name], after[name]].map((value) => (value ? idIn(value) : undefined));
      return sid === undefined || sid === next ? [] : [{ sid, next }];
    });
  }
}

/** Without the session's cookie itself, which would keep more. */
function attributesOf({ cookie }: SessionRecord): unknown {
  const { path, domain } = Object(cookie) as { readonly path?: unknown; readonly domain?: unknown };
  return { path, domain };
}
