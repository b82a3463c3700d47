import { parseCookie, parseSetCookie } from 'cookie';
import { isObject } from './session-user.js';
import type { CookieChanges } from './cookie-changes.js';
import { pathOf, SessionRequest } from './session-request.js';
import { LRUCache } from 'lru-cache';

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
 * @param requestPath without it, the cookies of every path
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
  for (const request of requests.toSorted((one, other) => one.answeredAt - other.answeredAt)) {
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
  if (!request.isAnswered) return NOT_CHANGED;
  const { setCookies, clearsCookies } = request;
  if (clearsCookies) return undefined;
  if (setCookies.length === 0) return NOT_CHANGED;
  const { sessionID } = request;
  // As on every request of rolling sessions.
  const isKept = (header: string): boolean => keepsForever(header, before) || setsCookieWith(before, header);
  if (sessionID === before && setCookies.every(isKept)) return before;
  const sent = cookiesSent(request.cookieHeader);
  const ofSession = Object(request.session) as { cookie?: unknown };
  const own = setCookies.filter((header) => !isOfAnother(header, ofSession.cookie, request));
  const after = cookiesAfter(sent, { setCookies: own, clearsCookies }, pathOf(request.native));
  if (sessionID !== undefined && sessionID !== before && has(after, sessionID)) return sessionID;
  // Another cookie may name the session as well, such as the last one of a browser.
  const carries = surestCarrier(sent, before);
  if (has(after, before, carries))
    return own.some((header) => setsCookieWith(before, header, carries)) ? before : NOT_CHANGED;
  return has(sent, before) ? undefined : sessionID; // ids that cookies do not show
}

/** Whether the value of a cookie carries a session id. */
type Carries = (value: string, sid: string) => boolean;

/** Signed by express-session or @fastify/session; as it is. The surest first. */
const CARRIERS: readonly Carries[] = [
  (value, sid) => value.startsWith(`s:${sid}.`) || value.startsWith(`${sid}.`),
  (value, sid) => value === sid,
];
const HAS_END = /;\s*(?:expires|max-age)\s*=/i;
const includes: Carries = (value, sid) => value.includes(sid);

function surestCarrier(cookies: Cookies, sid: string): Carries {
  return CARRIERS.find((carries) => has(cookies, sid, carries)) ?? includes;
}

function has(cookies: Cookies, sid: string, carries: Carries = includes): boolean {
  return Object.values(cookies).some((value) => value !== undefined && carries(value, sid));
}

/** Whether a `Set-Cookie` header has this session and no end, as most of them: that needs no parser. */
function keepsForever(setCookie: string, sid: string): boolean {
  return setCookie.includes(sid) && !HAS_END.test(setCookie);
}

/** Whether a `Set-Cookie` header leaves a browser with a cookie that carries this session. */
function setsCookieWith(sid: string, setCookie: string, carries: Carries = includes): boolean {
  const { value, maxAge, expires } = parseSetCookie(setCookie);
  return value !== undefined && carries(value, sid) && !isExpired(maxAge, expires);
}

/**
 * Whether a `Set-Cookie` header is about another cookie than that of the session, though of the same name: browsers tell
 * them apart by path and domain (RFC 6265, section 5.3). What cannot be known counts as the session's.
 * @param ofSession the `cookie` of the session
 */
export function isOfAnother(setCookie: string, ofSession: unknown, { native }: SessionRequest): boolean {
  if (!isObject(ofSession)) return false;
  const own: { readonly path?: unknown; readonly domain?: unknown } = ofSession;
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

/** A session that a browser has, or no session; and whose it is, if that is known. */
export interface BrowserSession {
  readonly sid: string | undefined;
  readonly uid: string | undefined;
}

interface Move extends BrowserSession {
  /** When the answer left that has made the browser go on with it, as requests count. */
  readonly answer: number;
  /** When that was heard of, as requests count. */
  readonly heardAt: number;
}

/** Of a cache in each app. By size: for `max` entries lru-cache would reserve the room, 0.4 MB, when the app starts. */
export const REMEMBERED = { maxSize: 10_000, sizeCalculation: () => 1 };
/** Longer than a request that was sent with the former id is under way. */
const REMEMBER_MS = 60_000;

/**
 * Which session a browser went on with after it had sent a session id. Requests that a browser sends at the same time carry
 * the same id, and one may be answered after another one has renewed the session.
 */
export class BrowserMoves {
  readonly #moves = new LRUCache<string, Move>({ ...REMEMBERED, ttl: REMEMBER_MS });

  /** The session that a browser that sent this id has now; `undefined` while no answer has changed it. */
  after(sid: string): BrowserSession | undefined {
    return this.#moves.size === 0 ? undefined : this.#moves.get(sid);
  }

  /** Whether the browser has gone on from this session while the request was under way, which does not bring it back. */
  isBehind(sid: string, request: SessionRequest | undefined): boolean {
    return request !== undefined && request.since <= (this.#moves.get(sid)?.heardAt ?? 0);
  }

  /**
   * The answer to a request that carried this id has left.
   * @param uid whose session that is
   * @param uidOf the user of another session, as far as requests under way know
   * @returns the session that the browser has left by it, if it has left one
   */
  answered(
    { sid, uid }: BrowserSession & { readonly sid: string },
    request: SessionRequest,
    uidOf: (sid: string) => string | undefined,
  ): BrowserSession | undefined {
    const left = sessionLeftByOne(request, sid);
    if (left === NOT_CHANGED) return undefined;
    const own = { sid: left, uid: left === undefined ? undefined : uidOf(left) };
    const move = this.#moves.get(sid);
    if (left === (move ?? { sid }).sid) return undefined;
    // Closed after an answer that had left later: the browser had gone on already.
    if (move && move.answer > request.answeredAt) return left === sid ? undefined : own;
    if (left === sid) this.#moves.delete(sid);
    else this.#moves.set(sid, { ...own, answer: request.answeredAt, heardAt: SessionRequest.moment() });
    return move ?? { sid, uid };
  }
}
