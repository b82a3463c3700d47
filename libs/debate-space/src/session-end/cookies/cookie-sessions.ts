import { createHash } from 'node:crypto';
import type { IncomingMessage, ServerResponse } from 'node:http';
import { stringifyCookie } from 'cookie';
import { LRUCache } from 'lru-cache';
import type { CookieRequest, SessionCookie } from '../session-options.js';
import { withTimeout } from '../../async/with-timeout.js';
import { cookiesAfter, cookiesSent, cookieValue } from '../verdict/browser-cookies.js';
import { resolvedUid } from '../default-session-uid.js';
import type { DetectorContext } from '../verdict/detector-context.js';
import { isClosed, pathOf } from '../verdict/session-request.js';
import { onHead } from './response-head.js';

const ASK_TIMEOUT_MS = 5_000;
const MAX_REMEMBERED = 10_000;

/** What a response makes of the cookies of a browser. Times are of `performance.now()`. */
interface CookieChange {
  readonly now: CookieRequest;
  readonly next: CookieRequest;
  readonly response: ServerResponse;
  /** When the request came. */
  readonly since: number;
  /** When the cookies left. */
  readonly at: number;
}

/**
 * Sessions that live in a cookie (session-endings.md, rule 6): the `Set-Cookie` that leaves decides. Compared are the
 * users that the browser is before and after it, on every route of the server.
 */
export class CookieSessions {
  readonly names: readonly string[];
  readonly #cookies: readonly SessionCookie[];
  readonly #context: DetectorContext;
  /** When the end of a cookie's value was last reported: two clicks at the same time are one logout. */
  readonly #reportedAt = new LRUCache<string, number>({ max: MAX_REMEMBERED });

  constructor(cookies: readonly SessionCookie[], context: DetectorContext) {
    this.names = cookies.map(({ name }) => name);
    this.#cookies = cookies;
    this.#context = context;
  }

  /** To be called for each request of the host, before anybody writes its response. */
  watch(request: IncomingMessage, response: ServerResponse): void {
    const { headers } = request;
    const { recorder, containment, tasks } = this.#context;
    const { cookie: cookieHeader = '' } = headers;
    if (!recorder.wantsLogins && !this.names.some((name) => cookieHeader.includes(name))) return;
    const since = performance.now();
    onHead(response, containment, (changes) => {
      // A client that has gone gets no cookie.
      if (isClosed(response) || (changes.setCookies.length === 0 && !changes.clearsCookies)) return;
      const sent = cookiesSent(cookieHeader);
      const after = cookiesAfter(sent, changes, pathOf(request));
      const isChanged = ({ name }: SessionCookie): boolean =>
        cookieValue(sent, name) !== cookieValue(after, name);
      const changed = this.#cookies.filter(isChanged);
      if (changed.length === 0) return;
      const now = { headers, cookies: sent };
      const next = { headers: { ...headers, cookie: stringifyCookie(after) }, cookies: after };
      // Who the users are may be known late: after the next login or logout.
      const change = { now, next, response, since, at: performance.now() };
      for (const cookie of changed) void tasks.track(this.#decide(cookie, change));
    });
  }

  /** Decides whether a response ends the session of one cookie. */
  async #decide(cookie: SessionCookie, change: CookieChange): Promise<void> {
    const { recorder } = this.#context;
    const { now, next, response, since, at } = change;
    const [value, nextValue] = [now, next].map(({ cookies }) => cookieValue(cookies, cookie.name));
    if (value === undefined && !recorder.wantsLogins) return;
    await Promise.resolve(); // not within the host's `writeHead`: the function that finds the user is the host's
    const uid = await this.#userOf(cookie, now);
    if (uid === undefined && !recorder.wantsLogins) return;
    const nextUid = await this.#userOf(cookie, next);
    if (uid === nextUid) return;
    // A cookie that was nobody's any more is renewed, most likely.
    if (nextUid !== undefined && (uid !== undefined || value === undefined)) recorder.loggedIn(nextUid, at);
    if (uid === undefined) return;
    const key = createHash('sha256')
      .update(`${cookie.name}=${value ?? ''}`)
      .digest('base64url');
    if ((this.#reportedAt.get(key) ?? -Infinity) >= since) return;
    this.#reportedAt.set(key, performance.now());
    const reason =
      nextUid !== undefined ? 'user-replaced' : nextValue === undefined ? 'destroyed' : 'user-removed';
    await recorder.record({ uid, reason, at }, [response]);
  }

  /** A cookie that the host's function refuses – forged, damaged, expired – is nobody's. */
  async #userOf({ name, uid }: SessionCookie, request: CookieRequest): Promise<string | undefined> {
    const value = cookieValue(request.cookies, name);
    if (value === undefined) return undefined;
    const ask = async (): Promise<string | undefined> =>
      resolvedUid(await withTimeout(Promise.resolve(uid(value, request)), ASK_TIMEOUT_MS, undefined));
    return this.#context.containment.run<Promise<string | undefined>>('session.cookies', ask, undefined);
  }
}
