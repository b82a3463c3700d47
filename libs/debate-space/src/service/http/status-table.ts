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

/**
 * Who speaks, and what it comes to. Only `refused` parks a logout or fails a call for good: it is the service's own word.
 *
 * - `done`: a 2xx that nothing contradicts.
 * - `denied`: a 2xx whose body says that this one was not done.
 * - `busy`: the service wants fewer requests.
 * - `away`: nobody serves at the moment.
 * - `elsewhere`: something else than the service answers at this address.
 */
export type Verdict = 'done' | 'refused' | 'denied' | 'busy' | 'away' | 'elsewhere';

/**
 * Why the body of an answer says that the service did not do it. `an unreadable body`: its coding, its charset, its type or
 * its JSON cannot be read.
 */
export type Contradiction = 'a web page' | 'an unreadable body' | 'success: false' | 'an error';

/** What the service says of a user, or of an address, that it does not have. */
export const NOT_FOUND: ReadonlySet<number> = new Set([404, 410]);

export type ErrorClass = new (message: string, details: AttemptDetails) => DebateSpaceRequestError;

/** What a status means, and the error of a call that ends with it. */
export interface Meaning {
  readonly verdict: Verdict;
  readonly error: ErrorClass;
  readonly text: string;
  readonly hint?: string;
  /** @defaultValue `refused` */
  readonly outcome?: DebateSpaceOutcome;
}

export type StatusMeanings = Readonly<Partial<Record<number, Meaning>>>;

const HINT = '; check authUrl and baseUrl';
const UNKNOWN = { outcome: 'unknown' } as const;
const away = (text: string): Meaning => ({ verdict: 'away', error: UnavailableError, text });
const elsewhere = (text: string, hint = HINT): Meaning => ({
  verdict: 'elsewhere',
  error: UnexpectedResponseError,
  text,
  hint,
});

const NOTHING_THERE = elsewhere('there is nothing at the address');

/** Section 7 of service-interface.md shows no error statuses: they have their meaning in RFC 9110. */
const STATUSES: StatusMeanings = {
  401: {
    verdict: 'refused',
    error: AuthenticationError,
    text: 'the service did not accept the access token or the API key',
  },
  403: {
    verdict: 'refused',
    error: PermissionError,
    text: 'the service does not allow this to this API key',
  },
  404: NOTHING_THERE,
  405: elsewhere('the address does not take such a request'),
  407: elsewhere('a proxy wants credentials'),
  408: { verdict: 'away', error: TimeoutError, text: 'the service gave up waiting', ...UNKNOWN },
  410: NOTHING_THERE,
  421: elsewhere('another server has received the request'),
  423: away('the service is locked'),
  425: away('the service is not ready for this'),
  429: { verdict: 'busy', error: RateLimitedError, text: 'the service requests fewer requests' },
  499: { ...away('the request was given up on its way'), ...UNKNOWN },
};
const DONE: Meaning = { verdict: 'done', error: UnexpectedResponseError, text: 'the service answered' };
const REDIRECT = elsewhere('the service answered with a redirect', `, which is never followed${HINT}`);
const REFUSED: Meaning = { verdict: 'refused', error: RefusedError, text: 'the service refused the request' };
const DENIED: Meaning = { ...REFUSED, verdict: 'denied' };
const UNAVAILABLE: Meaning = { ...away('the service is not available'), ...UNKNOWN };
const STRANGER = elsewhere('something else than the service answers');

/** The answer as far as it decides what to do. */
export interface Said {
  readonly status: number;
  readonly contradiction?: Contradiction | undefined;
}

/**
 * What an answer means: the one table for logouts, user calls and the token route.
 * @param special what some statuses mean for this call; a stranger's answer in their place means nothing of it
 */
export function meaningOf({ status, contradiction }: Said, special: StatusMeanings = {}): Meaning {
  const meaning = special[status] ?? STATUSES[status] ?? ofClass(status);
  const { verdict } = meaning;
  if (verdict === 'away' || verdict === 'busy' || meaning === REDIRECT) return meaning; // not now in any case
  // A page with a 2xx may be the service's own after all; with a 4xx, nobody has done anything.
  if (contradiction === 'a web page' || contradiction === 'an unreadable body')
    return verdict === 'done' ? { ...STRANGER, ...UNKNOWN } : STRANGER;
  return verdict === 'done' && contradiction !== undefined ? DENIED : meaning;
}

function ofClass(status: number): Meaning {
  if (status >= 500) return UNAVAILABLE;
  if (status >= 400) return REFUSED;
  return status >= 200 && status < 300 ? DONE : REDIRECT;
}

/** `503`, `403 with a web page`, `200 with success: false`: for messages, events and logs. */
export function statusText({ status, contradiction }: Said): string {
  return contradiction === undefined ? String(status) : `${status} with ${contradiction}`;
}
