import { AbortedError, NetworkError, TimeoutError, UnexpectedResponseError } from '../../errors.js';
import type { CombinedSignal } from '../../async/combined-signal.js';
import { Failure } from './answer.js';

export const MAX_RESPONSE_BYTES = 10 * 1024 * 1024;

/** Errors of a connection that did not come about. After any other error, the service may have seen the request. */
const NO_CONNECTION = /^(ECONNREFUSED|ENOTFOUND|EAI_\w+|E(HOST|NET)(UNREACH|DOWN)|INVALID_PROXY|PROXY_\d+)$/;
const NO_TRUST = /^(CERT_|ERR_TLS_CERT|DEPTH_ZERO_|SELF_SIGNED_|UNABLE_TO_)/;
const MISTAKES = /^(Type|Range|Reference|Syntax|URI|Eval|Assertion)Error$/;

/** The error of our own sender: it knows whether the request was sent. */
export class Unanswered extends Error {
  /** @param sent whether the service can have seen any of the request */
  constructor(
    cause: Error,
    readonly sent: boolean,
  ) {
    super(cause.message, { cause });
  }
}

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
  const mayBeSent = !NO_CONNECTION.test(reason) && !NO_TRUST.test(reason);
  const sent = error instanceof Unanswered ? error.sent : mayBeSent;
  const outcome = sent ? 'unknown' : 'not-sent';
  const details = { outcome, retry: 'later', reason } as const;
  if (timedOut || (code === 'ECONNABORTED' && !signal.aborted))
    return new Failure(TimeoutError, 'no whole answer in time', { ...details, reason: 'TIMEOUT' });
  if (signal.aborted) return new Failure(AbortedError, 'aborted', { outcome, reason: 'ABORTED' });
  if (reason === 'ERR_BUFFER_TOO_LARGE' || message?.startsWith('maxContentLength') === true)
    return tooLarge();
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
