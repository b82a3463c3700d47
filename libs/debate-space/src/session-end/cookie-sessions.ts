import { createHash } from 'node:crypto';
import type { IncomingHttpHeaders, IncomingMessage, ServerResponse } from 'node:http';
import { stringifyCookie } from 'cookie';
import { LRUCache } from 'lru-cache';
import type { Containment } from '../containment.js';
import type { CookieRequest, SessionCookie } from '../debate-space.options.js';
import { withTimeout } from '../with-timeout.js';
import { cookiesAfter, cookiesSent, type Cookies } from './browser-cookies.js';
import { cookieValue } from './cookie-value.js';
import { resolvedUid } from './default-session-uid.js';
import type { EndRecorder } from './end-recorder.js';
import { OpenWork } from './open-work.js';
import { onHead } from './response-head.js';
import { isClosed, pathOf } from './session-request.js';

export interface CookieSessionsOptions {
  readonly cookies: readonly SessionCookie[];
  readonly recorder: EndRecorder;
  readonly containment: Containment;
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

  /** To be told of each request of the host, before anybody writes an answer. */
  watch(request: IncomingMessage, response: ServerResponse): void {
    const { cookie = '' } = request.headers;
    const { cookies, recorder, containment } = this.#options;
    if (!recorder.wantsLogins && !cookies.some(({ name }) => cookie.includes(name))) return;
    const since = performance.now();
    onHead(response, containment, (setCookies) => {
      if (setCookies.length > 0) this.#leaving(request, response, setCookies, since);
    });
  }

  /** Resolves when every end so far is noted. */
  async decided(): Promise<void> {
    await this.#open.done();
  }

  #leaving(
    request: IncomingMessage,
    response: ServerResponse,
    setCookies: readonly string[],
    since: number,
  ): void {
    if (isClosed(response)) return; // whoever has gone away gets no cookie
    const sent = cookiesSent(request.headers.cookie);
    const after = cookiesAfter(sent, setCookies, pathOf(request));
    for (const cookie of this.#options.cookies) {
      const value = cookieValue(sent, cookie.name);
      if (value === cookieValue(after, cookie.name)) continue;
      if (value === undefined && !this.#options.recorder.wantsLogins) continue;
      this.#open.add(this.#judge(cookie, { headers: request.headers, sent, after }, response, since));
    }
  }

  /** Not within the host's `writeHead`: the function that finds the user is the host's. */
  async #judge(
    cookie: SessionCookie,
    { headers, sent, after }: Exchange,
    response: object,
    since: number,
  ): Promise<void> {
    await Promise.resolve();
    const { recorder } = this.#options;
    const uid = await this.#userOf(cookie, { headers, cookies: sent });
    if (uid === undefined && !recorder.wantsLogins) return;
    const next = await this.#userOf(cookie, {
      headers: { ...headers, cookie: stringifyCookie(after) },
      cookies: after,
    });
    if (uid === next) return;
    // A cookie that was nobody's any more is renewed, most likely.
    const hadOne = cookieValue(sent, cookie.name) !== undefined;
    if (next !== undefined && (uid !== undefined || !hadOne)) recorder.loggedIn(next);
    if (uid === undefined) return;
    const told = createHash('sha256')
      .update(`${cookie.name}=${cookieValue(sent, cookie.name) ?? ''}`)
      .digest('base64url');
    if ((this.#told.get(told) ?? -Infinity) >= since) return;
    this.#told.set(told, performance.now());
    const reason = cookieValue(after, cookie.name) === undefined ? 'destroyed' : 'user-removed';
    const held = await recorder.hold(uid, next === undefined ? reason : 'user-replaced');
    await held?.release([response]);
  }

  /** A cookie that the host's function refuses – forged, damaged, run out – is nobody's. */
  async #userOf({ name, uid }: SessionCookie, request: CookieRequest): Promise<string | undefined> {
    const value = cookieValue(request.cookies, name);
    if (value === undefined) return undefined;
    const answer = async (): Promise<string | undefined> =>
      resolvedUid(await withTimeout(Promise.resolve(uid(value, request)), ASK_TIMEOUT_MS, undefined));
    return this.#options.containment.run<Promise<string | undefined>>('session.cookies', answer, undefined);
  }
}
