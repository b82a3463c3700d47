import { parseCookie, parseSetCookie } from 'cookie';

/** By name; without a prototype, since browsers choose the names. */
export type Cookies = Readonly<Record<string, string | undefined>>;

export function cookiesSent(header: string | undefined): Cookies {
  return parseCookie(header ?? '');
}

/**
 * The cookies that a browser sends to this path after a response: those it sent, changed by `Set-Cookie` (RFC 6265,
 * section 5.3). A header for another path is about another cookie, though of the same name.
 */
export function cookiesAfter(sent: Cookies, setCookies: readonly string[], asked: string): Cookies {
  const cookies = Object.assign(Object.create(null), sent) as Record<string, string | undefined>;
  for (const header of setCookies) {
    const { name, value, path = '/', maxAge, expires } = parseSetCookie(header);
    if (!matches(asked, path)) continue;
    if (isOver(maxAge, expires)) Reflect.deleteProperty(cookies, name);
    else cookies[name] = value;
  }
  return cookies;
}

/** Whether a `Set-Cookie` header leaves a browser with a cookie that has this in its value. */
export function setsCookieWith(part: string, setCookie: string): boolean {
  const { value, maxAge, expires } = parseSetCookie(setCookie);
  return value?.includes(part) === true && !isOver(maxAge, expires);
}

/** Max-Age has the last word. */
function isOver(maxAge: number | undefined, expires: Date | undefined): boolean {
  return maxAge === undefined ? expires !== undefined && expires.getTime() <= Date.now() : maxAge <= 0;
}

/** RFC 6265, section 5.1.4. */
function matches(asked: string, path: string): boolean {
  return asked === path || asked.startsWith(path.endsWith('/') ? path : `${path}/`) || !path.startsWith('/');
}
