import { setTimeout as sleep } from 'node:timers/promises';
import { fullJitter } from '../../jobs/circuit-breaker.js';
import {
  AbortedError,
  TimeoutError,
  type DebateSpaceOperation,
  type DebateSpaceOutcome,
} from '../../errors.js';
import { withCombinedSignal } from '../../async/combined-signal.js';
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
 * - `walk`: a loop over the users. Only its requests count for `totalTimeoutMs`, and not the waits before and between them,
 *   unless the service orders a pause that is longer.
 * - `job`: waits like `walk`, and has a schedule of its own. Only a request whose access token was refused is repeated.
 */
export type Priority = 'call' | 'walk' | 'job';

export interface AttemptContext {
  readonly signal: AbortSignal;
  /** Milliseconds until the end of the call, from now. */
  readonly leftMs: () => number;
  /** Does what is part of a request, until the end of the call. */
  readonly inTime: <T>(work: (limited: AbortSignal) => Promise<T>) => Promise<T>;
  /** Waits for what is no request, for as long as the caller can. */
  readonly wait: <T>(work: (limited: AbortSignal) => Promise<T>) => Promise<T>;
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
  once: (context: AttemptContext) => Promise<T>,
): Promise<T> {
  let attempts = 0;
  let outcome: DebateSpaceOutcome = 'not-sent';
  let end = performance.now() + totalTimeoutMs;
  let last: Failure | undefined;
  let delayMs = 0;
  for (;;) {
    try {
      if (delayMs > 0) await wait((limited) => sleep(delayMs, undefined, { signal: limited }));
      if (leftMs() <= 0) throw tooLate();
      return await once({ signal, leftMs, inTime, wait, unknownBefore: outcome === 'unknown' });
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

  function leftMs(): number {
    return end - performance.now();
  }

  function inTime<W>(work: (limited: AbortSignal) => Promise<W>): Promise<W> {
    return withCombinedSignal([signal], leftMs(), (combined) =>
      work(combined.signal).catch((error: unknown) => {
        throw combined.timedOut ? tooLate() : error;
      }),
    );
  }

  async function wait<W>(work: (limited: AbortSignal) => Promise<W>): Promise<W> {
    if (priority === 'call') return inTime(work);
    const start = performance.now();
    const result = await work(signal);
    end += performance.now() - start;
    return result;
  }
}

/** There is no time for a request. After an attempt, its failure says more than this one. */
function tooLate(): Failure {
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
