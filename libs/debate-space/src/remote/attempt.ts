import {
  AuthenticationError,
  NetworkError,
  PermissionError,
  RateLimitedError,
  RefusedError,
  TimeoutError,
  UnavailableError,
  UnexpectedResponseError,
  UserNotFoundError,
  type DebateSpaceOutcome,
  type DebateSpaceRequestError,
  type RequestErrorDetails,
} from '../errors.js';
import { retryAfterMs } from './backoff.js';
import type { HttpReply } from './transport.js';
import type { TransportFailure } from './transport-failure.js';

/** Why one attempt failed; the error that says so is made when no further attempt follows. */
export interface Failure {
  readonly error: new (message: string, details: RequestErrorDetails) => DebateSpaceRequestError;
  readonly message: string;
  readonly outcome: DebateSpaceOutcome;
  /** Whether a later attempt may succeed. `at-once`: it will not be a repetition, so it needs no delay. */
  readonly retry: 'no' | 'later' | 'at-once';
  /** How many requests were made for it; default: 1. */
  readonly requests?: number;
  /** What the error says of it, where that differs from `retry`: attempts of another call are used up already. */
  readonly retryable?: boolean;
  readonly status?: number;
  readonly retryAfterMs?: number;
}

const MAX_DEPTH = 100;

export type Attempt<T> = { readonly value: T } | { readonly failure: Failure };

export function transportFailure({ kind, reason, sent }: TransportFailure): Failure {
  const outcome = sent ? 'unknown' : 'not-sent';
  switch (kind) {
    case 'timeout':
      return { error: TimeoutError, message: 'no whole answer in time', outcome, retry: 'later' };
    case 'too-large':
      return {
        error: UnexpectedResponseError,
        message: 'the answer is larger than 10 MiB',
        outcome,
        retry: 'no',
      };
    case 'proxy':
      return {
        error: NetworkError,
        message:
          'no connection, the proxy of the environment is not a URL; hint: correct HTTPS_PROXY, HTTP_PROXY or ALL_PROXY, such as http://proxy.example.org:3128',
        outcome,
        retry: 'no',
      };
    default:
      return {
        error: NetworkError,
        message: `no connection, or it broke (${reason})`,
        outcome,
        retry: 'later',
      };
  }
}

/**
 * What a status other than 2xx means for a call. Section 7 shows no error statuses, so they are read by their meaning
 * in RFC 9110.
 * @returns `undefined` for 2xx
 */
export function statusFailure(reply: HttpReply): Failure | undefined {
  const { status } = reply;
  if (status >= 200 && status < 300) return undefined;
  const wait = retryAfterMs(reply.header('retry-after'), reply.header('date'));
  const refused = { status, outcome: 'refused', retry: 'no' } as const;
  if (status < 400) {
    const message = `the service answered with a redirect (${status}), which is never followed; check authUrl and baseUrl`;
    return { ...refused, error: UnexpectedResponseError, message };
  }
  if (status >= 500) {
    const message = `the service is not available (${status})`;
    return {
      status,
      error: UnavailableError,
      message,
      outcome: 'unknown',
      retry: 'later',
      retryAfterMs: wait,
    };
  }
  switch (status) {
    case 401:
      return {
        ...refused,
        error: AuthenticationError,
        message: 'the service did not accept the access token or the API key (401)',
      };
    case 403:
      return {
        ...refused,
        error: PermissionError,
        message: 'the service does not allow this to this API key (403)',
      };
    case 404:
      return {
        ...refused,
        error: UserNotFoundError,
        message: `the service knows no such user (404)${webPageHint(reply)}`,
      };
    case 408:
      return { ...refused, error: TimeoutError, message: 'the service gave up waiting (408)', outcome: 'unknown', retry: 'later', retryAfterMs: wait }; // prettier-ignore
    case 425:
      return {
        ...refused,
        error: UnavailableError,
        message: 'the service is not ready for this (425)',
        retry: 'later',
        retryAfterMs: wait,
      };
    case 429:
      return { ...refused, error: RateLimitedError, message: 'the service asks for fewer requests (429)', retry: 'later', retryAfterMs: wait }; // prettier-ignore
    default:
      return { ...refused, error: RefusedError, message: `the service refused the request (${status})` };
  }
}

/** The body of a 2xx as JSON. An empty one is `undefined`. */
export function jsonBody(reply: HttpReply): Attempt<unknown> {
  if (reply.body.trim() === '') return { value: undefined };
  try {
    const value: unknown = JSON.parse(reply.body);
    return isTooDeep(value) ? unexpected(reply, `is nested deeper than ${MAX_DEPTH} levels`) : { value };
  } catch {
    return unexpected(
      reply,
      isWebPage(reply) ? `is a web page; check authUrl and baseUrl` : 'is not whole JSON',
    );
  }
}

/** A 2xx with a body that is not of the interface. Repeating may help: such pages come from whatever stands between. */
export function unexpected(reply: HttpReply, problem: string): { readonly failure: Failure } {
  const message = `the service answered ${reply.status} and the body ${problem}`;
  return {
    failure: {
      error: UnexpectedResponseError,
      message,
      status: reply.status,
      outcome: 'unknown',
      retry: 'later',
    },
  };
}

/** Code that walks through such a value, as `JSON.stringify` does, would end with a `RangeError`. */
function isTooDeep(value: unknown): boolean {
  let level: unknown[] = [value];
  for (let depth = 0; depth <= MAX_DEPTH; depth += 1) {
    level = level.flatMap((each): unknown[] =>
      typeof each === 'object' && each !== null ? Object.values(each) : [],
    );
    if (level.length === 0) return false;
  }
  return true;
}

export function isWebPage(reply: HttpReply): boolean {
  return reply.body.trimStart().startsWith('<');
}

function webPageHint(reply: HttpReply): string {
  return isWebPage(reply) ? ', with a web page for an answer; if the user exists, check baseUrl' : '';
}
