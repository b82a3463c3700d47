/** An operation in errors and events: a call to the service (service-interface.md, section 4), or one of this package. */
export type DebateSpaceOperation =
  | 'token'
  | 'anonymizeUser'
  | 'deleteUser'
  | 'listUsers'
  | 'findUser'
  | 'orphans'
  | 'requestErasure'
  | 'logoutUser'
  | 'history'
  | 'drain'
  | 'parked';

/**
 * What a failed call may have done:
 *
 * - `not-sent`: nothing, because the service has not seen it.
 * - `refused`: nothing, because the service refused it.
 * - `unknown`: the service may have done it.
 */
export type DebateSpaceOutcome = 'not-sent' | 'refused' | 'unknown';

/** The stable `code` of an error of this package; docs/troubleshooting.md has an entry for each. */
export type DebateSpaceErrorCode =
  | 'ERR_DEBATE_SPACE_OPTIONS'
  | 'ERR_DEBATE_SPACE_INVALID_UID'
  | 'ERR_DEBATE_SPACE_INVALID_ARGUMENT'
  | 'ERR_DEBATE_SPACE_AUTHENTICATION'
  | 'ERR_DEBATE_SPACE_PERMISSION'
  | 'ERR_DEBATE_SPACE_USER_NOT_FOUND'
  | 'ERR_DEBATE_SPACE_RATE_LIMITED'
  | 'ERR_DEBATE_SPACE_REFUSED'
  | 'ERR_DEBATE_SPACE_UNAVAILABLE'
  | 'ERR_DEBATE_SPACE_NETWORK'
  | 'ERR_DEBATE_SPACE_TIMEOUT'
  | 'ERR_DEBATE_SPACE_UNEXPECTED_RESPONSE'
  | 'ERR_DEBATE_SPACE_PAGE_LIMIT'
  | 'ERR_DEBATE_SPACE_NO_ACCOUNTS'
  | 'ERR_DEBATE_SPACE_ABORTED'
  | 'ERR_DEBATE_SPACE_STORAGE'
  | 'ERR_DEBATE_SPACE_UNKNOWN_ERASURE'
  | 'ERR_DEBATE_SPACE_ERASURE_CONFLICT';

/**
 * The base class of all errors of this package. Each has a stable `code`.
 *
 * @example
 * ```ts
 * if (error instanceof DebateSpaceError && error.code === 'ERR_DEBATE_SPACE_STORAGE') return 'try again later';
 * ```
 */
export abstract class DebateSpaceError extends Error {
  abstract readonly code: DebateSpaceErrorCode;

  constructor(message: string) {
    super(message);
    this.name = new.target.name;
  }
}

/** One problem of the options. It never shows a secret. */
export interface OptionProblem {
  /** The path of the option, such as `http.timeoutMs`. */
  readonly option: string;
  /** The rest of the sentence that begins with the option. */
  readonly problem: string;
  /** How to fix it. */
  readonly hint: string;
}

/** Options of `forRoot` or `forRootAsync` are missing or malformed. Stops the boot, and lists every problem. */
export class DebateSpaceOptionsError extends DebateSpaceError {
  readonly code = 'ERR_DEBATE_SPACE_OPTIONS';

  constructor(readonly problems: readonly OptionProblem[]) {
    const lines = problems.map(({ option, problem, hint }) => `\n  - ${option} ${problem}; hint: ${hint}`);
    super(`Invalid DebateSpaceModule options:${lines.join('')}`);
  }
}

/**
 * The storage failed. At boot, it stops the app and has a hint. Later, a change that failed with it may have been stored all
 * the same.
 */
export class StorageError extends DebateSpaceError {
  readonly code = 'ERR_DEBATE_SPACE_STORAGE';

  /**
   * Whether the database did not answer, or was busy: the same call may succeed later without any change. At boot, such an
   * error does not stop the app.
   */
  readonly unreachable: boolean;
  /** After `DebateSpaceErasures.request` or `requestMany`: the reference of the erasure that may have been stored. */
  readonly reference?: string;

  /** @param hint how to fix it */
  constructor(
    readonly problem: string,
    readonly hint?: string,
    { unreachable = false, reference }: { readonly unreachable?: boolean; readonly reference?: string } = {},
  ) {
    super(hint === undefined ? problem : `${problem}; hint: ${hint}`);
    this.unreachable = unreachable;
    this.reference = reference;
  }
}

/**
 * The reference of an erasure is not found, or it belongs to another erasure.
 *
 * @example
 * ```ts
 * await erasures.status('GDPR-7').catch((error) => {
 *   if (error instanceof ErasureError) throw new NotFoundException(error.message);
 *   throw error;
 * });
 * ```
 */
export class ErasureError extends DebateSpaceError {
  constructor(
    readonly code: 'ERR_DEBATE_SPACE_UNKNOWN_ERASURE' | 'ERR_DEBATE_SPACE_ERASURE_CONFLICT',
    message: string,
  ) {
    super(message);
  }
}

/**
 * `DebateSpaceService.orphans`: `findAccounts` found no account for any of the first users, which most likely means that its
 * query is wrong. No user was yielded. `allowNoMatch: true` accepts such an answer.
 */
export class NoAccountsError extends DebateSpaceError {
  readonly code = 'ERR_DEBATE_SPACE_NO_ACCOUNTS';

  /** @internal */
  constructor(users: number) {
    super(
      `orphans: findAccounts found no account for any of the first ${users} users, so all of them would be orphans; ` +
        'hint: check which column and which database it reads; if there really is no account, give allowNoMatch: true',
    );
  }
}

