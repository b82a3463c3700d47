import {
  AuthenticationError,
  PermissionError,
  RateLimitedError,
  RefusedError,
  TimeoutError,
  UnavailableError,
  UnexpectedResponseError,
  type DebateSpaceOutcome,
  type DebateSpaceRequestError,
  type AttemptDetails,
} from '../../errors.js';
import { parsed, strangerIn, type Contradiction } from './body.js';
import type { HttpReply } from './exchange.js';

/**
 * Who answers, and with which result. Only `refused` parks a logout or fails a call for good, because only then the service
 * itself has refused it.
 *
 * - `done`: a 2xx that the body does not contradict.
 * - `denied`: a 2xx whose body says that the service did not do it.
 * - `busy`: the service wants fewer requests.
 * - `away`: the service is not available at the moment.
 * - `elsewhere`: something else than the service answers at this address.
 */
export type AnswerKind = 'done' | 'refused' | 'denied' | 'busy' | 'away' | 'elsewhere';

/** The statuses for a user, or an address, that the service does not have. */
export const NOT_FOUND: ReadonlySet<number> = new Set([404, 410]);

export type ErrorClass = new (message: string, details: AttemptDetails) => DebateSpaceRequestError;

/** What a status means, and the error of a call whose last answer has it. */
export interface Meaning {
  readonly kind: AnswerKind;
  readonly error: ErrorClass;
  readonly text: string;
  readonly hint?: string;
  /** @defaultValue `refused` */
  readonly outcome?: DebateSpaceOutcome;
}

export type StatusMeanings = Readonly<Partial<Record<number, Meaning>>>;

const HINT = 'check authUrl and baseUrl';
const UNKNOWN = { outcome: 'unknown' } as const;
const away = (text: string): Meaning => ({ kind: 'away', error: UnavailableError, text });
const elsewhere = (text: string, hint = HINT): Meaning => ({
  kind: 'elsewhere',
  error: UnexpectedResponseError,
  text,
  hint,
});

const NOTHING_THERE = elsewhere('there is nothing at the address');

/** Section 7 of service-interface.md shows no error statuses, so they mean what RFC 9110 says. */
const STATUSES: StatusMeanings = {
  401: {
    kind: 'refused',
    error: AuthenticationError,
    text: 'the service did not accept the access token or the API key',
  },
  403: {
    kind: 'refused',
    error: PermissionError,
    text: 'this API key does not have the permission for it',
  },
  404: NOTHING_THERE,
  405: elsewhere('the address does not take such a request'),
  407: elsewhere('a proxy wants credentials'),
  408: { kind: 'away', error: TimeoutError, text: 'the service gave up waiting', ...UNKNOWN },
  410: NOTHING_THERE,
  421: elsewhere('another server has received the request'),
  423: away('the service is locked'),
  425: away('the service is not ready for this'),
  429: { kind: 'busy', error: RateLimitedError, text: 'the service requests fewer requests' },
  499: { ...away('a proxy gave up waiting for the service'), ...UNKNOWN },
};
const DONE: Meaning = { kind: 'done', error: UnexpectedResponseError, text: 'the service answered' };
const REDIRECT = elsewhere('the service answered with a redirect, which is never followed');
const REFUSED: Meaning = { kind: 'refused', error: RefusedError, text: 'the service refused the request' };
const DENIED: Meaning = { ...REFUSED, kind: 'denied' };
const UNAVAILABLE: Meaning = { ...away('the service is not available'), ...UNKNOWN };
const STRANGER = elsewhere('something else than the service answers');

/** The part of an answer that decides what follows. */
export interface Answered {
  readonly status: number;
  readonly contradiction?: Contradiction | undefined;
}

/**
 * What an answer means: the one table for logouts, user calls and the token route.
 * @param special what some statuses mean for this call, if the service itself answers
 */
export function meaningOf({ status, contradiction }: Answered, special: StatusMeanings = {}): Meaning {
  const meaning = special[status] ?? STATUSES[status] ?? ofClass(status);
  const { kind } = meaning;
  if (kind === 'away' || kind === 'busy' || meaning === REDIRECT) return meaning; // whoever answers: try again later
  // The service itself may have sent a web page with a 2xx, so the outcome is unknown. With a 4xx, nothing was done.
  if (contradiction === 'a web page' || contradiction === 'an unreadable body')
    return kind === 'done' ? { ...STRANGER, ...UNKNOWN } : STRANGER;
  return kind === 'done' && contradiction !== undefined ? DENIED : meaning;
}

function ofClass(status: number): Meaning {
  if (status >= 500) return UNAVAILABLE;
  if (status >= 400) return REFUSED;
  return status >= 200 && status < 300 ? DONE : REDIRECT;
}

/** Such as `503`, `403 with a web page` or `200 with success: false`, for messages, events and logs. */
export function statusText({ status, contradiction }: Answered): string {
  return contradiction === undefined ? String(status) : `${status} with ${contradiction}`;
}

/**
 * Throws unless an answer means `done`.
 * @param special what some statuses mean for this call
 * @param contradiction by default only whether somebody else than the service answers
 * @throws `DebateSpaceRequestError`; the call may be repeated unless the service itself refused it
 */
export function assertSuccess(
  reply: HttpReply,
  special: StatusMeanings = {},
  contradiction: Contradiction | undefined = strangerIn(reply),
): void {
  const { operation, status, retryAfterMs } = reply;
  const answered = { status, contradiction };
  const { kind, error: ErrorClass, text, hint, outcome = 'refused' } = meaningOf(answered, special);
  if (kind === 'done') return;
  const later = { repeat: 'later', retryAfterMs } as const;
  const isRefused = kind === 'refused' || kind === 'denied';
  const details = { operation, outcome, status, ...(!isRefused && later) };
  const problem = `${text} (${statusText(answered)})`;
  throw new ErrorClass(hint === undefined ? problem : `${problem}; hint: ${hint}`, details);
}

/** The error of a 2xx that the interface does not have. The call may be repeated: a proxy may have sent the answer. */
export function unexpected({ operation, status }: HttpReply, problem: string): DebateSpaceRequestError {
  const message = `the service answered ${status}, ${problem}`;
  return new UnexpectedResponseError(message, { operation, outcome: 'unknown', status, repeat: 'later' });
}

/**
 * Parses the body of an answer that must be JSON; `undefined` when it is empty.
 * @throws {@link UnexpectedResponseError} when it is not JSON
 */
export function jsonBody(reply: HttpReply): unknown {
  const value = parsed(reply.body);
  if (value === undefined && reply.body?.trim() !== '')
    throw unexpected(reply, 'and the body is not whole JSON');
  return value;
}
