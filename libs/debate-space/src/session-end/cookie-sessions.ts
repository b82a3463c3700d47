import type { IncomingHttpHeaders, IncomingMessage, ServerResponse } from 'node:http';
import { LRUCache } from 'lru-cache';
import onHeaders from 'on-headers';
import type { CookieRequest, SessionCookie } from '../debate-space.options.js';
import { inTime } from '../in-time.js';
import { cookiesAfter, cookiesSent, type Cookies } from './browser-cookies.js';
import { cookieValue } from './cookie-value.js';
import { resolvedUid } from './default-session-uid.js';
import type { EndRecorder } from './end-recorder.js';
import { OpenWork } from './open-work.js';

/** A Node server: what both platforms listen with. */
export interface RequestSource {
  prependListener(event: 'request', listener: RequestListener): unknown;
  off(event: 'request', listener: RequestListener): unknown;
}

type RequestListener = (request: IncomingMessage, response: ServerResponse) => void;

export interface CookieSessionsOptions {
  readonly cookies: readonly SessionCookie[];
  readonly recorder: EndRecorder;
  readonly fault: (where: string, error: unknown) => void;
}

interface Exchange {
  readonly headers: IncomingHttpHeaders;
  readonly sent: Cookies;
  readonly after: Cookies;
}

const ASK_TIMEOUT_MS = 5_000;
const MOST_REMEMBERED = 10_000;

/**
 * Sessions that live in a cookie (session-endings.md, rule 6): the `Set-Cookie` that leaves decides. Compared are the
 * users that the browser is before and after it, on every route of the server.
 */
export class CookieSessions {
  readonly #options: CookieSessionsOptions;
  readonly #open = new OpenWork();
  /** When the end of a cookie's value was last told: two clicks at once are one logout. */
  readonly #told = new LRUCache<string, number>({ max: MOST_REMEMBERED });

  constructor(options: CookieSessionsOptions) {
    this.#options = options;
  }

  /** @returns how to stop */
  attach(server: RequestSource): () => void {
    const { cookies } = this.#options;
    const listener: RequestListener = (request, response) => {
      const { cookie: header } = request.headers;
      if (header === undefined || !cookies.some(({ name }) => header.includes(name))) return;
      const since = performance.now();
      // Heard last of all, by whoever is first: after the host's own additions to the head.
      onHeaders(response, () => {
        this.#leaving(request, response, since);
      });
    };
    server.prependListener('request', listener);
    return () => {
      server.off('request', listener);
    };
  }

  /** Resolves when every end so far is noted. */
  async decided(): Promise<void> {
    await this.#open.done();
  }

  #leaving(request: IncomingMessage, response: ServerResponse, since: number): void {
    if (response.closed) return; // whoever has gone away gets no cookie
    const setCookies = [response.getHeader('set-cookie') ?? []].flat().map(String);
    if (setCookies.length === 0) return;
    const sent = cookiesSent(request.headers.cookie);
    const after = cookiesAfter(sent, setCookies);
    for (const cookie of this.#options.cookies) {
      const value = cookieValue(sent, cookie.name);
      if (value === undefined || value === cookieValue(after, cookie.name)) continue;
      this.#open.add(this.#judge(cookie, { headers: request.headers, sent, after }, response, since));
    }
  }

  async #judge(
    cookie: SessionCookie,
    { headers, sent, after }: Exchange,
    response: object,
    since: number,
  ): Promise<void> {
    const uid = await this.#userOf(cookie, { headers, cookies: sent });
    if (uid === undefined) return;
    const next = await this.#userOf(cookie, { headers, cookies: after });
    if (uid === next) return;
    const told = JSON.stringify([cookie.name, cookieValue(sent, cookie.name)]);
    if ((this.#told.get(told) ?? -Infinity) >= since) return;
    this.#told.set(told, performance.now());
    const reason = cookieValue(after, cookie.name) === undefined ? 'destroyed' : 'user-removed';
    const held = await this.#options.recorder.hold(uid, next === undefined ? reason : 'user-replaced');
    await held?.release([response]);
  }

  /** A cookie that the host's function refuses – forged, damaged, run out – is nobody's. */
  async #userOf({ name, uid }: SessionCookie, request: CookieRequest): Promise<string | undefined> {
    const value = cookieValue(request.cookies, name);
    if (value === undefined) return undefined;
    try {
      return resolvedUid(await inTime(Promise.resolve(uid(value, request)), ASK_TIMEOUT_MS, undefined));
    } catch (error) {
      this.#options.fault('session.cookies', error);
      return undefined;
    }
  }
}
