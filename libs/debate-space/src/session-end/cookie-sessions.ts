import { createHash } from 'node:crypto';
import type { IncomingMessage, ServerResponse } from 'node:http';
import { stringifyCookie } from 'cookie';
import { LRUCache } from 'lru-cache';
import type { CookieRequest, SessionCookie } from './session-end.js';
import { withTimeout } from './waits.js';
import { cookiesAfter, cookiesSent, cookieValue, REMEMBERED } from './browser-cookies.js';
import { resolvedUid } from './session-user.js';
import { RefusedUid } from '../uid-rule.js';
import { UidCount } from './setup-warnings.js';
import type { WatchContext } from './context.js';
import { isClosed, pathOf } from './request-scope.js';
import { cookieChangesOf, type CookieChanges } from './cookie-changes.js';
import type { Containment } from './containment.js';

const REFUSED_UID_HINT = 'make the function uid of this cookie return the uid of its user';
const ASK_TIMEOUT_MS = 5_000;
/** How long after a logout a request with the same cookie is the second click of a double click. */
const DOUBLE_CLICK_MS = 60_000;

/** What a response makes of the cookies of a browser. Times are in milliseconds since 1970. */
interface CookieChange {
  readonly now: CookieRequest;
  readonly next: CookieRequest;
  readonly setCookies: readonly string[];
  readonly response: ServerResponse;
  /** When the request came. */
  readonly since: number;
  /** When the cookies left. */
  readonly at: number;
}

/** A response has taken its value from a session cookie. */
interface Departure {
  readonly at: number;
  readonly userAgent: string | undefined;
  /** Whose session has ended by that, if one has. Never rejects. */
  readonly ended: Promise<string | undefined>;
}

/**
 * Sessions that live in a cookie (session-endings.md, rule 6): the `Set-Cookie` that leaves decides. Compared are the
 * users that the browser is before and after it, on every route of the server.
 */
export class CookieSessions {
  readonly names: readonly string[];
  readonly #cookies: readonly SessionCookie[];
  readonly #context: WatchContext;
  readonly #uids: ReadonlyMap<string, UidCount>;
  /**
   * By the hash of the cookie's value, for a minute: two clicks are one logout. Until the value is used again: a user who
   * logs in again may get the same one, and so may another device.
   */
  readonly #departures = new LRUCache<string, Departure>(REMEMBERED);

  constructor(cookies: readonly SessionCookie[], context: WatchContext) {
    this.names = cookies.map(({ name }) => name);
    this.#cookies = cookies;
    this.#context = context;
    const counts = (name: string): UidCount =>
      new UidCount(() => {
        context.warnings.warn('cookie-without-uid', name);
      });
    this.#uids = new Map(this.names.map((name) => [name, counts(name)]));
  }

