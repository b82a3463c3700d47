import { setTimeout as sleep } from 'node:timers/promises';
import { AbortedError, TimeoutError, type DebateSpaceOperation, type DebateSpaceOutcome } from '../errors.js';
import type { Attempt, Failure } from './attempt.js';
import { fullJitter } from './backoff.js';
import { withLinkedSignal } from '../linked-signal.js';

export interface RetryPolicy {
  /** How many requests, the first included. */
  readonly maxAttempts: number;
  /** For all of them, in milliseconds. */
  readonly totalTimeoutMs: number;
  /** For one of them, in milliseconds. Default: `totalTimeoutMs`. */
  readonly timeoutMs?: number;
  /**
   * Whether only a request whose access token was refused is repeated: for jobs, which have a schedule of their own.
   */
  readonly onlyRefusedTokens?: boolean;
}

export interface AttemptContext {
  /** Milliseconds until the end of the call, from now. */
  readonly leftMs: () => number;
  /** Whether an earlier attempt of this call may have been carried out. */
  readonly unknownBefore: boolean;
}

const FIRST_DELAY_MS = 500;
const MAX_DELAY_MS = 10_000;

const NOT_READY: Failure = {
  error: TimeoutError,
  message: 'no request could be made within http.totalTimeoutMs',
  outcome: 'not-sent',
  retry: 'no',
  retryable: true,
};

/**
 * Makes one call out of several attempts.
 * @param isPatient whether only the requests count for `totalTimeoutMs`, and not the waits before and between them
 * @param ready waits for `withinMs` at most until an attempt may start, or its signal is aborted; a failure ends the call
 * @throws the error of the last attempt, with the outcome of all of them; `AbortedError` when the signal was aborted
 */
export async function retry<R, T>(
  operation: DebateSpaceOperation,
  policy: RetryPolicy,
  isPatient: boolean,
  signal: AbortSignal,
  ready: (signal: AbortSignal, withinMs: number) => Promise<Attempt<R>>,
  once: (resource: R, context: AttemptContext) => Promise<Attempt<T>>,
): Promise<T> {
  const { totalTimeoutMs, timeoutMs = totalTimeoutMs } = policy;
  // A request that starts just before the end of the call is cut off, and nobody knows whether it was carried out.
  const reservedMs = Math.min(timeoutMs, totalTimeoutMs / 2);
  let attempts = 0;
  let outcome: DebateSpaceOutcome = 'not-sent';
  let end = performance.now() + totalTimeoutMs;
  let last: Failure | undefined;
  try {
    for (;;) {
      const resource = await waitFor(readyInTime);
      if ('failure' in resource) throw notReady(resource.failure);
      const attempt = await once(resource.value, { leftMs, unknownBefore: outcome === 'unknown' });
      if ('value' in attempt) return attempt.value;
      last = attempt.failure;
      attempts += last.requests ?? 1;
      outcome = worse(outcome, last.outcome);
      if (signal.aborted) break;
      if (last.retry === 'no' || attempts >= policy.maxAttempts) throw errorOf(last);
      if (last.retry === 'at-once') continue;
      if (policy.onlyRefusedTokens) throw errorOf(last);
      const delayMs = Math.max(fullJitter(attempts, FIRST_DELAY_MS, MAX_DELAY_MS), last.retryAfterMs ?? 0);
      if (!isPatient && delayMs >= leftMs()) throw errorOf(last);
      await waitFor(() => sleep(delayMs, undefined, { signal }));
    }
  } catch (error) {
    if (!signal.aborted) throw error;
  }
  throw new AbortedError('aborted', { operation, attempts, outcome, retryable: true });

  function leftMs(): number {
    return end - performance.now();
  }

  async function waitFor<W>(wait: () => Promise<W>): Promise<W> {
    const start = performance.now();
    const result = await wait();
    if (isPatient) end += performance.now() - start;
    return result;
  }

  async function readyInTime(): Promise<Attempt<R>> {
    if (leftMs() <= 0) return { failure: NOT_READY };
    return withLinkedSignal([signal], isPatient ? undefined : leftMs(), async (time) => {
      try {
        return await ready(time.signal, Math.max(0, leftMs() - reservedMs));
      } catch (error) {
        if (time.timedOut) return { failure: NOT_READY };
        throw error;
      }
    });
  }

  /** After an attempt, its failure says more. */
  function notReady(failure: Failure): Error {
    const { retryAfterMs } = failure;
    return errorOf(last ? { ...last, retryAfterMs: last.retryAfterMs ?? retryAfterMs } : failure);
  }

  function errorOf(failure: Failure): Error {
    const late =
      failure.retry === 'later' &&
      attempts < policy.maxAttempts &&
      policy.onlyRefusedTokens !== true &&
      failure.error !== TimeoutError;
    return new failure.error(
      late ? `${failure.message}; http.totalTimeoutMs leaves no time to try again` : failure.message,
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
