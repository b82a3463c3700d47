import { parseCookie, parseSetCookie } from 'cookie';
import type { CookieChanges } from './cookie-changes.js';
import { pathOf, type RequestScope } from './request-scope.js';

/** Cookies by name. The object has no prototype, because browsers choose the names. */
export type Cookies = Readonly<Record<string, string | undefined>>;

export function cookiesSent(header: string | undefined): Cookies {
  return parseCookie(header ?? '');
}

/**
 * The cookies that a browser sends to this path after a response: those it sent, changed by `Set-Cookie` (RFC 6265,
 * section 5.3). A header for another path changes another cookie, even if the name is the same.
 * @param requestPath if it is absent, headers for every path count
 */
export function cookiesAfter(
  sent: Cookies,
  { setCookies, clearsCookies }: CookieChanges,
  requestPath: string | undefined,
): Cookies {
  const cookies = Object.create(null) as Record<string, string | undefined>;
  if (clearsCookies) return cookies;
  Object.assign(cookies, sent);
  for (const header of setCookies) {
    const { name, value, path = '/', maxAge, expires } = parseSetCookie(header);
    if (requestPath !== undefined && !matches(requestPath, path)) continue;
    if (isExpired(maxAge, expires)) Reflect.deleteProperty(cookies, name);
    else cookies[name] = value;
  }
  return cookies;
}

/** The values of the cookies that the answer of a request has removed or replaced. */
export function removedCookies(scope: RequestScope, changes: CookieChanges): readonly string[] {
  if (changes.setCookies.length === 0 && !changes.clearsCookies) return [];
  const sent = cookiesSent(scope.raw.headers.cookie);
  const after = cookiesAfter(sent, changes, pathOf(scope.native));
  return Object.keys(sent).flatMap((name) => (after[name] === sent[name] ? [] : (sent[name] ?? [])));
}

/** The session id in a cookie's value: `s:ID.SIGNATURE` of express-session, `ID.SIGNATURE` of @fastify/session, or `ID`. */
export function sessionIdIn(value: string): string {
  return /^(?:s:)?([^.]*)/.exec(value)?.[1] ?? value;
}

/** The value of a session cookie, joined if it was cut into `name.0`, `name.1` and so on. */
export function cookieValue(cookies: Cookies, name: string): string | undefined {
  const whole = cookies[name];
  if (whole !== undefined && whole !== '') return whole;
  const chunks: string[] = [];
  for (let chunk = cookies[`${name}.0`]; chunk; chunk = cookies[`${name}.${chunks.length}`])
    chunks.push(chunk);
  return chunks.length > 0 ? chunks.join('') : undefined;
}

/** `Max-Age` takes precedence over `Expires`. */
function isExpired(maxAge: number | undefined, expires: Date | undefined): boolean {
  return maxAge === undefined ? expires !== undefined && expires.getTime() <= Date.now() : maxAge <= 0;
}

/** RFC 6265, section 5.1.4. */
function matches(requested: string, path: string): boolean {
  return (
    requested === path || requested.startsWith(path.endsWith('/') ? path : `${path}/`) || !path.startsWith('/')
  );
}

/** Options of each cache. With `max` instead, lru-cache would reserve 0.4 MB per cache when the app starts. */
export const REMEMBERED = { maxSize: 10_000, sizeCalculation: () => 1 };
