/** A call to the service (service-interface.md, section 4), or of this package, as errors and events name it. */
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
 * What is known of the effect of a failed call: `not-sent` – the service cannot have seen it; `refused` – the
 * answer says that it was not done; `unknown` – it may or may not have been done.
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

/** Everything of this package that is thrown derives from this class and has a stable `code`. */
export abstract class DebateSpaceError extends Error {
  abstract readonly code: DebateSpaceErrorCode;

  constructor(message: string) {
    super(message);
    this.name = new.target.name;
  }
}

/** One problem of the options. No part shows a secret. */
export interface OptionProblem {
  /** Its path, such as `http.timeoutMs`. */
  readonly option: string;
  /** The rest of the sentence, with what was found. */
  readonly problem: string;
  readonly hint: string;
}

/** The options of `forRoot` or `forRootAsync` are missing or malformed. Stops the boot; lists every problem. */
export class DebateSpaceOptionsError extends DebateSpaceError {
  readonly code = 'ERR_DEBATE_SPACE_OPTIONS';

  constructor(readonly problems: readonly OptionProblem[]) {
    const lines = problems.map(({ option, problem, hint }) => `\n  - ${option} ${problem}; hint: ${hint}`);
    super(`Invalid DebateSpaceModule options:${lines.join('')}`);
  }
}

/**
 * The storage cannot be used. At boot it stops the app, and has a hint. Later the outcome of a change is unknown: it may
 * have been made.
 */
export class StorageError extends DebateSpaceError {
  readonly code = 'ERR_DEBATE_SPACE_STORAGE';

  /**
   * Whether the database did not answer, or was busy: the same call may succeed later without anybody changing anything. At
   * boot, the app then starts all the same.
   */
  readonly unreachable: boolean;
  /** Of `DebateSpaceErasures.request` and `requestMany`: the erasure that may have been stored all the same. */
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

/** The reference is not found, or it stands for another erasure. */
export class ErasureError extends DebateSpaceError {
  constructor(
    readonly code: 'ERR_DEBATE_SPACE_UNKNOWN_ERASURE' | 'ERR_DEBATE_SPACE_ERASURE_CONFLICT',
    message: string,
  ) {
    super(message);
  }
}

/**
 * `DebateSpaceService.orphans`: `findAccounts` found no account of the first users, which is more likely a wrong query.
 * Nothing was yielded. `allowNoMatch: true` takes it for the truth.
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

/** What is known of a failed call. */
export interface RequestErrorDetails {
  readonly operation: DebateSpaceOperation;
  /** HTTP status of the last answer; absent when there was none. */
  readonly status?: number;
  /** Whether the same call may succeed later without anybody changing anything. */
  readonly retryable: boolean;
  readonly outcome: DebateSpaceOutcome;
  /** How many requests were made, the failed one included. */
  readonly attempts: number;
  /** How long the service requests to wait (`Retry-After`), in milliseconds. */
  readonly retryAfterMs?: number;
  /**
   * Whether another attempt may follow. `immediately`: it needs no delay, because it is not a repetition; `too-late`: the
   * call has no time for a request. @internal
   */
  readonly repeat?: 'immediately' | 'later' | 'too-late';
  /** The system's error code, or `TIMEOUT`, when there was no whole answer. @internal */
  readonly reason?: string;
}

/** The details of one attempt, which is one request unless it says otherwise, and is not repeated unless it says so. @internal */
export type AttemptDetails = Omit<RequestErrorDetails, 'attempts' | 'retryable'> &
  Partial<Pick<RequestErrorDetails, 'attempts' | 'retryable'>>;

/**
 * A call to the service that failed. Holds no request, no response, no key, no token and no uid.
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

  /** The same error, as the call ends with it. @internal */
  endedWith(changes: Partial<RequestErrorDetails>): this {
    return Object.assign(this, changes);
  }
}

/** The value cannot be a uid (docs/getting-started.md#what-can-be-a-uid). Nothing was sent. */
export class InvalidUidError extends DebateSpaceRequestError {
  readonly code = 'ERR_DEBATE_SPACE_INVALID_UID';
}
/** An argument – a page, a filter, a format, a row of a list of uids – is not usable. Nothing was sent. */
export class InvalidArgumentError extends DebateSpaceRequestError {
  readonly code = 'ERR_DEBATE_SPACE_INVALID_ARGUMENT';
}
/** @internal */
export function invalidArgument(operation: DebateSpaceOperation, message: string): InvalidArgumentError {
  return new InvalidArgumentError(message, { operation, outcome: 'not-sent', attempts: 0 });
}
/** The API key, the secret key or the access token was not accepted. */
export class AuthenticationError extends DebateSpaceRequestError {
  readonly code = 'ERR_DEBATE_SPACE_AUTHENTICATION';
}
/** The credentials are right, and not allowed to do this (403). */
export class PermissionError extends DebateSpaceRequestError {
  readonly code = 'ERR_DEBATE_SPACE_PERMISSION';
}
/** The user is not found (404 or 410). */
export class UserNotFoundError extends DebateSpaceRequestError {
  readonly code = 'ERR_DEBATE_SPACE_USER_NOT_FOUND';
}
/**
 * The service answered every attempt with 429 (too many requests); or the rate limit leaves no slot in time: `outcome` is then `not-sent`, and `retryAfterMs` says when a slot can come.
 */
export class RateLimitedError extends DebateSpaceRequestError {
  readonly code = 'ERR_DEBATE_SPACE_RATE_LIMITED';
}
/** The service understood the request and will not do it: another 4xx, or a 2xx with `success: false` or an `error`. */
export class RefusedError extends DebateSpaceRequestError {
  readonly code = 'ERR_DEBATE_SPACE_REFUSED';
}
/** The service answered every attempt with a 5xx, 423, 425 or 499. */
export class UnavailableError extends DebateSpaceRequestError {
  readonly code = 'ERR_DEBATE_SPACE_UNAVAILABLE';
}
/** No connection, or it broke. The message has the system's error code, such as `ECONNREFUSED`. */
export class NetworkError extends DebateSpaceRequestError {
  readonly code = 'ERR_DEBATE_SPACE_NETWORK';
}
/** `http.timeoutMs` passed without a whole answer, or `http.totalTimeoutMs` over all attempts. */
export class TimeoutError extends DebateSpaceRequestError {
  readonly code = 'ERR_DEBATE_SPACE_TIMEOUT';
}
/**
 * An answer that is not of the interface: a web page, whatever the status, a redirect, no JSON where it is needed; or a user
 * list that cannot be read to its end.
 */
export class UnexpectedResponseError extends DebateSpaceRequestError {
  readonly code = 'ERR_DEBATE_SPACE_UNEXPECTED_RESPONSE';
}
/** `findUser` has read `maxPages` pages of the user list without the user, and the list continues. */
export class PageLimitError extends DebateSpaceRequestError {
  readonly code = 'ERR_DEBATE_SPACE_PAGE_LIMIT';
}
/** The caller's `signal` was aborted, or the app is shutting down. `name` is `AbortError`, as for `fetch`. */
export class AbortedError extends DebateSpaceRequestError {
  readonly code = 'ERR_DEBATE_SPACE_ABORTED';
  override readonly name = 'AbortError';
}
