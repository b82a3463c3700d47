import { parseCookie, parseSetCookie } from 'cookie';
import { cookieChangesOf, type CookieChanges } from './cookie-changes.js';
import { pathOf, type RequestScope } from './request-scope.js';
import type { SessionRecord } from './session-end.js';
import { isObject } from './session-user.js';

const EXPIRES = /;\s*(?:expires|max-age)\s*=/i;

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

/** How a cookie's value shows a session id, the surest way first: signed, as it is, or inside something else. */
const SHOWS: readonly ((value: string, sid: string) => boolean)[] = [
  (value, sid) => value.startsWith(`s:${sid}.`) || value.startsWith(`${sid}.`),
  (value, sid) => value === sid,
  (value, sid) => value.includes(sid),
];

/** Whether the answer of a request has cleared the cookie by which the request got its session. */
export function losesSession(sid: string, { raw, native, res, session }: RequestScope): boolean {
  if (!res.headersSent) return false;
  const { setCookies, clearsCookies } = cookieChangesOf(res);
  if (!clearsCookies) {
    if (setCookies.length === 0) return false;
    // Rolling sessions set their cookie in each answer.
    if (setCookies.every((header) => header.includes(sid) && !EXPIRES.test(header))) return false;
  }
  const { cookie } = (session ?? {}) as SessionRecord;
  const ofSession = isObject(cookie) ? cookie : {};
  const sent = cookiesSent(raw.headers.cookie);
  const own = setCookies.filter((header) => !isOfAnother(header, ofSession, raw.headers.host));
  const after = cookiesAfter(sent, { setCookies: own, clearsCookies }, pathOf(native));
  const shown = (cookies: Cookies, shows: (typeof SHOWS)[number]): boolean =>
    Object.values(cookies).some((value) => value !== undefined && shows(value, sid));
  const shows = SHOWS.find((each) => shown(sent, each));
  return shows !== undefined && !shown(after, shows);
}

/** What a session says of its cookie: browsers distinguish cookies of one name by their path and domain. */
export interface SessionCookieScope {
  readonly path?: unknown;
  readonly domain?: unknown;
}

/** Whether a header sets another cookie of the same name (RFC 6265, section 5.3). In doubt, it sets the session's. */
function isOfAnother(setCookie: string, ofSession: SessionCookieScope, host = ''): boolean {
  const { path, domain } = parseSetCookie(setCookie);
  if (path !== undefined && typeof ofSession.path === 'string' && path !== ofSession.path) return true;
  const [one, other] = [domain, ofSession.domain].map(domainOf);
  if (one !== undefined && other !== undefined) return one !== other;
  // A cookie without a domain belongs to the host alone, never to a domain above it.
  return host
    .replace(/:\d+$/, '')
    .toLowerCase()
    .endsWith(`.${one ?? other}`);
}

function domainOf(domain: unknown): string | undefined {
  return typeof domain === 'string' && domain !== '' ? domain.replace(/^\./, '').toLowerCase() : undefined;
}

/** A cookie whose value an answer has changed, as session ids; `to` is absent when the answer has cleared the cookie. */
export interface ChangedCookie {
  readonly from: string;
  readonly to: string | undefined;
}

/** The cookies of a request that its answer has changed, as far as they show session ids. */
export function changedCookies(
  { raw, native, res }: RequestScope,
  ofSession: SessionCookieScope,
): readonly ChangedCookie[] {
  if (!res.headersSent) return [];
  const { setCookies, clearsCookies } = cookieChangesOf(res);
  if (setCookies.length === 0 && !clearsCookies) return [];
  const sent = cookiesSent(raw.headers.cookie);
  const own = setCookies.filter((header) => !isOfAnother(header, ofSession, raw.headers.host));
  const after = cookiesAfter(sent, { setCookies: own, clearsCookies }, pathOf(native));
  // `s:ID.SIGNATURE` of express-session, `ID.SIGNATURE` of @fastify/session, or `ID`.
  const idIn = (value = ''): string => /^(?:s:)?([^.]*)/.exec(value)?.[1] ?? value;
  return Object.keys(sent)
    .filter((name) => after[name] !== sent[name])
    .map((name) => ({
      from: idIn(sent[name]),
      to: after[name] === undefined ? undefined : idIn(after[name]),
    }));
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
    requested === path ||
    requested.startsWith(path.endsWith('/') ? path : `${path}/`) ||
    !path.startsWith('/')
  );
}

/** Options of each cache. With `max` instead, lru-cache would reserve 0.4 MB per cache when the app starts. */
export const REMEMBERED = { maxSize: 10_000, sizeCalculation: () => 1 };
