import type { ServerResponse } from 'node:http';

/** A request as far as its session goes: express-session's own, or what stands for one of Fastify. */
export interface SessionRequest {
  readonly res: ServerResponse;
  readonly headers: { readonly cookie?: string | undefined };
  /** The id of the session that the request has now; another one after `regenerate`. */
  readonly sessionID?: string | undefined;
  readonly session?: unknown;
  /** Where the headers of the answer are until they leave, if not on `res`. */
  readonly reply?: { getHeader(name: string): unknown };
  /** The platform's request, if it is not this one. */
  readonly native?: unknown;
}

/** The request, if it is one with a response – and not the stand-in that `store.load` makes. */
export function sessionRequest(value: unknown): SessionRequest | undefined {
  const response = (value as { res?: Partial<ServerResponse> } | null | undefined)?.res;
  return typeof response?.once === 'function' ? (value as SessionRequest) : undefined;
}

/** The `Set-Cookie` headers of the answer. */
export function setCookiesOf({ res, reply }: SessionRequest): readonly string[] {
  const cookies: string[] = [];
  for (const header of [res.getHeader('set-cookie'), reply?.getHeader('set-cookie')]) {
    if (typeof header === 'string') cookies.push(header);
    else if (Array.isArray(header)) cookies.push(...header.map(String));
  }
  return cookies;
}

/** Also of HTTP/2, whose responses have no `closed`. */
export function isClosed(response: ServerResponse): boolean {
  const { closed, stream } = response as { closed?: boolean; stream?: { destroyed?: boolean } };
  return closed ?? stream?.destroyed ?? false;
}

/** Of the URL that the browser asked for; Express shortens `url` for what is mounted under a path. */
export function pathOf(request: object): string {
  const { originalUrl, url } = request as { originalUrl?: unknown; url?: unknown };
  const asked = typeof originalUrl === 'string' ? originalUrl : typeof url === 'string' ? url : '/';
  return asked.split('?', 1)[0] ?? '/';
}
