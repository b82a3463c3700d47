import type { Axios, AxiosAdapter, AxiosHeaders, AxiosResponse } from 'axios';
import { AbortedError, NetworkError, TimeoutError, UnexpectedResponseError } from '../../errors.js';
import { withCombinedSignal, type CombinedSignal } from '../../async/combined-signal.js';
import { lazy } from '../../async/lazy.js';
import { isLoopback } from '../../options/option-problem.js';
import { Failure } from './answer.js';
import { retryAfterMs, type ServicePause } from './service-pause.js';
import { proxyFor, UndiciSender } from './undici-sender.js';

/** What the option `http.adapter` takes: one of axios's own adapters for Node.js, or a function. */
export type HttpAdapter = 'http' | 'fetch' | AxiosAdapter;

export interface HttpRequest {
  readonly method: 'GET' | 'POST' | 'DELETE';
  readonly url: string;
  readonly headers: Readonly<Record<string, string>>;
  readonly body?: string;
}

/** An answer as it came. */
export interface RawReply {
  readonly status: number;
  readonly data: unknown;
  header(name: string): string | string[] | undefined;
}

export interface HttpReply {
  readonly status: number;
  readonly body: string;
  /** Repeated headers are joined with commas (RFC 9110, section 5.3). @param name in lower case */
  header(name: string): string | undefined;
  /** What `Retry-After` says. */
  readonly retryAfterMs?: number;
  /** The service's clock minus this one's, in milliseconds, by the `Date` of the answer. */
  readonly clockSkewMs?: number;
}

const USER_AGENT = 'nestjs-debate-space';

/**
 * One HTTP exchange, once, with no retry and no redirect. The error of an adapter holds the request with its keys and
 * tokens, so none leaves this file. The time-out and the abort work with every adapter, also with one that ignores its
 * signal.
 */
export class Transport {
  /** Loads what sends, which is needed with the first request only. */
  readonly load: () => Promise<unknown>;
  readonly #undici: UndiciSender;
  readonly #send: UndiciSender['send'];
  readonly #timeoutMs: number;
  readonly #pause: ServicePause | undefined;

  /**
   * @param adapter default: ours, on undici
   * @param pause notes the pauses that the service asks for
   */
  constructor(timeoutMs: number, adapter?: HttpAdapter, pause?: ServicePause) {
    this.#timeoutMs = timeoutMs;
    this.#pause = pause;
    this.#undici = new UndiciSender(timeoutMs);
    const axios = adapter && lazy(() => axiosWith(adapter));
    this.load = axios ?? this.#undici.load;
    this.#send = axios ? senderThrough(axios) : this.#undici.send.bind(this.#undici);
  }

  /**
   * @param limitMs an earlier end than the time-out, in milliseconds
   * @throws {@link Failure} when there is no whole answer
   * @throws what an adapter throws by mistake, such as a `TypeError`: that is no failure of the network
   */
  async exchange(request: HttpRequest, signal: AbortSignal, limitMs = Infinity): Promise<HttpReply> {
    if (signal.aborted)
      throw new Failure(AbortedError, 'aborted', { outcome: 'not-sent', reason: 'ABORTED' });
    const timeoutMs = Math.max(1, Math.min(this.#timeoutMs, limitMs));
    const headers = { Accept: 'application/json', 'User-Agent': USER_AGENT, ...request.headers };
    return withCombinedSignal([signal], timeoutMs, async (combined) => {
      const raw = await this.#send({ ...request, headers }, combined.signal).catch((error: unknown) => {
        throw transportFailure(error, combined);
      });
      const reply = replyOf(raw);
      this.#pause?.heard(reply.status, reply.retryAfterMs);
      // An adapter of the host's may not know maxContentLength.
      if (reply.body.length > MAX_RESPONSE_BYTES) throw tooLarge();
      return reply;
    });
  }

  /** Closes the connections. */
  close(): void {
    this.#undici.close();
  }
}

function senderThrough(axios: () => Promise<Axios>): UndiciSender['send'] {
  return async ({ body: data, ...request }, signal) => {
    const url = new URL(request.url);
    proxyFor(url); // its error says what is wrong, and shows no password
    const proxy = isLoopback(url.hostname) ? false : undefined;
    const response = (await axios()).request<unknown>({ ...request, data, proxy, signal });
    try {
      return rawReply(await Promise.race([response, abandoned(signal)]));
    } catch (error) {
      const { response: answered } = error as { response?: AxiosResponse<unknown> };
      if (answered && !signal.aborted) return rawReply(answered);
      throw error;
    }
  };
}

async function axiosWith(adapter: HttpAdapter): Promise<Axios> {
  const { Axios: AxiosClass } = await import('axios');
  // Not axios.create(): that would take over whatever defaults and headers the host has set for itself.
  return new AxiosClass({
    adapter,
    maxContentLength: MAX_RESPONSE_BYTES,
    maxRedirects: 0,
    responseType: 'text',
  });
}

function rawReply({ status, data, headers }: AxiosResponse<unknown>): RawReply {
  const valueOf = (name: string) =>
    (headers as AxiosHeaders).get(name) as string | string[] | null | undefined;
  return { status, data, header: (name) => valueOf(name) ?? undefined };
}

/** Rejects after an abort, and leaves an adapter that heeds the signal the time to say whether the request was sent. */
function abandoned(signal: AbortSignal): Promise<never> {
  return new Promise((_, reject) => {
    const give = (): void => void setImmediate(reject, new DOMException('aborted', 'AbortError'));
    signal.addEventListener('abort', give, { once: true });
  });
}

function replyOf({ status, data, ...raw }: RawReply): HttpReply {
  const header = (name: string): string | undefined => {
    const value = raw.header(name);
    return Array.isArray(value) ? value.join(', ') : value;
  };
  const date = header('date');
  const serverNow = Date.parse(date ?? '');
  return {
    status,
    body: textOf(data),
    header,
    retryAfterMs: retryAfterMs(header('retry-after'), date),
    clockSkewMs: Number.isNaN(serverNow) ? undefined : serverNow - Date.now(),
  };
}

/** An adapter of the host's may give bytes, or JSON that it has parsed. */
function textOf(data: unknown): string {
  if (typeof data === 'string') return data;
  if (data === undefined || data === null) return '';
  if (data instanceof Uint8Array) return new TextDecoder().decode(data);
  return JSON.stringify(data);
}

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
