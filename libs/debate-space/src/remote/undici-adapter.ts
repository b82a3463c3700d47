import { setMaxListeners } from 'node:events';
import { promisify } from 'node:util';
import { brotliDecompress, unzip } from 'node:zlib';
import {
  AxiosError,
  CanceledError,
  type AxiosAdapter,
  type AxiosResponse,
  type InternalAxiosRequestConfig,
} from 'axios';
import type { Dispatcher, Pool } from 'undici';
import * as poolModule from 'undici/lib/dispatcher/pool.js';
import { defaultExportOf } from '../default-export.js';
import { proxyAuthorization, proxyFor, proxyTunnel } from './proxy.js';

const ACCEPTED_ENCODINGS = 'gzip, br';
/** zlib's code for what is longer than `maxOutputLength`; it stops there. */
const TOO_LARGE = 'ERR_BUFFER_TOO_LARGE';

/** `unzip` knows gzip and deflate by their first bytes; deflate was never asked for, some send it all the same. */
const [unzipped, unbrotlied] = [promisify(unzip), promisify(brotliDecompress)];
const DECOMPRESS = new Map<unknown, typeof unzipped | typeof unbrotlied>([
  ['gzip', unzipped],
  ['x-gzip', unzipped],
  ['deflate', unzipped],
  ['br', unbrotlied],
]);

/** undici has codes of its own for what Node's own client names like the system does. */
const SYSTEM_CODES: Readonly<Partial<Record<string, string>>> = {
  UND_ERR_SOCKET: 'ECONNRESET', // the other side closed the connection
  UND_ERR_RES_CONTENT_LENGTH_MISMATCH: 'ECONNRESET',
  UND_ERR_CONNECT_TIMEOUT: 'ETIMEDOUT',
  ABORT_ERR: 'ETIMEDOUT',
};

const PoolClass = defaultExportOf(poolModule) as typeof Pool;

/** Where requests to one origin go. */
interface Route {
  readonly pool: Pool;
  /** Of a proxy that reads the request: its line holds the whole URL. */
  readonly proxyHeaders?: Readonly<Record<string, string>>;
}

/**
 * axios on undici: two to three times the requests of axios's own adapter. Of the request config it takes what
 * Transport sets: `method`, `url`, `headers`, `data` as a string, `signal`, `maxContentLength`. It follows no redirect,
 * and no status is an error.
 */
export class UndiciAdapter {
  readonly #timeoutMs: number;
  readonly #closing = new AbortController();
  readonly #routes = new Map<string, Route>();

