import { setMaxListeners } from 'node:events';
import type { AxiosAdapter, InternalAxiosRequestConfig } from 'axios';
import type { Pool } from 'undici';
import * as poolModule from 'undici/lib/dispatcher/pool.js';
import { defaultExportOf } from '../default-export.js';
import { ACCEPTED_ENCODINGS } from './compressed-body.js';
import { proxyFor } from './proxy-for.js';
import { proxyAuthorization, proxyTunnel } from './proxy-tunnel.js';
import { UndiciExchange } from './undici-exchange.js';

const PoolClass = defaultExportOf(poolModule) as typeof Pool;

/** Where requests to one origin go. */
interface Route {
  readonly pool: Pool;
  /** The request line holds the whole URL: for a proxy that reads it. */
  readonly wholeUrl: boolean;
  readonly headers: Readonly<Record<string, string>>;
}

/**
 * axios on undici: two to three times the requests of axios's own adapter. Of the request config it takes what
 * Transport sets: `method`, `url`, `headers`, `data` as a string, `signal`, `maxContentLength`. It follows no redirect,
 * and no status is an error.
 */
export class UndiciAdapter {
  readonly #timeoutMs: number;
  readonly #closing = new AbortController();
  readonly #direct: Pool.Options['connect'];
  readonly #routes = new Map<string, Route>();

  /** @param timeoutMs how long a connection may take that nobody waits for any more */
  constructor(timeoutMs: number) {
    this.#timeoutMs = timeoutMs;
    setMaxListeners(0, this.#closing.signal); // every connection listens
    // undici's clock for this is coarse, and must not ring before the caller's.
    this.#direct = { timeout: timeoutMs + 1000, signal: this.#closing.signal };
  }

  readonly send: AxiosAdapter = (config) => {
    const url = new URL(config.url ?? '');
    const { pool, wholeUrl, headers } = this.#routeTo(url);
    const exchange = new UndiciExchange(config);
    pool.dispatch(
      {
        path: wholeUrl ? url.href : url.pathname + url.search,
        method: (config.method ?? 'get').toUpperCase(),
        headers: { ...headersOf(config), ...headers },
        body: config.data as string | undefined,
      },
      exchange,
    );
    return exchange.response;
  };

  #routeTo(url: URL): Route {
    const known = this.#routes.get(url.origin);
    if (known) return known;
    const route = this.#newRoute(url);
    this.#routes.set(url.origin, route);
    return route;
  }

  #newRoute(url: URL): Route {
    const proxy = proxyFor(url);
    if (proxy === undefined) return { pool: poolTo(url.origin, this.#direct), wholeUrl: false, headers: {} };
    if (url.protocol === 'https:') {
      const tunnel = proxyTunnel(proxy, this.#timeoutMs, this.#closing.signal);
      return { pool: poolTo(url.origin, tunnel), wholeUrl: false, headers: {} };
    }
    const headers = { host: url.host, ...proxyAuthorization(proxy) };
    return { pool: poolTo(proxy.origin, this.#direct), wholeUrl: true, headers };
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

function headersOf({ headers }: InternalAxiosRequestConfig): Record<string, string> {
  return { 'accept-encoding': ACCEPTED_ENCODINGS, ...headers.toJSON(true) };
}
