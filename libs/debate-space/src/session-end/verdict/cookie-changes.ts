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
const CHANGES = /\r\n(?:set-cookie|clear-site-data):/i;
const EACH_CHANGE = /\r\n(set-cookie|clear-site-data):[ \t]*([^\r\n]*)/gi;

/**
 * Reads the head that has left: `getHeader` does not know the headers that were given to `writeHead` itself. Wrapping
 * `writeHead` would cost each request a closure.
 */
export function cookieChangesOf(response: SentResponse): CookieChanges {
  const { _header: head } = response;
  if (typeof head !== 'string' || head === '')
    return changesFrom(
      listOf(response.getHeader('set-cookie')),
      listOf(response.getHeader('clear-site-data')),
    );
  if (!CHANGES.test(head)) return NO_CHANGES;
  const values: Record<string, string[]> = { 'set-cookie': [], 'clear-site-data': [] };
  for (const [, name = '', value = ''] of head.matchAll(EACH_CHANGE)) values[name.toLowerCase()]?.push(value);
  return changesFrom(values['set-cookie'] ?? [], values['clear-site-data'] ?? []);
}

function changesFrom(setCookies: readonly string[], clearSiteData: readonly string[]): CookieChanges {
  if (setCookies.length + clearSiteData.length === 0) return NO_CHANGES;
  const types = clearSiteData.flatMap((header) => header.split(',')).map((type) => type.trim());
  return { setCookies, clearsCookies: types.includes('"cookies"') || types.includes('"*"') };
}

/** A header that may be there several times. */
function listOf(header: number | string | readonly string[] | undefined): readonly string[] {
  if (header === undefined) return NO_CHANGES.setCookies;
  return typeof header === 'object' ? header.map(String) : [String(header)];
}