  /** @param timeoutMs how long a connection may take that nobody waits for any more */
  constructor(timeoutMs: number) {
    this.#timeoutMs = timeoutMs;
    setMaxListeners(0, this.#closing.signal); // every connection listens
  }

  readonly send: AxiosAdapter = (config) => {
    const url = new URL(config.url ?? '');
    const route = this.#routes.get(url.origin) ?? this.#routeTo(url);
    this.#routes.set(url.origin, route);
    const { pool, proxyHeaders } = route;
    const exchange = new UndiciExchange(config);
    pool.dispatch(
      {
        path: proxyHeaders ? url.href : url.pathname + url.search,
        method: (config.method ?? 'get').toUpperCase(),
        headers: { 'accept-encoding': ACCEPTED_ENCODINGS, ...config.headers.toJSON(true), ...proxyHeaders },
        body: config.data as string | undefined,
      },
      exchange,
    );
    return exchange.response;
  };

  #routeTo(url: URL): Route {
    const { signal } = this.#closing;
    // undici's clock for this is coarse, and must not ring before the caller's.
    const direct = { timeout: this.#timeoutMs + 1000, signal };
    const proxy = proxyFor(url);
    if (proxy === undefined) return { pool: poolTo(url.origin, direct) };
    if (url.protocol === 'https:')
      return { pool: poolTo(url.origin, proxyTunnel(proxy, this.#timeoutMs, signal)) };
    const proxyHeaders = { host: url.host, ...proxyAuthorization(proxy) };
    return { pool: poolTo(proxy.origin, direct), proxyHeaders };
  }

  /** Closes every connection, those that are being opened included. */
  close(): void {
    this.#closing.abort();
    for (const { pool } of this.#routes.values()) void pool.destroy();
  }
}

/**
 * Not undici's Agent: when a connection breaks while a request waits for it, an Agent 7.30 replaces the origin's pool,
 * counts the old one's connections with the new one's, and from then on opens a connection for every request.
 */
function poolTo(origin: string, connect: Pool.Options['connect']): Pool {
  return new PoolClass(origin, {
    connect,
    pipelining: 1,
    keepAliveMaxTimeout: 30_000, // some firewalls forget connections long before servers do
    headersTimeout: 0, // the caller's signal is the only time-out
    bodyTimeout: 0,
  });
}

/** One request and its answer: what undici calls while they pass, and the response in axios's form. */
class UndiciExchange implements Dispatcher.DispatchHandler {
  readonly response: Promise<AxiosResponse<string>>;
  /** Whether the service can have seen any of the request: there was a connection, and writing began. */
  sent = false;
  readonly #config: InternalAxiosRequestConfig;
  readonly #limit: number;
  #settle!: { resolve: (response: AxiosResponse<string>) => void; reject: (error: AxiosError) => void };
  #controller: Dispatcher.DispatchController | undefined;
  #status = 0;
  #headers: AxiosResponse['headers'] = {};
  #chunks: Buffer[] = [];
  #bytes = 0;
  #givenUp: AxiosError | undefined;

  /** @param config with `maxContentLength` */
  constructor(config: InternalAxiosRequestConfig) {
    this.#config = config;
    this.#limit = config.maxContentLength ?? 0;
    this.response = new Promise((resolve, reject) => {
      this.#settle = { resolve, reject };
    });
    config.signal?.addEventListener?.('abort', () => {
      this.#giveUp(new CanceledError(undefined, config, this));
    });
  }

  onRequestStart(controller: Dispatcher.DispatchController): void {
    if (this.#givenUp) throw this.#givenUp; // leaves the connection to the next request
    this.#controller = controller;
    this.sent = true;
  }

  onResponseStart(_controller: unknown, status: number, headers: AxiosResponse['headers']): void {
    this.#status = status; // those of 1xx are overwritten
    this.#headers = headers;
  }

  onResponseData(controller: Dispatcher.DispatchController, chunk: Buffer): void {
    this.#bytes += chunk.length;
    if (this.#bytes <= this.#limit) this.#chunks.push(chunk);
    else controller.abort(Object.assign(new Error('the response is too large'), { code: TOO_LARGE }));
  }

  onResponseEnd(): void {
    const body = Buffer.concat(this.#chunks, this.#bytes);
    const decompress = DECOMPRESS.get(this.#headers['content-encoding']);
    if (body.length === 0 || decompress === undefined) this.#complete(body);
    else
      decompress(body, { maxOutputLength: this.#limit }).then(
        this.#complete.bind(this),
        this.#fail.bind(this),
      );
  }

  onResponseError(_controller: unknown, error: Error): void {
    this.#fail(error);
  }

  #giveUp(reason: AxiosError): void {
    this.#givenUp = reason;
    this.#settle.reject(reason); // undici would only say so once there is a connection
    this.#controller?.abort(reason);
  }

  #complete(body: Buffer): void {
    const response = {
      data: body.length === 0 ? '' : new TextDecoder().decode(body),
      status: this.#status,
      statusText: '',
      headers: this.#headers,
      config: this.#config,
      request: this,
    };
    // undici frees the connection in an immediate of its own, which it asks for next. A request made before that would
    // open another one.
    queueMicrotask(() => setImmediate(this.#settle.resolve, response));
  }

  #fail(error: NodeJS.ErrnoException): void {
    const { code = 'UNKNOWN' } = error;
    const failure = new AxiosError(error.message, SYSTEM_CODES[code] ?? code, this.#config, this);
    failure.cause = error;
    this.#settle.reject(failure);
  }
}
