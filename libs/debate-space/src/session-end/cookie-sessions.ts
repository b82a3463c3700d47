import { createHash } from 'node:crypto';
import type { IncomingHttpHeaders, IncomingMessage, ServerResponse } from 'node:http';
import { stringifyCookie } from 'cookie';
import { LRUCache } from 'lru-cache';
import type { SessionCookie } from '../debate-space.options.js';
import { withTimeout } from '../with-timeout.js';
import { cookiesAfter, cookiesSent, cookieValue, type Cookies } from './browser-cookies.js';
import { resolvedUid } from './default-session-uid.js';
import type { DetectorContext } from './detector-context.js';
import { onHead } from './response-head.js';
import { isClosed, pathOf } from './session-request.js';

const ASK_TIMEOUT_MS = 5_000;
const MAX_REMEMBERED = 10_000;

/** One cookie of the host, before and after a response. */
interface Exchange {
  readonly cookie: SessionCookie;
  readonly headers: IncomingHttpHeaders;
  readonly sent: Cookies;
  readonly after: Cookies;
  readonly response: ServerResponse;
  /** When the request came, by `performance.now()`. */
  readonly since: number;
}

/**
 * Sessions that live in a cookie (session-endings.md, rule 6): the `Set-Cookie` that leaves decides. Compared are the
 * users that the browser is before and after it, on every route of the server.
 */
export class CookieSessions {
  readonly #cookies: readonly SessionCookie[];
  readonly #context: Pick<DetectorContext, 'recorder' | 'containment' | 'tasks'>;
  /** When the end of a cookie's value was last reported: two clicks at the same time are one logout. */
  readonly #reportedAt = new LRUCache<string, number>({ max: MAX_REMEMBERED });

  constructor(
    cookies: readonly SessionCookie[],
    context: Pick<DetectorContext, 'recorder' | 'containment' | 'tasks'>,
  ) {
    this.#cookies = cookies;
    this.#context = context;
  }

  /** To be called for each request of the host, before anybody writes its response. */
  watch(request: IncomingMessage, response: ServerResponse): void {
    const { headers } = request;
    const { cookie: cookieHeader = '' } = headers;
    const { recorder, containment, tasks } = this.#context;
    if (!recorder.wantsLogins && !this.#cookies.some(({ name }) => cookieHeader.includes(name))) return;
    const since = performance.now();
    onHead(response, containment, (setCookies) => {
      // A client that has gone gets no cookie.
      if (setCookies.length === 0 || isClosed(response)) return;
      const sent = cookiesSent(cookieHeader);
      const after = cookiesAfter(sent, setCookies, pathOf(request));
      for (const cookie of this.#cookies) {
        const value = cookieValue(sent, cookie.name);
        if (value === cookieValue(after, cookie.name)) continue;
        if (value === undefined && !recorder.wantsLogins) continue;
        void tasks.track(this.#decide({ cookie, headers, sent, after, response, since }));
      }
    });
  }

  /** Not within the host's `writeHead`: the function that finds the user is the host's. */
  async #decide({ cookie, headers, sent, after, response, since }: Exchange): Promise<void> {
    await Promise.resolve();
    const { recorder } = this.#context;
    const value = cookieValue(sent, cookie.name);
    const uid = await this.#userOf(cookie, headers, sent);
    if (uid === undefined && !recorder.wantsLogins) return;
    const next = await this.#userOf(cookie, { ...headers, cookie: stringifyCookie(after) }, after);
    if (uid === next) return;
    // A cookie that was nobody's any more is renewed, most likely.
    if (next !== undefined && (uid !== undefined || value === undefined)) recorder.loggedIn(next);
    if (uid === undefined) return;
    const key = createHash('sha256')
      .update(`${cookie.name}=${value ?? ''}`)
      .digest('base64url');
    if ((this.#reportedAt.get(key) ?? -Infinity) >= since) return;
    this.#reportedAt.set(key, performance.now());
    const reason = cookieValue(after, cookie.name) === undefined ? 'destroyed' : 'user-removed';
    const held = await recorder.hold(uid, next === undefined ? reason : 'user-replaced');
    await held?.release([response]);
  }

  /** A cookie that the host's function refuses – forged, damaged, expired – is nobody's. */
  async #userOf(
    { name, uid }: SessionCookie,
    headers: IncomingHttpHeaders,
    cookies: Cookies,
  ): Promise<string | undefined> {
    const value = cookieValue(cookies, name);
    if (value === undefined) return undefined;
    const ask = async (): Promise<string | undefined> =>
      resolvedUid(
        await withTimeout(Promise.resolve(uid(value, { headers, cookies })), ASK_TIMEOUT_MS, undefined),
      );
    return this.#context.containment.run<Promise<string | undefined>>('session.cookies', ask, undefined);
  }
}
