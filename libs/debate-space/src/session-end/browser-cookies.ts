import { hash } from 'node:crypto';
import type { ServerResponse } from 'node:http';
import { parseCookie, parseSetCookie, type SetCookie } from 'cookie';
import { pathOf, type RequestScope } from './request-scope.js';
import type { SessionRecord } from './session-end.js';
import { isObject } from './session-user.js';

/** The part of a response that changes the cookies of its browser. */
export interface CookieChanges {
  /** The `Set-Cookie` headers. */
  readonly setCookies: readonly string[];
  /** Whether `Clear-Site-Data` removes every cookie of the site; browsers do that after `Set-Cookie`. */
  readonly clearsCookies: boolean;
}

type SentResponse = Pick<ServerResponse, 'getHeader'> & {
  /** The head as Node.js has rendered it. HTTP/2 renders none. */
  readonly _header?: unknown;
};

const SET_COOKIE = 'set-cookie';
const CLEAR_SITE_DATA = 'clear-site-data';
const NO_CHANGES: CookieChanges = { setCookies: [], clearsCookies: false };

/**
 * `getHeader` does not know the headers that were given to `writeHead` alone: those are in the head that has left.
 * Wrapping `writeHead` would cost each request a closure.
 */
export function cookieChangesOf(response: SentResponse): CookieChanges {
  const [setCookies, clearSiteData] = [
    response.getHeader('set-cookie'),
    response.getHeader('clear-site-data'),
  ];
  if (setCookies !== undefined || clearSiteData !== undefined)
    return changesFrom(listOf(setCookies), listOf(clearSiteData));
  // Where there is one header of its own, Node.js keeps those of `writeHead` with it.
  const { _header: head } = response;
  if (typeof head !== 'string' || response.getHeader('content-type') !== undefined) return NO_CHANGES;
  return changesIn(head);
}

/** Each response of rolling sessions comes here: a regular expression, or a copy in lower case, would cost a microsecond. */
function changesIn(head: string): CookieChanges {
  const setCookies: string[] = [];
  const clearSiteData: string[] = [];
  for (let end = head.indexOf('\r\n'); end >= 0;) {
    const start = end + 2;
    end = head.indexOf('\r\n', start);
    const colon = head.indexOf(':', start);
    const length = colon - start;
    if (length !== SET_COOKIE.length && length !== CLEAR_SITE_DATA.length) continue;
    const name = head.slice(start, colon).toLowerCase();
    if (name === SET_COOKIE) setCookies.push(head.slice(colon + 1, end).trim());
    else if (name === CLEAR_SITE_DATA) clearSiteData.push(head.slice(colon + 1, end).trim());
  }
  return changesFrom(setCookies, clearSiteData);
}

function changesFrom(setCookies: readonly string[], clearSiteData: readonly string[]): CookieChanges {
  if (clearSiteData.length === 0)
    return setCookies.length === 0 ? NO_CHANGES : { setCookies, clearsCookies: false };
  const types = clearSiteData.flatMap((header) => header.split(',')).map((type) => type.trim());
  return { setCookies, clearsCookies: types.includes('"cookies"') || types.includes('"*"') };
}

/** A header that may be there several times. */
type Header = number | string | readonly string[] | undefined;

function listOf(header: Header): readonly string[] {
  if (header === undefined) return NO_CHANGES.setCookies;
  return typeof header === 'object' ? header.map(String) : [String(header)];
}

/** Cookies by name. The object has no prototype, because browsers choose the names. */
export type Cookies = Readonly<Record<string, string | undefined>>;

/** Where a cookie is: browsers distinguish cookies of one name by their path and domain. */
export interface CookieScope {
  readonly path?: unknown;
  readonly domain?: unknown;
}

/** A request, as far as it decides which cookies a browser sends. */
export interface CookieTarget {
  /** As the host got it: a proxy may have stripped the beginning. */
  readonly path: string;
  readonly host?: string | undefined;
}

export function cookiesSent(header: string | undefined): Cookies {
  return parseCookie(header ?? '');
}

/**
 * The cookies that a browser sends after a response: those it sent, changed by `Set-Cookie` (RFC 6265, section 5.3). A header
 * for another path or domain changes another cookie of that name, which stands in for one that is deleted.
 * @param scopeOf where the cookie of this name is that the browser sent, as far as that is known
 */
export function cookiesAfter(
  sent: Cookies,
  { setCookies, clearsCookies }: CookieChanges,
  target: CookieTarget,
  scopeOf: (name: string) => CookieScope | undefined,
): Cookies {
  const cookies = Object.create(null) as Record<string, string | undefined>;
  if (clearsCookies) return cookies;
  Object.assign(cookies, sent);
  const elsewhere = new Map<string, SetCookie>();
  for (const header of setCookies) {
    const cookie = parseSetCookie(header);
    const { name, value, path, domain, maxAge, expires } = cookie;
    const isDeleted = isExpired(maxAge, expires);
    const key = [name, path, domain].join(';');
    if (isOfAnother(cookie, scopeOf(name) ?? {}, target)) {
      if (isDeleted) elsewhere.delete(key);
      else elsewhere.set(key, cookie);
    } else if (isDeleted) Reflect.deleteProperty(cookies, name);
    else cookies[name] = value;
  }
  for (const { name, value } of elsewhere.values()) cookies[name] ??= value;
  return cookies;
}

/** The scope that a `Set-Cookie` header gives to its cookie. */
export function scopeIn({ path, domain }: SetCookie, target: CookieTarget): CookieScope {
  return { path: path?.startsWith('/') ? path : defaultPath(target.path), domain };
}

