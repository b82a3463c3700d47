import type { DebateSpaceOperation } from '../../errors.js';

/** What is sent to the service, and what comes back. */
export interface HttpRequest {
  /** As errors name it. */
  readonly operation: DebateSpaceOperation;
  readonly method: 'GET' | 'POST' | 'DELETE';
  readonly url: string;
  readonly headers: Readonly<Record<string, string>>;
  readonly body?: string;
  /** A longer answer is not read to its end. @defaultValue {@link SHORT_BYTES} */
  readonly maxBytes?: number;
}

/** An answer as it came. */
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
  /** What `Retry-After` says. */
  readonly retryAfterMs?: number;
  /** The service's clock minus this one's, in milliseconds, by the `Date` of the answer. */
  readonly clockSkewMs?: number;
}

/** Sends one request, follows no redirect, and takes every status. Rejects without a whole answer. */
export type Send = (request: HttpRequest, signal: AbortSignal) => Promise<RawReply>;

/** The error of a sender that knows whether the request was sent. */
export class Unanswered extends Error {
  /** @param sent whether the service can have seen any of the request */
  constructor(
    cause: Error,
    readonly sent: boolean,
  ) {
    super(cause.message, { cause });
  }
}

/** For the answers of every route but the user list. */
export const SHORT_BYTES = 64 * 1024;
/** The code of zlib and of our own sender for a body that is larger than `maxBytes`. */
export const TOO_LARGE = 'ERR_BUFFER_TOO_LARGE';
