import { parseCookie, parseSetCookie } from 'cookie';

/** By name; without a prototype, since browsers choose the names. */
export type Cookies = Readonly<Record<string, string | undefined>>;

export function cookiesSent(header: string | undefined): Cookies {
  return parseCookie(header ?? '');
}

/** The cookies that a browser has after a response: those it sent, changed by `Set-Cookie` (RFC 6265, section 5.3). */
export function cookiesAfter(sent: Cookies, setCookies: readonly string[]): Cookies {
  const cookies = Object.assign(Object.create(null), sent) as Record<string, string | undefined>;
  for (const header of setCookies) {
    const { name, value, maxAge, expires } = parseSetCookie(header);
    // Max-Age has the last word.
    const gone =
      maxAge === undefined ? expires !== undefined && expires.getTime() <= Date.now() : maxAge <= 0;
    if (gone) Reflect.deleteProperty(cookies, name);
    else cookies[name] = value;
  }
  return cookies;
}
