import { setTimeout as sleep } from 'node:timers/promises';
import { fullJitter } from '../../jobs/circuit-breaker.js';
import {
  AbortedError,
  TimeoutError,
  type DebateSpaceOperation,
  type DebateSpaceOutcome,
} from '../../errors.js';
import { Failure } from './failure.js';

export interface RetryPolicy {
  /** How many requests, the first included. */
  readonly maxAttempts: number;
  /** For all of them, in milliseconds. */
  readonly totalTimeoutMs: number;
}

/**
 * How long a call may take, and what is repeated:
 *
 * - `call`: somebody waits for it, for `totalTimeoutMs` at most.
 * - `walk`: a loop over the users. Waits for its slots as long as it takes, and for a pause that the service requests, but not
 *   for one that is longer than `totalTimeoutMs`.
 * - `job`: waits like `walk`, and has a schedule of its own. Only a request whose access token was refused is repeated.
 */
export type Priority = 'call' | 'walk' | 'job';

export interface Attempt {
  /** Milliseconds until the end of the call, from now; `Infinity` for walks and jobs. */
  readonly leftMs: () => number;
  /** Whether an earlier attempt of this call may have been carried out. */
  readonly unknownBefore: boolean;
}

const FIRST_DELAY_MS = 500;
const MAX_DELAY_MS = 10_000;

/**
 * Makes one call out of several attempts.
 * @param once one attempt; a {@link Failure} that it throws may be followed by another one
 * @throws the error of the last attempt, with the outcome of all of them; `AbortedError` when the signal was aborted
 */
export async function retry<T>(
  operation: DebateSpaceOperation,
  { maxAttempts, totalTimeoutMs }: RetryPolicy,
  priority: Priority,
  signal: AbortSignal,
  once: (attempt: Attempt) => Promise<T>,
): Promise<T> {
  const end = priority === 'call' ? performance.now() + totalTimeoutMs : Infinity;
  const leftMs = (): number => end - performance.now();
  let attempts = 0;
  let outcome: DebateSpaceOutcome = 'not-sent';
  let last: Failure | undefined;
  let delayMs = 0;
  for (;;) {
    try {
      if (delayMs > 0) await sleep(delayMs, undefined, { signal });
      if (leftMs() <= 0) throw tooLate();
      return await once({ leftMs, unknownBefore: outcome === 'unknown' });
    } catch (error) {
      if (error instanceof Failure) {
        attempts += error.details.requests ?? 1;
        outcome = worse(outcome, error.details.outcome);
      }
      if (signal.aborted)
        throw new AbortedError('aborted', { operation, attempts, outcome, retryable: true });
      if (!(error instanceof Failure)) throw error;
      const isTooLate = error.details.retry === 'too-late';
      const failure = isTooLate && last ? late(last, error.details.retryAfterMs) : error;
      const { retry: when, retryAfterMs = 0 } = failure.details;
      const mayRepeat = when === 'immediately' || (when === 'later' && priority !== 'job');
      if (!mayRepeat || attempts >= maxAttempts) throw failure.asError(operation, attempts, outcome);
      const backoffMs = Math.max(fullJitter(attempts, FIRST_DELAY_MS, MAX_DELAY_MS), retryAfterMs);
      delayMs = when === 'immediately' ? 0 : backoffMs;
      const isTooLong = priority === 'call' ? delayMs >= leftMs() : retryAfterMs > totalTimeoutMs;
      if (isTooLong) throw late(failure).asError(operation, attempts, outcome);
      last = failure;
    }
  }
}

/** There is no time for a request. After an attempt, its failure says more than this one. */
export function tooLate(): Failure {
  const message = 'no request could be made within http.totalTimeoutMs';
  return new Failure(TimeoutError, message, { outcome: 'not-sent', retry: 'too-late', requests: 0 });
}

/** @param retryAfterMs of what there was no time for */
function late({ error, message, details }: Failure, retryAfterMs?: number): Failure {
  const isTold = details.retry === 'later' && error !== TimeoutError;
  const told = isTold ? `${message}; http.totalTimeoutMs leaves no time to try again` : message;
  const waitMs = details.retryAfterMs ?? retryAfterMs;
  return new Failure(error, told, { ...details, retry: 'too-late', retryAfterMs: waitMs });
}

function worse(one: DebateSpaceOutcome, other: DebateSpaceOutcome): DebateSpaceOutcome {
  if (one === 'unknown' || other === 'unknown') return 'unknown';
  return one === 'refused' ? one : other;
}
