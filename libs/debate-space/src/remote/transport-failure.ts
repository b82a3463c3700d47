import { NetworkError, TimeoutError, UnexpectedResponseError } from '../errors.js';
import type { LinkedSignal } from '../linked-signal.js';
import { Failure, type Meaning } from './answer.js';

/** No whole answer came: why, and whether the service can have seen the request. */
export interface TransportFailure {
  readonly kind: 'network' | 'timeout' | 'too-large' | 'aborted' | 'proxy';
  /** The system's error code, such as `ECONNREFUSED`. */
  readonly reason: string;
  readonly sent: boolean;
}

/** Errors of a connection that did not come about. After any other error, the service may have seen the request. */
const NO_CONNECTION = /^(ECONNREFUSED|ENOTFOUND|EAI_\w+|E(HOST|NET)(UNREACH|DOWN)|INVALID_PROXY|PROXY_\d+)$/;
const NO_TRUST = /^(CERT_|ERR_TLS_CERT|DEPTH_ZERO_|SELF_SIGNED_|UNABLE_TO_)/;
const MISTAKES = new Set([
  'TypeError',
  'RangeError',
  'ReferenceError',
  'SyntaxError',
  'URIError',
  'EvalError',
  'AssertionError',
]);

/**
 * What an adapter's error means.
 * @param own whether the adapter is ours: it says of each request whether it was sent
 * @throws the error itself when it is a mistake in the code of an adapter, or in ours
 */
export function transportFailureOf(error: unknown, linked: LinkedSignal, own: boolean): TransportFailure {
  const { code, message, request } = Object(error) as ErrorDetails;
  const cause = innermost(error);
  const reason = [cause.code, code].find(isCode) ?? 'UNKNOWN';
  const sent = own ? request?.sent === true : !NO_CONNECTION.test(reason) && !NO_TRUST.test(reason);
  if (linked.timedOut || (code === 'ECONNABORTED' && !linked.signal.aborted))
    return { kind: 'timeout', reason: 'TIMEOUT', sent };
  if (linked.signal.aborted) return { kind: 'aborted', reason: 'ABORTED', sent };
  if (code === 'ERR_BUFFER_TOO_LARGE' || message?.startsWith('maxContentLength') === true)
    return { kind: 'too-large', reason: 'TOO_LARGE', sent };
  if (reason === 'INVALID_PROXY') return { kind: 'proxy', reason, sent };
  // axios and fetch say TypeError, too, when there is no connection; the cause, or axios's own code, tells.
  if (MISTAKES.has(cause.name ?? '') && code !== 'ERR_NETWORK') throw cause as Error;
  return { kind: 'network', reason, sent };
}

interface ErrorDetails {
  readonly name?: string;
  readonly message?: string;
  readonly code?: unknown;
  readonly cause?: unknown;
  readonly request?: { readonly sent?: boolean };
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

const MEANINGS: Readonly<Record<TransportFailure['kind'], Pick<Meaning, 'error' | 'text' | 'retry'>>> = {
  network: { error: NetworkError, text: 'no connection, or it broke', retry: 'later' },
  timeout: { error: TimeoutError, text: 'no whole answer in time', retry: 'later' },
  aborted: { error: TimeoutError, text: 'aborted' },
  'too-large': { error: UnexpectedResponseError, text: 'the answer is larger than 10 MiB' },
  proxy: {
    error: NetworkError,
    text: 'no connection, the proxy of the environment is not a URL; hint: correct HTTPS_PROXY, HTTP_PROXY or ALL_PROXY, such as http://proxy.example.org:3128',
  },
};

/** What it means for a call. */
export function failureOf({ kind, reason, sent }: TransportFailure): Failure {
  const { error, text, retry } = MEANINGS[kind];
  const message = kind === 'network' ? `${text} (${reason})` : text;
  return new Failure(error, message, { outcome: sent ? 'unknown' : 'not-sent', retry });
}