  /** To be called for each request of the host, before anybody writes its response. */
  watch(request: IncomingMessage, response: ServerResponse): void {
    const { headers } = request;
    const { containment } = this.#context;
    const { cookie: cookieHeader = '' } = headers;
    if (this.#departures.size === 0 && !this.names.some((name) => cookieHeader.includes(name))) return;
    const since = Date.now();
    onHead(response, containment, (changes) => {
      // A client that has gone gets no cookie.
      if (isClosed(response)) return;
      const isUnchanged = changes.setCookies.length === 0 && !changes.clearsCookies;
      if (isUnchanged && this.#departures.size === 0) return;
      const sent = cookiesSent(cookieHeader);
      const after = isUnchanged ? sent : cookiesAfter(sent, changes, pathOf(request));
      const now = { headers, cookies: sent };
      const next = isUnchanged
        ? now
        : { headers: { ...headers, cookie: stringifyCookie(after) }, cookies: after };
      const change = { now, next, response, since, at: Date.now(), setCookies: changes.setCookies };
      for (const cookie of this.#cookies) this.#headLeft(cookie, change);
    });
  }

  /** Notes logins and logouts in the order of their heads: who the users are may be known late. */
  #headLeft(cookie: SessionCookie, change: CookieChange): void {
    const [value, nextValue] = [change.now, change.next].map(({ cookies }) =>
      cookieValue(cookies, cookie.name),
    );
    if (this.#departures.size > 0)
      this.#forgetReturned(cookie, change, value === nextValue ? value : undefined);
    if (value === nextValue) return;
    const key = value === undefined ? undefined : keyOf(cookie, value);
    const userAgent = change.now.headers['user-agent'];
    const earlier = key === undefined ? undefined : this.#departures.get(key);
    const ended = this.#context.tasks.track(
      this.#decide(cookie, change, earlier?.userAgent === userAgent ? earlier?.ended : undefined),
    );
    if (key === undefined) return;
    const departure = { at: change.at, userAgent, ended };
    this.#departures.set(key, departure);
    const forget = (): void => {
      if (this.#departures.get(key) === departure) this.#departures.delete(key);
    };
    ended.then((uid) => {
      if (uid === undefined) forget();
      else setTimeout(forget, DOUBLE_CLICK_MS).unref();
    }, forget);
  }

  /** What leaves with a value that has come back is another logout. @param kept the value that the response leaves */
  #forgetReturned(
    cookie: SessionCookie,
    { setCookies, since }: CookieChange,
    kept: string | undefined,
  ): void {
    const set = cookieValue(cookiesAfter({}, { setCookies, clearsCookies: false }, undefined), cookie.name);
    if (set !== undefined) this.#departures.delete(keyOf(cookie, set));
    if (kept === undefined) return;
    // A browser still uses it: not the one that left.
    const key = keyOf(cookie, kept);
    if ((this.#departures.get(key)?.at ?? Infinity) <= since) this.#departures.delete(key);
  }

  /**
   * Decides whether a response ends the session of one cookie.
   * @param endedBefore whose session an earlier click has ended
   * @returns whose session has ended, now or by the earlier click
   */
  async #decide(
    cookie: SessionCookie,
    { now, next, response, at }: CookieChange,
    endedBefore: Promise<string | undefined> | undefined,
  ): Promise<string | undefined> {
    const { reporter } = this.#context;
    const [value, nextValue] = [now, next].map(({ cookies }) => cookieValue(cookies, cookie.name));
    if (value === undefined) return undefined;
    await Promise.resolve(); // not within the host's `writeHead`: the function that finds the user is the host's
    const uid = await this.#userOf(cookie, now);
    if (uid === undefined) return undefined;
    const nextUid = await this.#userOf(cookie, next);
    if (uid === nextUid) return undefined;
    if ((await endedBefore) === uid) return uid;
    const reason =
      nextUid !== undefined ? 'user-replaced' : nextValue === undefined ? 'destroyed' : 'user-removed';
    await reporter.report({ uid, reason, at }, [response]);
    return uid;
  }

  /** A cookie that the host's function refuses – forged, damaged, expired – is nobody's; so is a uid that is refused. */
  async #userOf(cookie: SessionCookie, request: CookieRequest): Promise<string | undefined> {
    const { name, uid } = cookie;
    const value = cookieValue(request.cookies, name);
    if (value === undefined) return undefined;
    const { containment, warnings } = this.#context;
    const ask = async (): Promise<string | undefined> => {
      const answer = await withTimeout(Promise.resolve(uid(value, request)), ASK_TIMEOUT_MS, undefined);
      const found = resolvedUid(answer);
      if (!(found instanceof RefusedUid)) return found;
      warnings.warnOfRefusedUid(found.problem, { [name]: value }, REFUSED_UID_HINT);
      return undefined;
    };
    const user = await containment.run<Promise<string | undefined>>('session.cookies', ask, undefined);
    const count = this.#uids.get(name);
    if (user === undefined) count?.notFound(keyOf(cookie, value), { value });
    else count?.found();
    return user;
  }
}

/** Values are secrets: only their hashes are kept. */
function keyOf({ name }: SessionCookie, value: string): string {
  return createHash('sha256').update(`${name}=${value}`).digest('base64url');
}

/**
 * Reports how the head of a response changes cookies, once it is written. Headers that are given to `writeHead` itself
 * stay as they are: turning them into `setHeader` calls loses some forms of them (measured with on-headers 1.1).
 */
export function onHead(
  response: ServerResponse,
  containment: Containment,
  listener: (changes: CookieChanges) => void,
): void {
  const original = Reflect.get(response, 'writeHead') as (...args: unknown[]) => ServerResponse;
  response.writeHead = function writeHead(this: ServerResponse, ...args: unknown[]): ServerResponse {
    const returned = Reflect.apply(original, this, args);
    containment.run('response.writeHead', () => {
      listener(cookieChangesOf(this));
    });
    return returned;
  };
}
