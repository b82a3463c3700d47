import http from 'node:http';
import https from 'node:https';
import type { Socket } from 'node:net';
import { Axios, isAxiosError, type AxiosResponse } from 'axios';
import { withLinkedSignal } from '../linked-signal.js';

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
  /^(ECONNREFUSED|ENOTFOUND|EAI_AGAIN|EHOSTUNREACH|ENETUNREACH|EPROTO|ERR_(TLS|SSL)_.*|.*CERT.*|.*_SIGNATURE)$/;

/**
 * One HTTP exchange, once, with no retry and no redirect. An `AxiosError` holds the request with its keys and tokens,
 * so none leaves this file; neither do the agents, whose sockets remember the last header sent.
 */
export class Transport {
  readonly #agents: { readonly httpAgent: http.Agent; readonly httpsAgent: https.Agent };
  readonly #axios: Axios;
  readonly #timeoutMs: number;
  readonly #connecting = new WeakSet<Socket>();

  constructor(timeoutMs: number) {
    this.#timeoutMs = timeoutMs;
    // Without `timeout`, Node's agent ignores the server's keep-alive hint and writes to sockets about to be closed.
    const keepAlive = { keepAlive: true, timeout: 30_000 };
    this.#agents = { httpAgent: new http.Agent(keepAlive), httpsAgent: new https.Agent(keepAlive) };
    this.#noteConnecting(this.#agents.httpAgent, 'connect');
    this.#noteConnecting(this.#agents.httpsAgent, 'secureConnect');
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
    const timeoutMs = Math.max(1, Math.min(this.#timeoutMs, limitMs));
    return withLinkedSignal([signal], timeoutMs, async (linked) => {
      try {
        const response: AxiosResponse<string> = await this.#axios.request({
          method: request.method,
          url: request.url,
          headers: { Accept: 'application/json', ...request.headers },
          data: request.body,
          signal: linked.signal,
        });
        if (request.url.startsWith('https:') && !isEncrypted(response.request)) {
          // A proxy that opens no tunnel answers in the service's stead.
          return { failure: { kind: 'network', reason: `PROXY_${response.status}`, sent: false } };
        }
        return { reply: replyOf(response) };
      } catch (error) {
        const sent = this.#mayBeSent(error);
        if (linked.timedOut) return { failure: { kind: 'timeout', reason: 'TIMEOUT', sent } };
        return { failure: failureOf(error, sent) };
      }
    });
  }

  /** Nothing has been sent on a connection that never came about. What goes through a proxy is not known. */
  #mayBeSent(error: unknown): boolean {
    const socket = (error as { request?: { socket?: Socket | null } }).request?.socket;
    return !socket || !this.#connecting.has(socket);
  }

  #noteConnecting(agent: http.Agent, connected: 'connect' | 'secureConnect'): void {
    const createConnection = agent.createConnection.bind(agent);
    agent.createConnection = (options, callback) => {
      const socket = createConnection(options, callback) as Socket;
      this.#connecting.add(socket);
      return socket.once(connected, () => this.#connecting.delete(socket));
    };
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

function isEncrypted(request: unknown): boolean {
  return (request as { socket?: { encrypted?: boolean } } | undefined)?.socket?.encrypted === true;
}

function failureOf(error: unknown, sent: boolean): TransportFailure {
  const code = isAxiosError(error) ? (error.code ?? '') : '';
  if (code === 'ERR_CANCELED') return { kind: 'aborted', reason: 'ABORTED', sent };
  if (isAxiosError(error) && error.message.startsWith('maxContentLength')) {
    return { kind: 'too-large', reason: 'TOO_LARGE', sent: true };
  }
  const reason = /^[A-Z0-9_]{1,60}$/.test(code) ? code : 'UNKNOWN';
  return { kind: 'network', reason, sent: sent && !NEVER_CONNECTED.test(reason) };
}
