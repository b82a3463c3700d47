import { DebateSpaceRequestError, StorageError, type DebateSpaceError } from 'nestjs-debate-space';
import { erasurePath } from '../admin/erasure-path.js';
import type { Problem } from './problem.js';

const NOT_OUR_DAY =
  'The debate space does not answer as agreed. The operators of this app have to look into it.';
const LATER = 'The debate space is not available. Please try again later.';

/** Status and sentence by the error's `code`. The service's own faults are 502 or 503: the user did nothing wrong. */
const ANSWERS: Readonly<Record<string, readonly [status: number, detail: string]>> = {
  ERR_DEBATE_SPACE_USER_NOT_FOUND: [404, 'The debate space does not know you.'],
  ERR_DEBATE_SPACE_INVALID_UID: [400, 'The debate space cannot know a user of this name.'],
  ERR_DEBATE_SPACE_INVALID_ARGUMENT: [400, 'page and per_page must be whole numbers from 1.'],
  ERR_DEBATE_SPACE_RATE_LIMITED: [503, 'The debate space is busy. Please try again later.'],
  ERR_DEBATE_SPACE_AUTHENTICATION: [502, NOT_OUR_DAY],
  ERR_DEBATE_SPACE_PERMISSION: [502, NOT_OUR_DAY],
  ERR_DEBATE_SPACE_REFUSED: [502, NOT_OUR_DAY],
  ERR_DEBATE_SPACE_UNEXPECTED_RESPONSE: [502, NOT_OUR_DAY],
  ERR_DEBATE_SPACE_UNAVAILABLE: [503, LATER],
  ERR_DEBATE_SPACE_NETWORK: [503, LATER],
  ERR_DEBATE_SPACE_NO_ACCOUNTS: [409, 'None of the first users of the debate space has an account here.'],
  ERR_DEBATE_SPACE_PAGE_LIMIT: [502, NOT_OUR_DAY],
  ERR_DEBATE_SPACE_TIMEOUT: [504, 'The debate space took too long. Please try again later.'],
  ERR_DEBATE_SPACE_ABORTED: [503, 'This app is shutting down. Please try again later.'],
  ERR_DEBATE_SPACE_STORAGE: [
    503,
    'The storage of this app does not answer. It is unknown whether anything was stored. Please look again later.',
  ],
  ERR_DEBATE_SPACE_UNKNOWN_ERASURE: [404, 'There is no erasure of this reference.'],
  ERR_DEBATE_SPACE_ERASURE_CONFLICT: [409, 'This reference stands for something else already.'],
};

const DOWN = 'The debate space is unavailable';
const HEADINGS: Readonly<Record<number, string>> = { 502: DOWN, 503: DOWN, 504: DOWN };

/** The documented limit counts by the minute. */
const RATE_LIMIT_SECONDS = 60;
/** A reference of a user; those of administrators have no public receipt. */
const RANDOM = /^[\da-f]{8}-[\da-f]{4}-4/i;

export function debateSpaceProblem(error: DebateSpaceError): Problem {
  const { code } = error;
  const [status, answer] = ANSWERS[code] ?? [502, NOT_OUR_DAY];
  const detail = error instanceof StorageError && error.reference ? unknownOutcome(error.reference) : answer;
  const waitMs = error instanceof DebateSpaceRequestError ? error.retryAfterMs : undefined;
  const busy = code === 'ERR_DEBATE_SPACE_RATE_LIMITED' ? RATE_LIMIT_SECONDS : undefined;
  return {
    status,
    detail,
    code,
    heading: error instanceof DebateSpaceRequestError ? HEADINGS[status] : undefined,
    retryAfterSeconds: waitMs === undefined ? busy : Math.ceil(waitMs / 1000),
  };
}

/** The erasure may have been stored all the same: anyone who asked gets the reference, to look what became of it. */
function unknownOutcome(reference: string): string {
  const path = RANDOM.test(reference) ? `/receipts/${reference}` : erasurePath(reference);
  return `The storage of this app does not answer. It is unknown whether your request was stored. Its reference is ${reference}. Look at ${path} later, or repeat your request: nobody is erased twice.`;
}
