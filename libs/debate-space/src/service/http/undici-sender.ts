import { setMaxListeners, once } from 'node:events';
import { type IncomingHttpHeaders, request as httpRequest, type IncomingMessage } from 'node:http';
import { promisify } from 'node:util';
import { brotliDecompress, unzip } from 'node:zlib';
import type { Dispatcher, Pool, buildConnector } from 'undici';
import { lazy } from '../../async/lazy.js';

import { MAX_RESPONSE_BYTES, Unanswered } from './transport-failure.js';
import { request as httpsRequest } from 'node:https';
import { isIP, type Socket } from 'node:net';
import { connect as connectTls } from 'node:tls';
import { getProxyForUrl } from 'proxy-from-env';
import { withCombinedSignal } from '../../async/combined-signal.js';
import { isLoopback } from '../../options/option-problem.js';

const ACCEPTED_ENCODINGS = 'gzip, br';
/** zlib's code for what is longer than `maxOutputLength`; it stops there. */
const TOO_LARGE = 'ERR_BUFFER_TOO_LARGE';

/** `unzip` knows gzip and deflate by their first bytes; deflate was never requested, some send it all the same. */
const [unzipped, unbrotlied] = [promisify(unzip), promisify(brotliDecompress)];
const DECOMPRESS = new Map<unknown, typeof unzipped | typeof unbrotlied>([
  ['gzip', unzipped],
  ['x-gzip', unzipped],
  ['deflate', unzipped],
  ['br', unbrotlied],
]);

/** Where requests to one origin go. */
interface Route {
  readonly pool: Pool;
  /** Of a proxy that reads the request: its line holds the whole URL. */
  readonly proxyHeaders?: Readonly<Record<string, string>>;
}

/**
 * Sends requests on undici: about twice as many as axios's own adapter. It follows no redirect, and no status is
 * an error. Rejects with {@link Unanswered}.
 */
export class UndiciSender {
  /** Loads undici's `Pool`. */
  readonly load = lazy(async () => {
    Reflect.get(globalThis, 'Response'); // Node.js sets up its own fetch first: undici would become its dispatcher
    return (await import('undici')).Pool;
  });
  readonly #timeoutMs: number;
  readonly #closing = new AbortController();
  readonly #routes = new Map<string, Route>();

  /** @param timeoutMs how long a connection may take that nobody waits for any more */
  constructor(timeoutMs: number) {
    this.#timeoutMs = timeoutMs;
    setMaxListeners(0, this.#closing.signal); // every connection listens
  }

  async send({ method, url, headers, body }: HttpRequest, signal: AbortSignal): Promise<RawReply> {
    const address = new URL(url);
    const { pathname, search } = address;
    const { pool, proxyHeaders } = this.#routes.get(address.origin) ?? (await this.#open(address, signal));
    const exchange = new Exchange(signal);
    pool.dispatch(
      {
        path: proxyHeaders ? address.href : pathname + search,
        method,
        headers: { 'accept-encoding': ACCEPTED_ENCODINGS, ...headers, ...proxyHeaders },
        body,
      },
      exchange,
    );
    return exchange.reply;
  }

  async #open(url: URL, signal: AbortSignal): Promise<Route> {
    const PoolClass = await this.load().catch((error: unknown) => {
      throw new Unanswered(error as Error, false);
    });
    if (signal.aborted) throw new Unanswered(new Error('aborted'), false);
    const route = this.#routes.get(url.origin) ?? this.#routeTo(url, PoolClass); // another request may have come first
    this.#routes.set(url.origin, route);
    return route;
  }

