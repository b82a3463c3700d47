import { setTimeout as sleep } from 'node:timers/promises';
import { AbortedError, TimeoutError, type DebateSpaceOperation, type DebateSpaceOutcome } from '../errors.js';
import type { Attempt, Failure } from './attempt.js';
import { fullJitter } from './backoff.js';
import { withLinkedSignal } from '../linked-signal.js';

export interface RetryPolicy {
  /** How many attempts, the first included. */
  readonly attempts: number;
  /** For all of them, in milliseconds from the first. */
  readonly deadlineMs: number;
}

export interface AttemptContext {
  /** Milliseconds until the deadline, from now. */
  readonly leftMs: () => number;
  /** Whether an earlier attempt of this call may have been carried out. */
  readonly unknownBefore: boolean;
}

const FIRST_DELAY_MS = 500;
const MOST_DELAY_MS = 10_000;

/**
 * Makes one call out of several attempts.
 * @param ready waits until an attempt may start, or its signal is aborted; what it waits before the first does not
 *   count for the deadline
 * @throws the error of the last attempt, with the outcome of all of them; `AbortedError` when the signal was aborted
 */
export async function retrying<R, T>(
  operation: DebateSpaceOperation,
  policy: RetryPolicy,
  signal: AbortSignal,
  ready: (signal: AbortSignal) => Promise<R>,
  once: (resource: R, context: AttemptContext) => Promise<Attempt<T>>,
): Promise<T> {
  let attempts = 0;
  let outcome: DebateSpaceOutcome = 'not-sent';
  let deadline: number | undefined;
  let last: Failure | undefined;
  try {
    for (;;) {
      const resource = await readyInTime();
      deadline ??= performance.now() + policy.deadlineMs;
      const attempt = await once(resource, { leftMs, unknownBefore: outcome === 'unknown' });
      if ('value' in attempt) return attempt.value;
      last = attempt.failure;
      attempts += last.requests ?? 1;
      outcome = worse(outcome, last.outcome);
      if (signal.aborted) break;
      if (last.retry === 'at-once') continue;
      if (last.retry === 'no' || attempts >= policy.attempts) throw errorOf(last);
      const delayMs = Math.max(fullJitter(attempts, FIRST_DELAY_MS, MOST_DELAY_MS), last.retryAfterMs ?? 0);
      if (delayMs >= leftMs()) throw errorOf(last);
      await sleep(delayMs, undefined, { signal });
    }
  } catch (error) {
    if (!signal.aborted) throw error;
  }
  throw new AbortedError('aborted', { operation, attempts, outcome, retryable: true });

  function leftMs(): number {
    return (deadline ?? Infinity) - performance.now();
  }

  async function readyInTime(): Promise<R> {
    return withLinkedSignal([signal], deadline === undefined ? undefined : leftMs(), async (time) => {
      try {
        return await ready(time.signal);
      } catch (error) {
        throw time.timedOut && last ? errorOf(last) : error;
      }
    });
  }

  function errorOf(failure: Failure): Error {
    const late = failure.retry === 'later' && attempts < policy.attempts && !(failure.error === TimeoutError);
    return new failure.error(
      late ? `${failure.message}; http.deadlineMs leaves no time to try again` : failure.message,
      {
        operation,
        attempts,
        outcome,
        status: failure.status,
        retryable: failure.retryable ?? failure.retry !== 'no',
        retryAfterMs: failure.retryAfterMs,
      },
    );
  }
}

function worse(one: DebateSpaceOutcome, other: DebateSpaceOutcome): DebateSpaceOutcome {
  if (one === 'unknown' || other === 'unknown') return 'unknown';
  return one === 'refused' ? one : other;
}
