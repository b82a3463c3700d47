import { withCombinedSignal, type CombinedSignal } from '../../async/combined-signal.js';
import {
  AbortedError,
  NetworkError,
  TimeoutError,
  UnexpectedResponseError,
  type DebateSpaceRequestError,
} from '../../errors.js';
import { axiosSender, proxyFor, proxySender, type HttpAdapter } from './axios-sender.js';
import { bodyText } from './body.js';
import {
  SHORT_BYTES,
  TOO_LARGE,
  Unanswered,
  type HttpReply,
  type HttpRequest,
  type RawReply,
  type Send,
} from './exchange.js';
import { retryAfterMs, type ServicePause } from './service-pause.js';
import { UndiciSender } from './undici-sender.js';

/** Requests no compression, because the answers are short. */
const HEADERS = {
  Accept: 'application/json',
  'Accept-Encoding': 'identity',
  'User-Agent': 'nestjs-debate-space',
};

/**
 * One HTTP exchange, without retries and redirects. The error of an adapter holds the request with its keys and tokens, so it
 * never leaves this file.
 */
export class Transport {
  /** Loads the HTTP client, which otherwise happens with the first request. */
  readonly load: () => Promise<unknown>;
  readonly #undici: UndiciSender;
  readonly #chosen: Send | undefined;
  /** By origin. */
  readonly #senders = new Map<string, Send>();
  readonly #timeoutMs: number;
  readonly #pause: ServicePause | undefined;

  /**
   * @param adapter default: undici, or axios's `http` adapter where there is a proxy for the address
   * @param pause records the pauses that the service requests
   */
  constructor(timeoutMs: number, adapter?: HttpAdapter, pause?: ServicePause) {
    this.#timeoutMs = timeoutMs;
    this.#pause = pause;
    this.#undici = new UndiciSender(timeoutMs);
    const chosen = adapter && axiosSender(adapter);
    this.#chosen = chosen?.send;
    this.load = chosen?.load ?? this.#undici.load;
  }

  /**
   * @param limitMs for a limit below the time-out, in milliseconds
   * @throws `DebateSpaceRequestError` when no complete answer comes
   * @throws the adapter's own error when its code has a mistake, such as a `TypeError`
   */
  async exchange(request: HttpRequest, signal: AbortSignal, limitMs = Infinity): Promise<HttpReply> {
    if (signal.aborted) throw aborted(request, 'not-sent');
    const timeoutMs = Math.max(1, Math.min(this.#timeoutMs, limitMs));
    const headers = { ...HEADERS, ...request.headers };
    return withCombinedSignal([signal], timeoutMs, async (combined) => {
      try {
        const send = this.#chosen ?? this.#senderFor(request.url);
        return await this.#read(request, await send({ ...request, headers }, combined.signal));
      } catch (error) {
        throw noAnswer(request, error, combined);
      }
    });
  }

  async #read(request: HttpRequest, { status, data, ...raw }: RawReply): Promise<HttpReply> {
    const header = (name: string): string | undefined => {
      const value = raw.header(name);
      return Array.isArray(value) ? value.join(', ') : value;
    };
    const date = header('date');
    const serverNow = Date.parse(date ?? '');
    const waitMs = retryAfterMs(header('retry-after'), date);
    this.#pause?.record(status, waitMs);
    return {
      operation: request.operation,
      status,
      body: await bodyText(data, header, request.maxBytes ?? SHORT_BYTES),
      header,
      retryAfterMs: waitMs,
      clockSkewMs: Number.isNaN(serverNow) ? undefined : serverNow - Date.now(),
    };
  }

  #senderFor(address: string): Send {
    const url = new URL(address);
    const known = this.#senders.get(url.origin);
    if (known) return known;
    const proxy = proxyFor(url);
    const send = proxy ? proxySender(proxy) : this.#undici.send;
    this.#senders.set(url.origin, send);
    return send;
  }

  /** Closes the connections. */
  close(): void {
    this.#undici.close();
  }
}

/** Errors before a connection exists. After any other error, the service may have seen the request. */
const NO_CONNECTION = /^(ECONNREFUSED|ENOTFOUND|EAI_\w+|E(HOST|NET)(UNREACH|DOWN)|INVALID_PROXY|PROXY_\d+)$/;
const NO_TRUST = /^(CERT_|ERR_TLS_CERT|DEPTH_ZERO_|SELF_SIGNED_|UNABLE_TO_)/;
const MISTAKES = /^(Type|Range|Reference|Syntax|URI|Eval|Assertion)Error$/;
const PROXY_HINT = 'correct HTTPS_PROXY, HTTP_PROXY or ALL_PROXY, such as http://proxy.example.org:3128';

interface Cause {
  readonly name?: string;
  readonly message?: string;
  readonly code?: unknown;
  readonly cause?: unknown;
}

/**
 * The error of a request without a complete answer.
 * @throws the error itself when it shows a mistake in the code of an adapter, or in ours
 */
function noAnswer(
  request: HttpRequest,
  error: unknown,
  { signal, timedOut }: CombinedSignal,
): DebateSpaceRequestError {
  const { operation, maxBytes = SHORT_BYTES } = request;
  const { code, message } = Object(error) as Cause;
  const cause = innermost(error);
  const reason = [cause.code, code].find(isCode) ?? 'UNKNOWN';
  const wasConnected = !NO_CONNECTION.test(reason) && !NO_TRUST.test(reason);
  const outcome = wasConnected && (!(error instanceof Unanswered) || error.sent) ? 'unknown' : 'not-sent';
  const details = { operation, outcome, reason } as const;
  const later = { ...details, repeat: 'later' } as const;
  if (timedOut || (code === 'ECONNABORTED' && !signal.aborted))
    return new TimeoutError('no complete answer in time', { ...later, reason: 'TIMEOUT' });
  if (signal.aborted) return aborted(request, outcome);
  if (reason === TOO_LARGE || message?.startsWith('maxContentLength') === true) {
    const problem = `the answer is larger than ${maxBytes / 1024} KiB`;
    return new UnexpectedResponseError(problem, { ...details, outcome: 'unknown', reason: 'TOO_LARGE' });
  }
  if (reason === 'INVALID_PROXY') {
    const problem = `no connection: the proxy of the environment is not a URL; hint: ${PROXY_HINT}`;
    return new NetworkError(problem, details);
  }
  // axios and fetch also throw a TypeError without a connection: its cause, or axios's own code, tells them apart.
  if (MISTAKES.test(cause.name ?? '') && code !== 'ERR_NETWORK') throw cause as Error;
  return new NetworkError(`no connection, or a broken one (${reason})`, later);
}

function aborted({ operation }: HttpRequest, outcome: 'not-sent' | 'unknown'): AbortedError {
  return new AbortedError('aborted', { operation, outcome, retryable: true, reason: 'ABORTED' });
}

/** The original error: axios wraps each error in its own, which holds the request with its keys. */
function innermost(error: unknown): Cause {
  let inner = Object(error) as Cause;
  for (let depth = 0; depth < 5 && typeof inner.cause === 'object' && inner.cause !== null; depth += 1)
    inner = inner.cause;
  return inner;
}

function isCode(code: unknown): code is string {
  return typeof code === 'string' && /^[A-Z0-9_]{1,60}$/.test(code);
}