  #routeTo(url: URL, PoolClass: typeof Pool): Route {
    const { signal } = this.#closing;
    // undici's clock for this is coarse, and must not ring before the caller's.
    const direct = { timeout: this.#timeoutMs + 1000, signal };
    const proxy = proxyFor(url);
    if (proxy === undefined) return { pool: poolTo(PoolClass, url.origin, direct) };
    if (url.protocol === 'https:')
      return { pool: poolTo(PoolClass, url.origin, proxyTunnel(proxy, this.#timeoutMs, signal)) };
    const proxyHeaders = { host: url.host, ...proxyAuthorization(proxy) };
    return { pool: poolTo(PoolClass, proxy.origin, direct), proxyHeaders };
  }

  /** Closes every connection, those that are being opened included. */
  close(): void {
    this.#closing.abort();
    for (const { pool } of this.#routes.values()) void pool.destroy();
  }
}

/** One request and its answer: what undici calls while they pass. */
class Exchange implements Dispatcher.DispatchHandler {
  readonly reply: Promise<RawReply>;
  #settle!: { resolve: (reply: RawReply) => void; reject: (error: Unanswered) => void };
  #controller: Dispatcher.DispatchController | undefined;
  #status = 0;
  #headers: IncomingHttpHeaders = {};
  #chunks: Buffer[] = [];
  #bytes = 0;
  #givenUp: Error | undefined;

  constructor(signal: AbortSignal) {
    this.reply = new Promise((resolve, reject) => {
      this.#settle = { resolve, reject };
    });
    signal.addEventListener('abort', this.#giveUp, { once: true });
  }

  readonly #giveUp = (): void => {
    this.#givenUp = new Error('aborted');
    this.#fail(this.#givenUp); // undici would only say so once there is a connection
    this.#controller?.abort(this.#givenUp);
  };

  onRequestStart(controller: Dispatcher.DispatchController): void {
    if (this.#givenUp) throw this.#givenUp; // leaves the connection to the next request
    this.#controller = controller; // there is a connection, and writing begins
  }

  onResponseStart(_controller: unknown, status: number, headers: IncomingHttpHeaders): void {
    this.#status = status; // those of 1xx are overwritten
    this.#headers = headers;
  }

  onResponseData(controller: Dispatcher.DispatchController, chunk: Buffer): void {
    this.#bytes += chunk.length;
    if (this.#bytes <= MAX_RESPONSE_BYTES) this.#chunks.push(chunk);
    else controller.abort(Object.assign(new Error('the response is too large'), { code: TOO_LARGE }));
  }

  onResponseEnd(): void {
    const body = Buffer.concat(this.#chunks, this.#bytes);
    const encoding = this.#headers['content-encoding']?.trim().toLowerCase(); // RFC 9110, section 8.4.1
    const decompress = DECOMPRESS.get(encoding);
    if (body.length === 0 || decompress === undefined) this.#complete(body);
    else
      decompress(body, { maxOutputLength: MAX_RESPONSE_BYTES }).then(
        this.#complete.bind(this),
        this.#fail.bind(this),
      );
  }

  onResponseError(_controller: unknown, error: Error): void {
    this.#fail(error);
  }

  #complete(data: Buffer): void {
    const headers = this.#headers;
    const reply = { status: this.#status, data, header: (name: string) => headers[name] };
    // undici frees the connection in an immediate of its own, which it asks for next. A request made before that would
    // open another one.
    queueMicrotask(() => setImmediate(this.#settle.resolve, reply));
  }

  #fail(error: Error): void {
    this.#settle.reject(new Unanswered(error, this.#controller !== undefined));
  }
}

/**
 * Not undici's Agent: when a connection breaks while a request waits for it, an Agent 7.30 replaces the origin's pool,
 * counts the old one's connections with the new one's, and from then on opens a connection for every request.
 */
function poolTo(PoolClass: typeof Pool, origin: string, connect: Pool.Options['connect']): Pool {
  return new PoolClass(origin, {
    connect,
    pipelining: 1,
    keepAliveMaxTimeout: 30_000, // some firewalls forget connections long before servers do
    headersTimeout: 0, // the caller's signal is the only time-out
    bodyTimeout: 0,
  });
}

/**
 * The proxy for an address by `HTTP_PROXY`, `HTTPS_PROXY`, `ALL_PROXY` and `NO_PROXY`, in lower or upper case. Requests
 * to loopback never go through a proxy: over plain HTTP, it would read the keys.
 * @throws an error with the code `INVALID_PROXY` when the variable holds no URL; it does not show what it holds
 */
export function proxyFor(address: URL): URL | undefined {
  if (isLoopback(address.hostname)) return undefined;
  const proxy = getProxyForUrl(address.href);
  if (proxy === '') return undefined;
  if (URL.canParse(proxy)) return new URL(proxy);
  throw Object.assign(new Error('the proxy of the environment is not a URL'), { code: 'INVALID_PROXY' });
}

/** Basic (RFC 7617), when the proxy's URL has a user name. */
export function proxyAuthorization({ username, password }: URL): Record<string, string> {
  if (username === '') return {};
  const pair = `${decoded(username)}:${decoded(password)}`;
  return { 'proxy-authorization': `Basic ${Buffer.from(pair).toString('base64')}` };
}

/** A password with a bare `%`, which many write so, is taken as it stands. */
function decoded(text: string): string {
  try {
    return decodeURIComponent(text);
  } catch {
    return text;
  }
}

/**
 * Opens connections to an HTTPS service through a proxy: the proxy sees the host and nothing else. undici's ProxyAgent
 * is not used because it tries again without end, and without a pause, when the proxy closes the connection instead of
 * answering; and it waits long after the request has been given up.
 * @param timeoutMs from the beginning to the end of the TLS handshake
 * @param closing ends what is being opened
 */
function proxyTunnel(proxy: URL, timeoutMs: number, closing: AbortSignal): buildConnector.connector {
  return (target, callback) => {
    withCombinedSignal([closing], timeoutMs, async ({ signal }) => {
      const { hostname: host } = target;
      const socket = await connect(proxy, target, signal);
      const servername = isIP(host) === 0 ? host : '';
      const options = { socket, host, servername, ALPNProtocols: ['http/1.1'], signal };
      const secured = connectTls(options);
      await once(secured, 'secureConnect');
      return secured;
    }).then(
      (socket) => {
        callback(null, socket);
      },
      (error: unknown) => {
        callback(error as Error, null);
      },
    );
  };
}

async function connect(proxy: URL, target: buildConnector.Options, signal: AbortSignal): Promise<Socket> {
  const { hostname, host = hostname, port } = target;
  const path = port === '' ? `${host}:443` : host;
  // Without the credentials: Node.js would send them once more, as those for the service.
  const address = Object.assign(new URL(proxy), { username: '', password: '' });
  const headers = { host: path, ...proxyAuthorization(proxy) };
  const request = proxy.protocol === 'https:' ? httpsRequest : httpRequest;
  const tunnel = request(address, { method: 'CONNECT', path, headers, agent: false, signal }).end();
  const [response, socket] = (await once(tunnel, 'connect')) as [IncomingMessage, Socket];
  const { statusCode = 0 } = response;
  if (statusCode >= 200 && statusCode < 300) return socket;
  socket.destroy();
  throw Object.assign(new Error('the proxy refused a tunnel'), { code: `PROXY_${statusCode}` });
}

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
