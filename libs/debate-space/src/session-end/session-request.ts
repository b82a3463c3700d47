import type { ServerResponse } from 'node:http';

/** What express-session makes of a request. */
export interface SessionRequest {
  readonly res: ServerResponse;
  /** The id of the session that the request has now; another one after `regenerate`. */
  readonly sessionID?: string;
  readonly session?: unknown;
}

/** The request, if it is one with a response – and not the stand-in that `store.load` makes. */
export function sessionRequest(value: unknown): SessionRequest | undefined {
  const response = (value as { res?: Partial<ServerResponse> } | null | undefined)?.res;
  return typeof response?.once === 'function' ? (value as SessionRequest) : undefined;
}
