import type { JsonObject } from '../logout-token/json-object.js';
import type { Operation } from './operation.js';

/** One request that reached the server. Holds no secret: keys and tokens are left out or replaced. */
export interface ReceivedRequest {
  readonly operation: Operation;
  readonly method: string;
  /** As sent, still percent-encoded, without the query. */
  readonly path: string;
  /** Arrival in milliseconds since the epoch, by this machine's clock. */
  readonly at: number;
  /** The status answered; absent when the connection ended without one. */
  readonly status?: number;
  /** Whether the service did what was asked. A fault may still have spoilt the answer. */
  readonly accepted: boolean;
  /** Why it was not done. */
  readonly reason?: string;
  /** The user concerned: from the path, or `sub` of the logout token. */
  readonly uid?: string;
  /** Query parameters; a repeated one is an array. */
  readonly query?: Readonly<Record<string, string | string[]>>;
  /** Claims of the logout token: verified when `accepted`, else merely decoded. */
  readonly claims?: JsonObject;
  /** `accept`, `content-type`, `content-length`, `user-agent`, and the bare scheme of `authorization`. */
  readonly headers: Readonly<Record<string, string>>;
}

/** A request whose outcome is still open. */
export type RequestDraft = Omit<ReceivedRequest, 'status' | 'accepted' | 'reason'>;
