import type { ServerResponse } from 'node:http';

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

const NO_CHANGES: CookieChanges = { setCookies: [], clearsCookies: false };
const CHANGE = /\r\n(?:set-cookie|clear-site-data):/gi;
const LETTER_E = 'e'.charCodeAt(0);

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

/** Without arrays of matches: each response of rolling sessions sets a cookie. */
function changesIn(head: string): CookieChanges {
  const setCookies: string[] = [];
  const clearSiteData: string[] = [];
  CHANGE.lastIndex = 0;
  while (CHANGE.test(head)) {
    const { lastIndex } = CHANGE;
    const end = head.indexOf('\r\n', lastIndex);
    const isCookie = (head.charCodeAt(lastIndex - 2) | 0x20) === LETTER_E;
    (isCookie ? setCookies : clearSiteData).push(head.slice(lastIndex, end).trim());
    CHANGE.lastIndex = end;
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
function listOf(header: number | string | readonly string[] | undefined): readonly string[] {
  if (header === undefined) return NO_CHANGES.setCookies;
  return typeof header === 'object' ? header.map(String) : [String(header)];
}
