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
  return [res.getHeader('set-cookie') ?? [], reply?.getHeader('set-cookie') ?? []].flat().map(String);
}
