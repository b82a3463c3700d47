import { createHash } from 'node:crypto';
import type { IncomingMessage, ServerResponse } from 'node:http';
import { stringifyCookie } from 'cookie';
import type { CookieRequest, SessionCookie } from './session-end.js';
import { withTimeout } from './waits.js';
import { cookiesAfter, cookiesSent, cookieValue } from './browser-cookies.js';
import { resolvedUid } from './session-user.js';
import { RefusedUid } from '../uid-rule.js';
import { UidCount } from './setup-warnings.js';
import type { WatchContext } from './context.js';
import { isClosed, pathOf } from './request-scope.js';
import { cookieChangesOf, type CookieChanges } from './cookie-changes.js';
import type { Containment } from './containment.js';

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
    const { cookie: cookieHeader = '' } = headers;
    if (!this.names.some((name) => cookieHeader.includes(name))) return;
    onHead(response, this.#context.containment, (changes) => {
      // A client that has gone gets no cookie.
      if (isClosed(response) || (changes.setCookies.length === 0 && !changes.clearsCookies)) return;
      const before = { headers, cookies: cookiesSent(cookieHeader) };
      const cookies = cookiesAfter(before.cookies, changes, pathOf(request));
      const after = { headers: { ...headers, cookie: stringifyCookie(cookies) }, cookies };
      for (const cookie of this.#cookies)
        void this.#context.tasks.track(this.#decide(cookie, before, after, response));
    });
  }

  /** Decides whether a response has ended the session of one cookie. Never rejects. */
  async #decide(
    cookie: SessionCookie,
    before: CookieRequest,
    after: CookieRequest,
    response: ServerResponse,
  ): Promise<void> {
    const at = Date.now();
    const next = cookieValue(after.cookies, cookie.name);
    if (cookieValue(before.cookies, cookie.name) === next) return;
    await Promise.resolve(); // leaves the host's `writeHead`, because the host's function finds the user
    const uid = await this.#userOf(cookie, before);
    if (uid === undefined) return;
    const nextUid = await this.#userOf(cookie, after);
    if (uid === nextUid) return;
    const reason =
      nextUid !== undefined ? 'user-replaced' : next === undefined ? 'destroyed' : 'user-removed';
    await this.#context.reporter.report({ uid, reason, at }, [response]);
  }

  /** A cookie that the host's function refuses – forged, damaged, expired – is nobody's, and so is a refused uid. */
  async #userOf({ name, uid }: SessionCookie, request: CookieRequest): Promise<string | undefined> {
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
    // The value is a secret: only its hash is kept.
    else count?.notFound(createHash('sha256').update(value).digest('base64url'), { value });
    return user;
  }
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
