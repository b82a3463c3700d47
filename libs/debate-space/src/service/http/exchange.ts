import type { DebateSpaceOperation } from '../../errors.js';

/** A request to the service. */
export interface HttpRequest {
  /** As errors name it. */
  readonly operation: DebateSpaceOperation;
  readonly method: 'GET' | 'POST' | 'DELETE';
  readonly url: string;
  readonly headers: Readonly<Record<string, string>>;
  readonly body?: string;
  /** The longest body of an answer. @defaultValue {@link SHORT_BYTES} */
  readonly maxBytes?: number;
}

/** An answer as the sender received it. */
export interface RawReply {
  readonly status: number;
  readonly data: unknown;
  header(name: string): string | string[] | undefined;
}

export interface HttpReply extends Pick<HttpRequest, 'operation'> {
  readonly status: number;
  /** `undefined` when it cannot be read as text. */
  readonly body: string | undefined;
  /** Repeated headers are joined with commas (RFC 9110, section 5.3). @param name in lower case */
  header(name: string): string | undefined;
  /** `Retry-After`, in milliseconds from now. */
  readonly retryAfterMs?: number;
  /** The service's clock minus this one's, in milliseconds, by the `Date` of the answer. */
  readonly clockSkewMs?: number;
}

/** Sends one request. Follows no redirect, accepts every status, and rejects when no complete answer comes. */
export type Send = (request: HttpRequest, signal: AbortSignal) => Promise<RawReply>;

/** The error of a sender that knows whether the request was sent. */
export class Unanswered extends Error {
  /** @param sent whether the service may have seen a part of the request */
  constructor(
    cause: Error,
    readonly sent: boolean,
  ) {
    super(cause.message, { cause });
  }
}

/** For the answers of all routes except the user list. */
export const SHORT_BYTES = 64 * 1024;
/** The error code of zlib, and of our own sender, for a body that is larger than `maxBytes`. */
export const TOO_LARGE = 'ERR_BUFFER_TOO_LARGE';
