import {
  AuthenticationError,
  PermissionError,
  RateLimitedError,
  RefusedError,
  TimeoutError,
  UnavailableError,
  UnexpectedResponseError,
  type DebateSpaceOperation,
  type DebateSpaceOutcome,
  type DebateSpaceRequestError,
  type RequestErrorDetails,
} from '../../errors.js';

const MAX_DEPTH = 100;

type ErrorClass = new (message: string, details: RequestErrorDetails) => DebateSpaceRequestError;

export interface FailureDetails extends Partial<Omit<RequestErrorDetails, 'operation' | 'attempts'>> {
  readonly outcome: DebateSpaceOutcome;
  /**
   * Whether another attempt may succeed. `immediately`: it will not be a repetition, so it needs no delay. `too-late`: the
   * call has no time for a request. @defaultValue `no`
   */
  readonly retry?: 'no' | 'later' | 'immediately' | 'too-late';
  /** The system's error code, when there was no whole answer. */
  readonly reason?: string;
  /** How many requests were made. @defaultValue 1 */
  readonly requests?: number;
}

/** Why one attempt failed. It becomes the error of the call when no other attempt follows. */
export class Failure extends Error {
  constructor(
    readonly error: ErrorClass,
    message: string,
    readonly details: FailureDetails,
  ) {
    super(message);
  }

  /** @param attempts of the whole call, whose outcome it is */
  asError(operation: DebateSpaceOperation, attempts: number, outcome: DebateSpaceOutcome): Error {
    const { retry = 'no', retryable = retry !== 'no', status, retryAfterMs } = this.details;
    return new this.error(this.message, { operation, attempts, outcome, status, retryable, retryAfterMs });
  }
}

interface Meaning {
  readonly error: ErrorClass;
  readonly text: string;
  readonly hint?: string;
  /** @defaultValue `refused` */
  readonly outcome?: DebateSpaceOutcome;
  /** @defaultValue `no` */
  readonly retry?: 'later';
}

export type StatusMeanings = Readonly<Partial<Record<number, Meaning>>>;

const UNKNOWN = { outcome: 'unknown', retry: 'later' } as const;

/** Section 7 of service-interface.md shows no error statuses: they have their meaning in RFC 9110. */
const STATUSES: StatusMeanings = {
  401: { error: AuthenticationError, text: 'the service did not accept the access token or the API key' },
  403: { error: PermissionError, text: 'the service does not allow this to this API key' },
  408: { error: TimeoutError, text: 'the service gave up waiting', ...UNKNOWN },
  425: { error: UnavailableError, text: 'the service is not ready for this', retry: 'later' },
  429: { error: RateLimitedError, text: 'the service asks for fewer requests', retry: 'later' },
};
const REDIRECT: Meaning = {
  error: UnexpectedResponseError,
  text: 'the service answered with a redirect',
  hint: ', which is never followed; check authUrl and baseUrl',
};
const REFUSED: Meaning = { error: RefusedError, text: 'the service refused the request' };
const UNAVAILABLE: Meaning = { error: UnavailableError, text: 'the service is not available', ...UNKNOWN };

/**
 * @param special what some statuses mean for this call
 * @throws {@link Failure} when the status is not 2xx
 */
export function assertSuccess({ status, retryAfterMs }: HttpReply, special: StatusMeanings = {}): void {
  if (status >= 200 && status < 300) return;
  const others = status < 400 ? REDIRECT : status < 500 ? REFUSED : UNAVAILABLE;
  const meaning = special[status] ?? STATUSES[status] ?? others;
  const { error, text, hint = '', outcome = 'refused', retry } = meaning;
  const message = `${text} (${status})${hint}`;
  throw new Failure(error, message, { outcome, retry, status, retryAfterMs: retry && retryAfterMs });
}

/** A 2xx with a body that is not of the interface. Repeating may help: such pages come from whatever stands between. */
export function unexpected({ status }: HttpReply, problem: string): Failure {
  const message = `the service answered ${status} and the body ${problem}`;
  return new Failure(UnexpectedResponseError, message, { ...UNKNOWN, status });
}

/**
 * The body of a 2xx as JSON; `undefined` when it is empty.
 * @throws {@link Failure} when it is none
 */
export function jsonBody(reply: HttpReply): unknown {
  if (reply.body.trim() === '') return undefined;
  let value: unknown;
  try {
    value = JSON.parse(reply.body);
  } catch {
    const isPage = isWebPage(reply);
    throw unexpected(reply, isPage ? 'is a web page; check authUrl and baseUrl' : 'is not whole JSON');
  }
  if (isTooDeep(value)) throw unexpected(reply, `is nested deeper than ${MAX_DEPTH} levels`);
  return value;
}

/**
 * Like {@link jsonBody}, of an answer that may say no in its body.
 * @throws {@link Failure} when it says `success: false`, or names an `error`
 */
export function acceptedBody(reply: HttpReply): unknown {
  const value = jsonBody(reply);
  const { success = true, error } = Object(value) as { success?: unknown; error?: unknown };
  const refusal = success === false ? 'success: false' : error ? 'an error' : undefined;
  if (refusal === undefined && success !== true) throw unexpected(reply, 'has no usable success');
  if (refusal === undefined) return value;
  const message = `the service answered ${reply.status} with ${refusal}`;
  throw new Failure(RefusedError, message, { outcome: 'refused', status: reply.status });
}

/** Why the body of a 2xx says that nothing was done. */
export type Contradiction = 'a web page' | 'success: false';

/** Of a route whose body the interface does not show: everything else means success. */
export function contradictionOf(reply: HttpReply): Contradiction | undefined {
  if (reply.status < 200 || reply.status >= 300) return undefined;
  if (isWebPage(reply)) return 'a web page';
  return saysNo(reply.body) ? 'success: false' : undefined;
}

function saysNo(body: string): boolean {
  if (!body.includes('success')) return false; // a body that is no JSON is the usual one, and costs an exception
  try {
    return (Object(JSON.parse(body)) as { success?: unknown }).success === false;
  } catch {
    return false;
  }
}

export function isWebPage(reply: HttpReply): boolean {
  return reply.body.trimStart().startsWith('<');
}

/** Code that walks through such a value, as `JSON.stringify` does, would end with a `RangeError`. */
function isTooDeep(value: unknown): boolean {
  let level = [value];
  for (let depth = 0; depth <= MAX_DEPTH && level.length > 0; depth += 1)
    level = level.flatMap((each): unknown[] => (typeof each === 'object' ? Object.values(each ?? {}) : []));
  return level.length > 0;
}

export interface HttpReply {
  readonly status: number;
  readonly body: string;
  /** Repeated headers are joined with commas (RFC 9110, section 5.3). @param name in lower case */
  header(name: string): string | undefined;
  /** What `Retry-After` says. */
  readonly retryAfterMs?: number;
  /** The service's clock minus this one's, in milliseconds, by the `Date` of the answer. */
  readonly clockSkewMs?: number;
}
