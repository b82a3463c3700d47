import { setTimeout as sleep } from 'node:timers/promises';
import { fullJitter } from '../../jobs/circuit-breaker.js';
import {
  AbortedError,
  DebateSpaceRequestError,
  TimeoutError,
  type DebateSpaceOperation,
  type DebateSpaceOutcome,
} from '../../errors.js';

export interface RetryPolicy {
  /** How many requests, including the first. */
  readonly maxAttempts: number;
  /** For all requests together, in milliseconds. */
  readonly totalTimeoutMs: number;
}

/**
 * How long a call may take, and what it repeats:
 *
 * - `call`: the host waits for it, `totalTimeoutMs` at most.
 * - `walk`: a loop over the users. Waits for its slots without a limit, and for a pause that the service requests unless it is
 *   longer than `totalTimeoutMs`.
 * - `job`: waits like `walk`. Repeats only a request whose access token was refused, because the job has its own schedule.
 */
export type Priority = 'call' | 'walk' | 'job';

export interface Attempt {
  /** Milliseconds until the end of the call, from now; `Infinity` for walks and jobs. */
  readonly leftMs: () => number;
  /** Whether an earlier attempt of this call may have had an effect. */
  readonly unknownBefore: boolean;
}

const FIRST_DELAY_MS = 500;
const MAX_DELAY_MS = 10_000;

/**
 * Makes one call out of several attempts. Logouts do not use it: their attempts are jobs, with `logout/delivery-policy.ts`.
 * @param once one attempt; the `repeat` of a `DebateSpaceRequestError` that it throws says whether another one may follow
 * @throws the error of the last attempt, with the outcome of all attempts; `AbortedError` when the signal was aborted
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
  let last: DebateSpaceRequestError | undefined;
  let delayMs = 0;
  for (;;) {
    try {
      signal.throwIfAborted();
      if (delayMs > 0) await sleep(delayMs, undefined, { signal });
      if (leftMs() <= 0) throw tooLate(operation);
      return await once({ leftMs, unknownBefore: outcome === 'unknown' });
    } catch (error) {
      const isOfRequest = error instanceof DebateSpaceRequestError;
      if (isOfRequest) {
        attempts += error.attempts;
        outcome = worse(outcome, error.outcome);
      }
      if (signal.aborted)
        throw new AbortedError('aborted', { operation, attempts, outcome, retryable: true });
      if (!isOfRequest) throw error;
      const failed = error.repeat === 'too-late' && last ? late(last, error.retryAfterMs) : error;
      const { repeat, retryAfterMs = 0 } = failed;
      const mayRepeat = repeat === 'immediately' || (repeat === 'later' && priority !== 'job');
      if (!mayRepeat || attempts >= maxAttempts) throw failed.endedWith({ attempts, outcome });
      const backoffMs = Math.max(fullJitter(attempts, FIRST_DELAY_MS, MAX_DELAY_MS), retryAfterMs);
      delayMs = repeat === 'immediately' ? 0 : backoffMs;
      const isTooLong = priority === 'call' ? delayMs >= leftMs() : retryAfterMs > totalTimeoutMs;
      if (isTooLong) throw late(failed).endedWith({ attempts, outcome });
      last = failed;
    }
  }
}

/** No time is left for a request. If an earlier attempt failed, `retry` reports that failure instead. */
export function tooLate(operation: DebateSpaceOperation): TimeoutError {
  const message = 'no request could be made within http.totalTimeoutMs';
  return new TimeoutError(message, { operation, outcome: 'not-sent', attempts: 0, repeat: 'too-late' });
}

/** @param retryAfterMs when the attempt that had no time could have begun */
function late(error: DebateSpaceRequestError, retryAfterMs?: number): DebateSpaceRequestError {
  if (error.repeat === 'later' && !(error instanceof TimeoutError))
    error.message += '; http.totalTimeoutMs leaves no time to try again';
  return error.endedWith({ repeat: 'too-late', retryAfterMs: error.retryAfterMs ?? retryAfterMs });
}

function worse(one: DebateSpaceOutcome, other: DebateSpaceOutcome): DebateSpaceOutcome {
  if (one === 'unknown' || other === 'unknown') return 'unknown';
  return one === 'refused' ? one : other;
}
