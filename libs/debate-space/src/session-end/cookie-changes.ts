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

/** As much of a reply of Fastify as is needed here. */
interface FastifyReply {
  readonly raw: SentResponse;
  getHeader(name: string): Header;
}

/** The same of a reply of Fastify, which keeps its headers until they leave. Not for one that a handler has taken over. */
export function cookieChangesOfReply(reply: FastifyReply): CookieChanges {
  const kept = reply.getHeader('set-cookie');
  if (kept === undefined) return cookieChangesOf(reply.raw);
  return changesFrom(listOf(kept), listOf(reply.getHeader('clear-site-data')));
}

/** Without a regular expression, which takes a microsecond: each response of rolling sessions sets a cookie. */
function changesIn(head: string): CookieChanges {
  const lowerCase = head.toLowerCase();
  const valuesOf = (name: string): readonly string[] => {
    let at = lowerCase.indexOf(name);
    if (at < 0) return NO_CHANGES.setCookies;
    const values: string[] = [];
    for (; at >= 0; at = lowerCase.indexOf(name, at + 1)) {
      const start = at + name.length;
      values.push(head.slice(start, head.indexOf('\r\n', start)).trim());
    }
    return values;
  };
  return changesFrom(valuesOf('\r\nset-cookie:'), valuesOf('\r\nclear-site-data:'));
}

function changesFrom(setCookies: readonly string[], clearSiteData: readonly string[]): CookieChanges {
  if (clearSiteData.length === 0)
    return setCookies.length === 0 ? NO_CHANGES : { setCookies, clearsCookies: false };
  const types = clearSiteData.flatMap((header) => header.split(',')).map((type) => type.trim());
  return { setCookies, clearsCookies: types.includes('"cookies"') || types.includes('"*"') };
}

/** A header that may be there several times. */
export type Header = number | string | readonly string[] | undefined;

function listOf(header: Header): readonly string[] {
  if (header === undefined) return NO_CHANGES.setCookies;
  return typeof header === 'object' ? header.map(String) : [String(header)];
}
