import type { SessionEndReason } from '../events.js';
import type { IncomingMessage, ServerResponse } from 'node:http';
import { parseSetCookie } from 'cookie';
import { LRUCache } from 'lru-cache';
import type { CookieRequest, SessionCookie } from './session-end.js';
import { withTimeout } from '../async/with-timeout.js';

import {
  cookiesAfter,
  cookiesSent,
  cookieValue,
  proofOf,
  REMEMBERED,
  scopeIn,
  type Cookies,
  type CookieScope,
  type CookieTarget,
} from './browser-cookies.js';
import { resolvedUid } from './session-user.js';
import { RefusedUid } from '../uid-rule.js';
import { UidCount } from './setup-warnings.js';
import type { WatchContext } from './context.js';
import { isClosed, pathOf } from './request-scope.js';
import { cookieChangesOf, type CookieChanges } from './browser-cookies.js';
import type { Containment } from '../async/containment.js';

/** The user of a cookie before an answer has changed it, and afterwards. */
interface CookieChange {
  readonly uid: string | undefined;
  readonly next: string | undefined;
  readonly reason: SessionEndReason;
}

interface RememberedUser {
  readonly uid: string;
  /** The cookies of the answer that set this one: a signature may be in a cookie of its own. */
  readonly names: readonly string[];
  readonly proof: string;
}

const REFUSED_UID_HINT = 'make the function uid of this cookie return the uid of its user';
const UID_TIMEOUT_MS = 5_000;

/**
 * Sessions that live in a cookie (session-endings.md, rule 6). The `Set-Cookie` that leaves decides: the user of the cookie
 * before the answer is compared with the user after it, on every route of the server.
 */
export class CookieSessions {
  readonly names: readonly string[];
  readonly #cookies: readonly SessionCookie[];
  readonly #context: WatchContext;
  readonly #uids: ReadonlyMap<string, UidCount>;
  /** The path and domain with which this app sets a cookie, by name. */
  readonly #scopes = new Map<string, CookieScope>();
  /**
   * The users of the cookies that this app has set, by the hash of the value. A handler may delete the row that names the
   * user before it clears the cookie, and a token may have expired.
   */
  readonly #users = new LRUCache<string, RememberedUser>(REMEMBERED);

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

  /** Must be called for each request of the host before anything writes its response. */
  watch(request: IncomingMessage, response: ServerResponse): void {
    const { headers } = request;
    onHead(response, this.#context.containment, (changes) => {
      // A client that has gone gets no cookie.
      if (isClosed(response) || (changes.setCookies.length === 0 && !changes.clearsCookies)) return;
      const target = { path: pathOf(request), host: headers.host };
      const before = { headers, cookies: cookiesSent(headers.cookie) };
      const cookies = cookiesAfter(before.cookies, changes, target, (name) => this.#scopes.get(name));
      const after = { headers: { ...headers, cookie: headerOf(cookies) }, cookies };
      this.#learnScopes(changes, cookies, target);
      const names = changes.setCookies.map((header) => parseSetCookie(header).name);
      void this.#context.tasks.track(this.#decide(before, after, names, response));
    });
  }

  #learnScopes({ setCookies }: CookieChanges, after: Cookies, target: CookieTarget): void {
    for (const header of setCookies) {
      const cookie = parseSetCookie(header);
      const isListed = this.names.some((name) => cookie.name === name || cookie.name.startsWith(`${name}.`));
      if (isListed && after[cookie.name] === cookie.value)
        this.#scopes.set(cookie.name, scopeIn(cookie, target));
    }
  }

  /** Decides which users a response has logged out. Never rejects. */
  async #decide(
    before: CookieRequest,
    after: CookieRequest,
    set: readonly string[],
    response: ServerResponse,
  ): Promise<void> {
    const at = Date.now();
    const isChanged = ({ name }: SessionCookie): boolean =>
      cookieValue(before.cookies, name) !== cookieValue(after.cookies, name);
    const changed = this.#cookies.filter(isChanged);
    if (changed.length === 0) return;
    await Promise.resolve(); // leaves the host's `writeHead`, because the host's function finds the user
    const changes = await Promise.all(changed.map((cookie) => this.#changeOf(cookie, before, after, set)));
    const ends = changes.filter(({ uid, next }) => uid !== undefined && uid !== next);
    if (ends.length === 0) return;
    const others = this.#cookies.filter((cookie) => !isChanged(cookie));
    const users = await Promise.all(others.map((cookie) => this.#userOf(cookie, after)));
    const continued = new Set([...users, ...changes.map(({ next }) => next)]);
    for (const { uid, reason } of ends)
      if (uid !== undefined && !continued.has(uid))
        await this.#context.reporter.report({ uid, reason, at }, [response]);
  }

  async #changeOf(
    cookie: SessionCookie,
    before: CookieRequest,
    after: CookieRequest,
    set: readonly string[],
  ): Promise<CookieChange> {
    const [hash, nextHash] = [hashOf(cookie, before), hashOf(cookie, after)];
    const remembered = hash === undefined ? undefined : this.#users.get(hash);
    const isProven = remembered?.proof === proofOf(remembered?.names ?? [], before.cookies);
    const uid = (await this.#userOf(cookie, before)) ?? (isProven ? remembered.uid : undefined);
    const next = await this.#userOf(cookie, after);
    if (hash !== undefined && (isProven || uid !== undefined)) this.#users.delete(hash);
    if (nextHash !== undefined && next !== undefined)
      this.#users.set(nextHash, { uid: next, names: set, proof: proofOf(set, after.cookies) });
    const isGone = nextHash === undefined;
    const reason = next !== undefined ? 'user-replaced' : isGone ? 'destroyed' : 'user-removed';
    return { uid, next, reason };
  }

  /** A cookie that the host's function refuses – forged, damaged, expired – is nobody's, and so is a refused uid. */
  async #userOf(cookie: SessionCookie, request: CookieRequest): Promise<string | undefined> {
    const { name, uid } = cookie;
    const value = cookieValue(request.cookies, name);
    if (value === undefined) return undefined;
    const { containment, warnings } = this.#context;
    const find = async (): Promise<string | undefined> => {
      const answer = await withTimeout(Promise.resolve(uid(value, request)), UID_TIMEOUT_MS, undefined);
      const found = resolvedUid(answer);
      if (!(found instanceof RefusedUid)) return found;
      warnings.warnOfRefusedUid(found.problem, { [name]: value }, REFUSED_UID_HINT);
      return undefined;
    };
    const user = await containment.run<Promise<string | undefined>>('session.cookies', find, undefined);
    const count = this.#uids.get(name);
    if (user !== undefined) count?.found();
    else count?.notFound(proofOf([name], request.cookies), { value });
    return user;
  }
}

/** The value is a secret: only its hash is kept. */
function hashOf({ name }: SessionCookie, { cookies }: CookieRequest): string | undefined {
  const value = cookieValue(cookies, name);
  return value === undefined ? undefined : proofOf([name], { [name]: value });
}

/** Browsers send names that no library writes: nothing is checked here. */
function headerOf(cookies: Cookies): string {
  const pairs = Object.entries(cookies).map(([name, value = '']) => `${name}=${encodeURIComponent(value)}`);
  return pairs.join('; ');
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
