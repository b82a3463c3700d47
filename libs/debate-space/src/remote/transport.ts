import { Axios, AxiosHeaders, type AxiosAdapter, type AxiosResponse } from 'axios';
import { withLinkedSignal, type LinkedSignal } from '../linked-signal.js';
import { isLoopback } from '../service-url.js';
import { retryAfterMs } from './backoff.js';
import { proxyFor } from './proxy.js';
import type { ServicePause } from './service-pause.js';
import { transportFailureOf, type TransportFailure } from './transport-failure.js';
import { UndiciAdapter } from './undici-adapter.js';

/** What the option `http.adapter` takes: one of axios's own adapters for Node.js, or a function. */
export type HttpAdapter = 'http' | 'fetch' | AxiosAdapter;

export interface HttpRequest {
  readonly method: 'GET' | 'POST' | 'DELETE';
  readonly url: string;
  readonly headers: Readonly<Record<string, string>>;
  readonly body?: string;
}

export interface HttpReply {
  readonly status: number;
  readonly body: string;
  /** Repeated headers are joined with commas (RFC 9110, section 5.3). */
  header(name: string): string | undefined;
  /** What `Retry-After` says. */
  readonly retryAfterMs?: number;
  /** The service's clock minus this one's, in milliseconds, by the `Date` of the answer. */
  readonly clockSkewMs?: number;
}

export type Exchange = { readonly reply: HttpReply } | { readonly failure: TransportFailure };

const MAX_RESPONSE_BYTES = 10 * 1024 * 1024;
const USER_AGENT = 'nestjs-debate-space';

/**
 * One HTTP exchange, once, with no retry and no redirect. An `AxiosError` holds the request with its keys and tokens,
 * so none leaves this file. The time-out and the abort work with every adapter, also with one that ignores its signal.
 */
export class Transport {
  readonly #own: UndiciAdapter | undefined;
  readonly #axios: Axios;
  readonly #timeoutMs: number;
  readonly #pause: ServicePause | undefined;

  /**
   * @param adapter default: {@link UndiciAdapter}
   * @param pause notes the pauses that the service asks for
   */
  constructor(timeoutMs: number, adapter?: HttpAdapter, pause?: ServicePause) {
    this.#timeoutMs = timeoutMs;
    this.#pause = pause;
    this.#own = adapter === undefined ? new UndiciAdapter(timeoutMs) : undefined;
    // Not axios.create(): that would take over whatever defaults and headers the host has set for itself.
    this.#axios = new Axios({
      adapter: this.#own?.send ?? adapter,
      maxContentLength: MAX_RESPONSE_BYTES,
      maxRedirects: 0,
      responseType: 'text',
    });
  }

  /**
   * @param limitMs an earlier end than the time-out, in milliseconds
   * @throws what an adapter throws by mistake, such as a `TypeError`: that is no failure of the network
   */
  async exchange(request: HttpRequest, signal: AbortSignal, limitMs = Infinity): Promise<Exchange> {
    if (signal.aborted) return { failure: { kind: 'aborted', reason: 'ABORTED', sent: false } };
    const timeoutMs = Math.max(1, Math.min(this.#timeoutMs, limitMs));
    return withLinkedSignal([signal], timeoutMs, async (linked) => {
      try {
        return this.#answer(await this.#send(request, linked));
      } catch (error) {
        const { response } = error as { response?: AxiosResponse<unknown> };
        if (response && !linked.signal.aborted) return this.#answer(response);
        return { failure: transportFailureOf(error, linked, this.#own !== undefined) };
      }
    });
  }

  async #send(request: HttpRequest, { signal }: LinkedSignal): Promise<AxiosResponse<unknown>> {
    const { method, url, headers, body: data } = request;
    const address = new URL(url);
    if (!this.#own) proxyFor(address); // its error says what is wrong, and shows no password
    const response = this.#axios.request<unknown>({
      method,
      url,
      headers: { Accept: 'application/json', 'User-Agent': USER_AGENT, ...headers },
      data,
      proxy: isLoopback(address.hostname) ? false : undefined,
      signal,
    });
    return Promise.race([response, abandoned(signal)]);
  }

  #answer(response: AxiosResponse<unknown>): Exchange {
    const reply = replyOf(response);
    this.#pause?.heard(reply.status, reply.retryAfterMs);
    // An adapter of the host's may not know maxContentLength.
    if (reply.body.length > MAX_RESPONSE_BYTES)
      return { failure: { kind: 'too-large', reason: 'TOO_LARGE', sent: true } };
    return { reply };
  }

  /** Closes the connections. */
  close(): void {
    this.#own?.close();
  }
}

/** Rejects after an abort, and leaves an adapter that heeds the signal the time to say whether the request was sent. */
function abandoned(signal: AbortSignal): Promise<never> {
  return new Promise((_, reject) => {
    const give = (): void => void setImmediate(reject, new DOMException('aborted', 'AbortError'));
    signal.addEventListener('abort', give, { once: true });
  });
}

function replyOf({ status, data, headers }: AxiosResponse<unknown>): HttpReply {
  const read = AxiosHeaders.from(headers as AxiosHeaders);
  const header = (name: string): string | undefined => {
    const value = read.get(name) ?? undefined;
    return value === undefined ? undefined : [value].flat().join(', ');
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
