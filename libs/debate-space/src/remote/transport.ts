import { Axios, type AxiosResponse } from 'axios';
import { UndiciAdapter } from './undici-adapter.js';

export interface HttpRequest {
  readonly method: 'GET' | 'POST' | 'DELETE';
  readonly url: string;
  readonly headers: Readonly<Record<string, string>>;
  readonly body?: string;
}

export interface HttpReply {
  readonly status: number;
  readonly body: string;
  header(name: string): string | undefined;
}

/** No whole answer came: why, and whether the service can have seen the request. */
export interface TransportFailure {
  readonly kind: 'network' | 'timeout' | 'too-large' | 'aborted';
  /** The system's error code, such as `ECONNREFUSED`. */
  readonly reason: string;
  readonly sent: boolean;
}

export type Exchange = { readonly reply: HttpReply } | { readonly failure: TransportFailure };

const MAX_RESPONSE_BYTES = 10 * 1024 * 1024;
const USER_AGENT = 'nestjs-debate-space';

/**
 * One HTTP exchange, once, with no retry and no redirect. An `AxiosError` holds the request with its keys and tokens,
 * so none leaves this file.
 */
export class Transport {
  readonly #adapter: UndiciAdapter;
  readonly #axios: Axios;
  readonly #timeoutMs: number;

  constructor(timeoutMs: number) {
    this.#timeoutMs = timeoutMs;
    this.#adapter = new UndiciAdapter(timeoutMs);
    // Not axios.create(): that would take over whatever defaults and headers the host has set for itself.
    this.#axios = new Axios({
      adapter: this.#adapter.send,
      maxContentLength: MAX_RESPONSE_BYTES,
    });
  }

  /** @param limitMs an earlier end than the time-out, in milliseconds */
  async exchange(request: HttpRequest, signal: AbortSignal, limitMs = Infinity): Promise<Exchange> {
    if (signal.aborted) return { failure: { kind: 'aborted', reason: 'ABORTED', sent: false } };
    const timeoutMs = Math.max(1, Math.min(this.#timeoutMs, limitMs));
    try {
      const response: AxiosResponse<string> = await this.#axios.request({
        method: request.method,
        url: request.url,
        headers: { Accept: 'application/json', 'User-Agent': USER_AGENT, ...request.headers },
        data: request.body,
        signal,
        timeout: timeoutMs,
      });
      return { reply: replyOf(response) };
    } catch (error) {
      return { failure: failureOf(error) };
    }
  }

  /** Closes the connections. */
  close(): void {
    this.#adapter.close();
  }
}

function replyOf(response: AxiosResponse<string>): HttpReply {
  const headers = response.headers as Record<string, unknown>;
  return {
    status: response.status,
    body: typeof response.data === 'string' ? response.data : '',
    header: (name) => {
      const value = headers[name];
      return typeof value === 'string' ? value : undefined;
    },
  };
}

function failureOf(error: unknown): TransportFailure {
  const { code, request } = error as { code?: unknown; request?: { sent?: boolean } };
  const sent = request?.sent === true;
  if (code === 'ECONNABORTED') return { kind: 'timeout', reason: 'TIMEOUT', sent };
  if (code === 'ERR_CANCELED') return { kind: 'aborted', reason: 'ABORTED', sent };
  if (code === 'ERR_BUFFER_TOO_LARGE') return { kind: 'too-large', reason: 'TOO_LARGE', sent };
  const isCode = typeof code === 'string' && /^[A-Z0-9_]{1,60}$/.test(code);
  return { kind: 'network', reason: isCode ? code : 'UNKNOWN', sent };
}