/** The properties of a failed call. */
export interface RequestErrorDetails {
  readonly operation: DebateSpaceOperation;
  /** HTTP status of the last answer; absent when no answer came. */
  readonly status?: number;
  /** Whether the same call may succeed later without any change. */
  readonly retryable: boolean;
  readonly outcome: DebateSpaceOutcome;
  /** How many requests were sent, including the failed one. */
  readonly attempts: number;
  /** How long to wait, in milliseconds: `Retry-After`, an hour at most, or the time until the next slot of the rate limit. */
  readonly retryAfterMs?: number;
  /**
   * Whether another attempt may follow. `immediately`: without a delay, because its access token is new; `too-late`: no time
   * is left for a request. @internal
   */
  readonly repeat?: 'immediately' | 'later' | 'too-late';
  /** The system's error code, or `TIMEOUT`, when no complete answer came. @internal */
  readonly reason?: string;
}

/** The details of one attempt. By default it is one request, and cannot be retried. @internal */
export type AttemptDetails = Omit<RequestErrorDetails, 'attempts' | 'retryable'> &
  Partial<Pick<RequestErrorDetails, 'attempts' | 'retryable'>>;

/**
 * A call to the service failed. The error holds no request, response, key, token or uid.
 *
 * @example
 * ```ts
 * await debateSpace.deleteUser(uid).catch((error) => {
 *   if (error instanceof DebateSpaceRequestError && error.retryable) return queue.add({ uid }); // or use DebateSpaceErasures
 *   throw error;
 * });
 * ```
 */
export abstract class DebateSpaceRequestError extends DebateSpaceError implements RequestErrorDetails {
  declare readonly operation: DebateSpaceOperation;
  declare readonly status?: number;
  declare readonly retryable: boolean;
  declare readonly outcome: DebateSpaceOutcome;
  declare readonly attempts: number;
  declare readonly retryAfterMs?: number;
  /** @internal */
  declare readonly repeat?: RequestErrorDetails['repeat'];
  /** @internal */
  declare readonly reason?: string;

  constructor(message: string, details: AttemptDetails) {
    super(`${details.operation}: ${message}`);
    Object.assign(this, { attempts: 1, retryable: details.repeat !== undefined, ...details });
  }

  /** Sets the details of the whole call. @internal */
  endedWith(changes: Partial<RequestErrorDetails>): this {
    return Object.assign(this, changes);
  }
}

/** The value cannot be a uid (docs/getting-started.md#what-can-be-a-uid). Nothing was sent. */
export class InvalidUidError extends DebateSpaceRequestError {
  readonly code = 'ERR_DEBATE_SPACE_INVALID_UID';
}
/** An argument is invalid, such as a page, a filter, a format or a row of a list of uids. Nothing was sent. */
export class InvalidArgumentError extends DebateSpaceRequestError {
  readonly code = 'ERR_DEBATE_SPACE_INVALID_ARGUMENT';
}
/** @internal */
export function invalidArgument(operation: DebateSpaceOperation, message: string): InvalidArgumentError {
  return new InvalidArgumentError(message, { operation, outcome: 'not-sent', attempts: 0 });
}
/** The service did not accept the API key, the secret key or the access token (401; on the token route also 400 and 403). */
export class AuthenticationError extends DebateSpaceRequestError {
  readonly code = 'ERR_DEBATE_SPACE_AUTHENTICATION';
}
/** The credentials are right, but lack the permission (403). */
export class PermissionError extends DebateSpaceRequestError {
  readonly code = 'ERR_DEBATE_SPACE_PERMISSION';
}
/** The service does not find the user (404 or 410). */
export class UserNotFoundError extends DebateSpaceRequestError {
  readonly code = 'ERR_DEBATE_SPACE_USER_NOT_FOUND';
}
/**
 * The service answered every attempt with 429 (too many requests), or `http.rateLimit` leaves no slot in time: then `outcome` is
 * `not-sent`, and `retryAfterMs` has the time until the next slot.
 */
export class RateLimitedError extends DebateSpaceRequestError {
  readonly code = 'ERR_DEBATE_SPACE_RATE_LIMITED';
}
/** The service refused the request: another 4xx, or a 2xx with `success: false` or an `error`. */
export class RefusedError extends DebateSpaceRequestError {
  readonly code = 'ERR_DEBATE_SPACE_REFUSED';
}
/** The service answered every attempt with a 5xx, 423, 425 or 499. */
export class UnavailableError extends DebateSpaceRequestError {
  readonly code = 'ERR_DEBATE_SPACE_UNAVAILABLE';
}
/** The connection failed or broke. The message has the system's error code, such as `ECONNREFUSED`. */
export class NetworkError extends DebateSpaceRequestError {
  readonly code = 'ERR_DEBATE_SPACE_NETWORK';
}
/** No complete answer came within `http.timeoutMs`, or within `http.totalTimeoutMs` over all attempts. */
export class TimeoutError extends DebateSpaceRequestError {
  readonly code = 'ERR_DEBATE_SPACE_TIMEOUT';
}
/**
 * The answer does not belong to the interface: a web page with any status, a redirect, or a body that must be JSON and is not;
 * or the user list cannot be read to its end.
 */
export class UnexpectedResponseError extends DebateSpaceRequestError {
  readonly code = 'ERR_DEBATE_SPACE_UNEXPECTED_RESPONSE';
}
/** `findUser` has read `maxPages` pages of the user list without finding the user, and the list continues. */
export class PageLimitError extends DebateSpaceRequestError {
  readonly code = 'ERR_DEBATE_SPACE_PAGE_LIMIT';
}
/** The caller's `signal` was aborted, or the app is shutting down. `name` is `AbortError`, as for `fetch`. */
export class AbortedError extends DebateSpaceRequestError {
  readonly code = 'ERR_DEBATE_SPACE_ABORTED';
  override readonly name = 'AbortError';
}