/** Whether a header sets another cookie of the same name than the browser sent. In doubt, it sets that one. */
function isOfAnother(cookie: SetCookie, sent: CookieScope, target: CookieTarget): boolean {
  const { path: own } = sent;
  if (typeof own === 'string') {
    const isNamed = cookie.path?.startsWith('/') === true;
    // The browser has sent the cookie, so its path matches: if not the one that is seen here, a proxy has changed that.
    if ((isNamed || matches(target.path, own)) && scopeIn(cookie, target).path !== own) return true;
  }
  const [one, other] = [cookie.domain, sent.domain].map(domainOf);
  if (one !== undefined && other !== undefined) return one !== other;
  // A cookie without a domain belongs to the host alone, never to a domain above it.
  return (target.host ?? '')
    .replace(/:\d+$/, '')
    .toLowerCase()
    .endsWith(`.${one ?? other}`);
}

function domainOf(domain: unknown): string | undefined {
  return typeof domain === 'string' && domain !== '' ? domain.replace(/^\./, '').toLowerCase() : undefined;
}

/** RFC 6265, section 5.1.4. */
function defaultPath(requested: string): string {
  return requested.startsWith('/') ? requested.slice(0, Math.max(1, requested.lastIndexOf('/'))) : '/';
}

/** RFC 6265, section 5.1.4. */
function matches(requested: string, path: string): boolean {
  return requested === path || requested.startsWith(path.endsWith('/') ? path : `${path}/`);
}

/** `Max-Age` takes precedence over `Expires`. */
function isExpired(maxAge: number | undefined, expires: Date | undefined): boolean {
  return maxAge === undefined ? expires !== undefined && expires.getTime() <= Date.now() : maxAge <= 0;
}

/** How a cookie's value shows a session id, the surest way first: signed, as it is, or inside something else. */
const SHOWS: readonly ((value: string, sid: string) => boolean)[] = [
  (value, sid) => value.startsWith(`s:${sid}.`) || value.startsWith(`${sid}.`),
  (value, sid) => value === sid,
  (value, sid) => value.includes(sid),
];

/** `s:ID.SIGNATURE` of express-session, `ID.SIGNATURE` of @fastify/session, or `ID`. */
export function idIn(value: string): string {
  return /^(?:s:)?([^.]*)/.exec(value)?.[1] ?? value;
}

/** Stands for cookies that must not be kept. */
export function proofOf(names: readonly string[], cookies: Cookies): string {
  return hash('sha256', JSON.stringify(names.map((name) => [name, cookies[name]])), 'base64url');
}

/** @returns the proof of the cookie by which a request has loaded its session; `undefined` if it was another way */
export function proofIn(header: string | undefined, sid: string): string | undefined {
  if (header === undefined) return undefined;
  const cookies = cookiesSent(header);
  for (const shows of SHOWS)
    for (const [name, value = ''] of Object.entries(cookies))
      if (shows(value, sid)) return proofOf([name], cookies);
  return undefined;
}

const EXPIRES = /;\s*(?:expires|max-age)\s*=/i;

/** Whether the answer of a request has cleared the cookie by which the request got its session. */
export function losesSession(sid: string, scope: RequestScope): boolean {
  if (!scope.res.headersSent) return false;
  const changes = cookieChangesOf(scope.res);
  const { setCookies, clearsCookies } = changes;
  if (!clearsCookies) {
    if (setCookies.length === 0) return false;
    // Rolling sessions set their cookie in each answer.
    if (setCookies.every((header) => header.includes(sid) && !EXPIRES.test(header))) return false;
  }
  const { cookie } = (scope.session ?? {}) as SessionRecord;
  const [sent, after] = beforeAndAfter(scope, changes, isObject(cookie) ? cookie : {});
  const shown = (cookies: Cookies, shows: (typeof SHOWS)[number]): boolean =>
    Object.values(cookies).some((value) => value !== undefined && shows(value, sid));
  const shows = SHOWS.find((each) => shown(sent, each));
  return shows !== undefined && !shown(after, shows);
}

/** Whether the answer of a request has given its browser the cookie of this session, as those of rolling sessions do. */
export function setsSession(sid: string, { res }: RequestScope): boolean {
  return res.headersSent && cookieChangesOf(res).setCookies.some((header) => header.includes(sid));
}

function beforeAndAfter(
  { raw, native }: RequestScope,
  changes: CookieChanges,
  ofSession: CookieScope,
): readonly [before: Cookies, after: Cookies] {
  const sent = cookiesSent(raw.headers.cookie);
  const target = { path: pathOf(native), host: raw.headers.host };
  return [sent, cookiesAfter(sent, changes, target, () => ofSession)];
}

/** A cookie whose value an answer has changed; `to` is absent when the answer has cleared the cookie. */
export interface ChangedCookie {
  readonly from: string;
  /** Of the cookie as the browser sent it. */
  readonly proof: string;
  readonly to: string | undefined;
}

/** The cookies of a request that its answer has changed. @param ofSession where the cookie of the session is */
export function changedCookies(scope: RequestScope, ofSession: CookieScope): readonly ChangedCookie[] {
  if (!scope.res.headersSent) return [];
  const changes = cookieChangesOf(scope.res);
  if (changes.setCookies.length === 0 && !changes.clearsCookies) return [];
  const [sent, after] = beforeAndAfter(scope, changes, ofSession);
  return Object.entries(sent).flatMap(([name, from]) =>
    from === undefined || after[name] === from
      ? []
      : [{ from, proof: proofOf([name], sent), to: after[name] }],
  );
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

/** Options of each cache. With `max` instead, lru-cache would reserve 0.4 MB per cache when the app starts. */
export const REMEMBERED = { maxSize: 10_000, sizeCalculation: () => 1 };
