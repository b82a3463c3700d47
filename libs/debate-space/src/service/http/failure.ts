import {
  AbortedError,
  NetworkError,
  TimeoutError,
  UnexpectedResponseError,
  type DebateSpaceOperation,
  type DebateSpaceOutcome,
  type RequestErrorDetails,
} from '../../errors.js';
import type { CombinedSignal } from '../../async/combined-signal.js';
import { TOO_LARGE, Unanswered } from './exchange.js';
import type { ErrorClass } from './status-table.js';

export interface FailureDetails extends Partial<Omit<RequestErrorDetails, 'operation' | 'attempts'>> {
  readonly outcome: DebateSpaceOutcome;
  /**
   * Whether another attempt may succeed. `immediately`: it will not be a repetition, so it needs no delay. `too-late`: the
   * call has no time for a request. @defaultValue `no`
   */
  readonly retry?: 'no' | 'later' | 'immediately' | 'too-late';
  /** The system's error code, when there was no whole answer. */
  readonly reason?: string;
  /** How many requests were made. @defaultValue 1 */
  readonly requests?: number;
}

/** Why one attempt failed. It becomes the error of the call when no other attempt follows. */
export class Failure extends Error {
  constructor(
    readonly error: ErrorClass,
    message: string,
    readonly details: FailureDetails,
  ) {
    super(message);
  }

  /** @param attempts of the whole call, whose outcome it is */
  asError(operation: DebateSpaceOperation, attempts: number, outcome: DebateSpaceOutcome): Error {
    const { retry = 'no', retryable = retry !== 'no', status, retryAfterMs } = this.details;
    return new this.error(this.message, { operation, attempts, outcome, status, retryable, retryAfterMs });
  }
}

/** Errors of a connection that did not come about. After any other error, the service may have seen the request. */
const NO_CONNECTION = /^(ECONNREFUSED|ENOTFOUND|EAI_\w+|E(HOST|NET)(UNREACH|DOWN)|INVALID_PROXY|PROXY_\d+)$/;
const NO_TRUST = /^(CERT_|ERR_TLS_CERT|DEPTH_ZERO_|SELF_SIGNED_|UNABLE_TO_)/;
const MISTAKES = /^(Type|Range|Reference|Syntax|URI|Eval|Assertion)Error$/;

interface ErrorDetails {
  readonly name?: string;
  readonly message?: string;
  readonly code?: unknown;
  readonly cause?: unknown;
}

/**
 * What it means for a call that there was no whole answer.
 * @throws the error itself when it is a mistake in the code of an adapter, or in ours
 */
export function transportFailure(error: unknown, { signal, timedOut }: CombinedSignal): Failure {
  const { code, message } = Object(error) as ErrorDetails;
  const cause = innermost(error);
  const reason = [cause.code, code].find(isCode) ?? 'UNKNOWN';
  const wasConnected = !NO_CONNECTION.test(reason) && !NO_TRUST.test(reason);
  const sent = wasConnected && (!(error instanceof Unanswered) || error.sent);
  const outcome = sent ? 'unknown' : 'not-sent';
  const details = { outcome, retry: 'later', reason } as const;
  if (timedOut || (code === 'ECONNABORTED' && !signal.aborted))
    return new Failure(TimeoutError, 'no whole answer in time', { ...details, reason: 'TIMEOUT' });
  if (signal.aborted) return new Failure(AbortedError, 'aborted', { outcome, reason: 'ABORTED' });
  if (reason === TOO_LARGE || message?.startsWith('maxContentLength') === true) return tooLarge();
  if (reason === 'INVALID_PROXY') {
    const hint = 'correct HTTPS_PROXY, HTTP_PROXY or ALL_PROXY, such as http://proxy.example.org:3128';
    const problem = `no connection, the proxy of the environment is not a URL; hint: ${hint}`;
    return new Failure(NetworkError, problem, { outcome, reason });
  }
  // axios and fetch say TypeError, too, when there is no connection; the cause, or axios's own code, tells.
  if (MISTAKES.test(cause.name ?? '') && code !== 'ERR_NETWORK') throw cause as Error;
  return new Failure(NetworkError, `no connection, or it broke (${reason})`, details);
}

export function tooLarge(): Failure {
  const details = { outcome: 'unknown', reason: 'TOO_LARGE' } as const;
  return new Failure(UnexpectedResponseError, 'the answer is larger than 10 MiB', details);
}

/** What an error was made of: axios wraps what it catches, and the wrapper holds the request with its keys. */
function innermost(error: unknown): ErrorDetails {
  let inner = Object(error) as ErrorDetails;
  for (let depth = 0; depth < 5 && typeof inner.cause === 'object' && inner.cause !== null; depth += 1)
    inner = inner.cause;
  return inner;
}

function isCode(code: unknown): code is string {
  return typeof code === 'string' && /^[A-Z0-9_]{1,60}$/.test(code);
}
