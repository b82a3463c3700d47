import { DebateSpaceRequestError, type DebateSpaceErrorCode } from '../errors.js';
import { causeOf, type DeliveryAnswer } from '../logout/delivery-policy.js';
import { fullJitter, MAX_RETRY_AFTER_MS } from '../remote/backoff.js';
import type { ErasureClaim, Setback } from './erasure-claim.js';

/** An attempt that did not end the erasure. */
export interface FailedAttempt {
  readonly end?: undefined;
  readonly setback: Setback;
  /** What it says of all the others: the service wants fewer requests, or it is away, or the keys are wrong. */
  readonly others: 'unaffected' | 'slower' | 'held-up';
  /** Nothing failed: the app shuts down, or somebody paused or canceled the erasure. */
  readonly brokenOff: boolean;
  /** Until the next attempt, in milliseconds. */
  readonly delayMs: number;
  readonly hint: string;
}

const MIN_DELAY_MS = 100;
const MINUTE_MS = 60_000;

/** A slot of the rate limit that did not come in time, or a uid of an older version, says nothing of the service. */
const OTHERS: Partial<Record<DebateSpaceErrorCode, FailedAttempt['others']>> = {
  ERR_DEBATE_SPACE_RATE_LIMITED: 'slower',
  ERR_DEBATE_SPACE_ABORTED: 'unaffected',
  ERR_DEBATE_SPACE_INVALID_UID: 'unaffected',
};

/** Nothing was sent, and it concerns this erasure only. */
export function failed(claim: ErasureClaim, cause: string, hint: string): FailedAttempt {
  return {
    setback: notSent(claim, cause),
    others: 'unaffected',
    brokenOff: false,
    delayMs: delay(claim),
    hint,
  };
}

export function brokenOff(claim: ErasureClaim): FailedAttempt {
  return { ...failed(claim, 'broken off', ''), brokenOff: true, delayMs: 0 };
}

export function noSlot(claim: ErasureClaim, retryAfterMs: number): FailedAttempt {
  const hint = 'raise http.rateLimit if the service permits more requests';
  return { ...failed(claim, 'no slot of the rate limit', hint), others: 'slower', delayMs: retryAfterMs };
}

/** A 404 of something that is not the service. */
export function serviceMissing(claim: ErasureClaim): FailedAttempt {
  const hint = 'the address answers 404 to everything, and is not the service; check baseUrl';
  return {
    ...failed(claim, '404', hint),
    setback: { ...notSent(claim, '404'), sent: true },
    others: 'held-up',
  };
}

/** The service may take the logout later; the erasure waits for that. */
export function afterLogout(claim: ErasureClaim, answer: DeliveryAnswer, rejections: number): FailedAttempt {
  const { local = false, status, retryAfterMs = 0 } = answer;
  const hint = 'see that the service is up, and run `npx debate-space doctor`';
  return {
    ...failed(claim, `logout: ${causeOf(answer)}`, hint),
    setback: { ...notSent(claim, `logout: ${causeOf(answer)}`), rejections },
    others: local || status === 400 ? 'unaffected' : status === 429 ? 'slower' : 'held-up',
    delayMs: Math.max(delay(claim), Math.min(retryAfterMs, MAX_RETRY_AFTER_MS)),
  };
}

/** The request for the erasure failed, or the one for its access token. */
export function afterError(claim: ErasureClaim, error: unknown, isClosing: boolean): FailedAttempt {
  if (!(error instanceof DebateSpaceRequestError)) {
    const cause = error instanceof Error ? error.name : typeof error;
    const setback = { ...notSent(claim, cause), unknown: true, sent: true };
    return { ...failed(claim, cause, 'an error of this plugin'), setback };
  }
  const { outcome, status, code, retryAfterMs = 0 } = error;
  const cause = String(status ?? code);
  const setback = { ...notSent(claim, cause), unknown: outcome === 'unknown', sent: outcome !== 'not-sent' };
  if (isClosing && code === 'ERR_DEBATE_SPACE_ABORTED') return { ...brokenOff(claim), setback };
  const refusedAlone = code === 'ERR_DEBATE_SPACE_REFUSED';
  const waitMs = refusedAlone ? delayOfRefused(claim) : delay(claim);
  const hint = refusedAlone ? 'the service refuses to erase this user; ask its operator' : error.message.replace(/^\w+: /, ''); // prettier-ignore
  return {
    ...failed(claim, cause, hint),
    setback,
    others: refusedAlone ? 'unaffected' : (OTHERS[code] ?? 'held-up'),
    delayMs: Math.max(waitMs, Math.min(retryAfterMs, MAX_RETRY_AFTER_MS)),
  };
}

function notSent({ rejections }: ErasureClaim, cause: string): Setback {
  return { cause, rejections, unknown: false, sent: false };
}

/** Never so short that a failure on this side becomes a loop. */
function delay({ failures }: ErasureClaim): number {
  return Math.max(MIN_DELAY_MS, fullJitter(failures + 1, 1_000, 5 * MINUTE_MS));
}

/** Repeating alone hardly helps: somebody has to look at it. */
function delayOfRefused({ failures }: ErasureClaim): number {
  return fullJitter(failures + 1, MINUTE_MS, 6 * 60 * MINUTE_MS);
}
