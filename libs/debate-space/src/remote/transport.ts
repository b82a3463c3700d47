import http from 'node:http';
import https from 'node:https';
import { Axios, isAxiosError, type AxiosResponse } from 'axios';
import { LinkedSignal } from '../linked-signal.js';

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
const NEVER_CONNECTED =
  /^(ECONNREFUSED|ENOTFOUND|EAI_AGAIN|EHOSTUNREACH|ENETUNREACH|ERR_TLS_.*|.*CERT.*|.*_SIGNATURE)$/;

/**
 * One HTTP exchange, once, with no retry and no redirect. An `AxiosError` holds the request with its keys and tokens,
 * so none leaves this file; neither do the agents, whose sockets remember the last header sent.
 */
export class Transport {
  readonly #agents: { readonly httpAgent: http.Agent; readonly httpsAgent: https.Agent };
  readonly #axios: Axios;
  readonly #timeoutMs: number;

  constructor(timeoutMs: number) {
    this.#timeoutMs = timeoutMs;
    // Without `timeout`, Node's agent ignores the server's keep-alive hint and writes to sockets about to be closed.
    const keepAlive = { keepAlive: true, timeout: 30_000 };
    this.#agents = { httpAgent: new http.Agent(keepAlive), httpsAgent: new https.Agent(keepAlive) };
    // Not axios.create(): that would take over whatever defaults and headers the host has set for itself.
    this.#axios = new Axios({
      ...this.#agents,
      adapter: 'http',
      maxRedirects: 0,
      maxContentLength: MAX_RESPONSE_BYTES,
      responseType: 'text',
      validateStatus: null,
    });
  }

  /** @param limitMs an earlier end than the time-out, in milliseconds */
  async exchange(request: HttpRequest, signal: AbortSignal, limitMs = Infinity): Promise<Exchange> {
    if (signal.aborted) return { failure: { kind: 'aborted', reason: 'ABORTED', sent: false } };
    using linked = new LinkedSignal([signal], Math.max(1, Math.min(this.#timeoutMs, limitMs)));
    try {
      const response: AxiosResponse<string> = await this.#axios.request({
        method: request.method,
        url: request.url,
        headers: { Accept: 'application/json', ...request.headers },
        data: request.body,
        signal: linked.signal,
      });
      return { reply: replyOf(response) };
    } catch (error) {
      if (linked.timedOut) return { failure: { kind: 'timeout', reason: 'TIMEOUT', sent: true } };
      return { failure: failureOf(error) };
    }
  }

  /** Closes the idle connections. */
  close(): void {
    this.#agents.httpAgent.destroy();
    this.#agents.httpsAgent.destroy();
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
  const code = isAxiosError(error) ? (error.code ?? '') : '';
  if (code === 'ERR_CANCELED') return { kind: 'aborted', reason: 'ABORTED', sent: true };
  if (isAxiosError(error) && error.message.startsWith('maxContentLength')) {
    return { kind: 'too-large', reason: 'TOO_LARGE', sent: true };
  }
  const reason = /^[A-Z0-9_]{1,60}$/.test(code) ? code : 'UNKNOWN';
  return { kind: 'network', reason, sent: !NEVER_CONNECTED.test(reason) };
}
