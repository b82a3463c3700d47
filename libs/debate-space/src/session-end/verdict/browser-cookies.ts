import { parseCookie, parseSetCookie } from 'cookie';
import { isObject } from '../is-object.js';
import { pathOf, type SessionRequest } from './session-request.js';

/** By name; without a prototype, since browsers choose the names. */
export type Cookies = Readonly<Record<string, string | undefined>>;

/** The response leaves the browser's session as it is. */
export const NOT_CHANGED = Symbol('not changed');

export function cookiesSent(header: string | undefined): Cookies {
  return parseCookie(header ?? '');
}

/**
 * The cookies that a browser sends to this path after a response: those it sent, changed by `Set-Cookie` (RFC 6265,
 * section 5.3). A header for another path is about another cookie, though of the same name.
 */
export function cookiesAfter(sent: Cookies, setCookies: readonly string[], requestPath: string): Cookies {
  const cookies = Object.assign(Object.create(null), sent) as Record<string, string | undefined>;
  for (const header of setCookies) {
    const { name, value, path = '/', maxAge, expires } = parseSetCookie(header);
    if (!matches(requestPath, path)) continue;
    if (isExpired(maxAge, expires)) Reflect.deleteProperty(cookies, name);
    else cookies[name] = value;
  }
  return cookies;
}

/** The value of a session cookie, put together if it had to be cut into `name.0`, `name.1` and so on. */
export function cookieValue(cookies: Cookies, name: string): string | undefined {
  const whole = cookies[name];
  if (whole !== undefined && whole !== '') return whole;
  const chunks: string[] = [];
  for (let chunk = cookies[`${name}.0`]; chunk; chunk = cookies[`${name}.${chunks.length}`])
    chunks.push(chunk);
  return chunks.length > 0 ? chunks.join('') : undefined;
}

/**
 * The session that requests of one browser leave it with: another than before only by the cookies that have left, and
 * those of the last response count.
 */
export function sessionLeftBy(
  requests: readonly SessionRequest[],
  before: string | undefined,
): string | undefined {
  let left = before;
  for (const request of requests.toSorted((one, other) => one.closedAt - other.closedAt)) {
    const own = sessionLeftByOne(request, before);
    if (own !== NOT_CHANGED) left = own;
  }
  return left;
}

/** The same, of one request; `NOT_CHANGED` when its response has not touched the session cookie. */
export function sessionLeftByOne(
  request: SessionRequest,
  before: string | undefined,
): string | undefined | typeof NOT_CHANGED {
  if (before === undefined) return request.sessionID;
  const { setCookies } = request;
  if (setCookies.length === 0 || !request.isAnswered) return NOT_CHANGED;
  const { sessionID } = request;
  // As on every request of rolling sessions.
  if (sessionID === before && setCookies.every((header) => setsCookieWith(before, header))) return before;
  const sent = cookiesSent(request.cookieHeader);
  const own = setCookies.filter((header) => !isOfAnother(header, request));
  const after = cookiesAfter(sent, own, pathOf(request.native));
  const has = (cookies: Cookies, sid: string): boolean =>
    Object.values(cookies).some((value) => value?.includes(sid));
  if (sessionID !== undefined && sessionID !== before && has(after, sessionID)) return sessionID;
  if (has(after, before)) return own.some((header) => setsCookieWith(before, header)) ? before : NOT_CHANGED;
  return has(sent, before) ? undefined : sessionID; // ids that cookies do not show
}

/** Whether a `Set-Cookie` header leaves a browser with a cookie that has this in its value. */
function setsCookieWith(part: string, setCookie: string): boolean {
  const { value, maxAge, expires } = parseSetCookie(setCookie);
  return value?.includes(part) === true && !isExpired(maxAge, expires);
}

/**
 * Whether a `Set-Cookie` header is about another cookie than that of the session, though of the same name: browsers tell
 * them apart by path and domain (RFC 6265, section 5.3). What cannot be known counts as the session's.
 */
function isOfAnother(setCookie: string, { session, native }: SessionRequest): boolean {
  const { cookie: own } = Object(session) as { cookie?: { path?: unknown; domain?: unknown } };
  if (!isObject(own)) return false;
  const { path, domain } = parseSetCookie(setCookie);
  if (path !== undefined && typeof own.path === 'string' && path !== own.path) return true;
  const [one, other] = [domain, own.domain].map(domainOf);
  if (one !== undefined && other !== undefined) return one !== other;
  // A cookie without a domain is that of the host alone, never one of a domain above it.
  const host = native.headers?.host?.replace(/:\d+$/, '').toLowerCase();
  return host?.endsWith(`.${one ?? other}`) === true;
}

function domainOf(domain: unknown): string | undefined {
  return typeof domain === 'string' && domain !== '' ? domain.replace(/^\./, '').toLowerCase() : undefined;
}

/** Max-Age has the last word. */
function isExpired(maxAge: number | undefined, expires: Date | undefined): boolean {
  return maxAge === undefined ? expires !== undefined && expires.getTime() <= Date.now() : maxAge <= 0;
}

/** RFC 6265, section 5.1.4. */
function matches(asked: string, path: string): boolean {
  return asked === path || asked.startsWith(path.endsWith('/') ? path : `${path}/`) || !path.startsWith('/');
}
