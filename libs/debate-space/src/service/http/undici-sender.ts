import { setMaxListeners } from 'node:events';
import type { IncomingHttpHeaders } from 'node:http';
import type { Dispatcher, Pool } from 'undici';
import { lazy } from '../../async/promises.js';
import { SHORT_BYTES, TOO_LARGE, Unanswered, type RawReply, type Send } from './exchange.js';

/** Sends on undici's `Pool`: about twice as many requests as axios's own adapter. Rejects with {@link Unanswered}. */
export class UndiciSender {
  /** Loads undici's `Pool`. */
  readonly load = lazy(async () => {
    Reflect.get(globalThis, 'Response'); // loads Node's own fetch first, which would otherwise take this undici's dispatcher
    return (await import('undici')).Pool;
  });
  /**
   * By origin. Not undici's Agent: when a connection breaks while a request waits for it, an Agent 7.30 replaces the origin's
   * pool, counts the old one's connections with the new one's, and then opens a connection for every request.
   */
  readonly #pools = new Map<string, Pool>();
  readonly #closing = new AbortController();

  /** @param timeoutMs how long a connection may take to open */
  constructor(private readonly timeoutMs: number) {
    setMaxListeners(0, this.#closing.signal); // every connection listens
  }

  readonly send: Send = async ({ method, url, headers, body, maxBytes = SHORT_BYTES }, signal) => {
    const { origin, pathname, search } = new URL(url);
    const pool = this.#pools.get(origin) ?? (await this.#open(origin));
    const exchange = new Exchange(signal, maxBytes);
    const options = { path: pathname + search, method, headers, body };
    if (!signal.aborted) pool.dispatch(options, exchange);
    return exchange.reply;
  };

  async #open(origin: string): Promise<Pool> {
    const PoolClass = await this.load().catch((error: unknown) => {
      throw new Unanswered(error as Error, false);
    });
    const { signal } = this.#closing;
    const open = new PoolClass(origin, {
      connect: { timeout: this.timeoutMs + 1_000, signal }, // longer than the caller's time-out: undici's clock is coarse
      pipelining: 1,
      keepAliveMaxTimeout: 30_000, // some firewalls forget connections long before servers do
      headersTimeout: 0, // the caller's signal is the only time-out
      bodyTimeout: 0,
    });
    const pool = this.#pools.get(origin) ?? open; // another request may have come first
    this.#pools.set(origin, pool);
    return pool;
  }

  /** Closes every connection, open or opening. */
  close(): void {
    this.#closing.abort();
    for (const pool of this.#pools.values()) void pool.destroy();
  }
}

/** undici's handler for one request and its answer. */
class Exchange implements Dispatcher.DispatchHandler {
  readonly reply: Promise<RawReply>;
  #settle!: { resolve: (reply: RawReply) => void; reject: (error: Unanswered) => void };
  #controller: Dispatcher.DispatchController | undefined;
  #status = 0;
  #headers: IncomingHttpHeaders = {};
  readonly #chunks: Buffer[] = [];
  #bytes = 0;
  #abandoned: Error | undefined;

  constructor(
    signal: AbortSignal,
    private readonly maxBytes: number,
  ) {
    this.reply = new Promise((resolve, reject) => {
      this.#settle = { resolve, reject };
    });
    if (signal.aborted) this.#abandon();
    else signal.addEventListener('abort', this.#abandon, { once: true });
  }

  readonly #abandon = (): void => {
    this.#abandoned = new Error('aborted');
    this.onResponseError(undefined, this.#abandoned); // undici reports an abort only once there is a connection
    this.#controller?.abort(this.#abandoned);
  };

  onRequestStart(controller: Dispatcher.DispatchController): void {
    if (this.#abandoned) throw this.#abandoned; // the next request gets the connection
    this.#controller = controller; // connected: the request is written now
  }

  onResponseStart(_controller: unknown, status: number, headers: IncomingHttpHeaders): void {
    this.#status = status; // overwrites a 1xx
    this.#headers = headers;
  }

  onResponseData(controller: Dispatcher.DispatchController, chunk: Buffer): void {
    this.#bytes += chunk.length;
    if (this.#bytes <= this.maxBytes) this.#chunks.push(chunk);
    else controller.abort(Object.assign(new Error('the response is too large'), { code: TOO_LARGE }));
  }

  onResponseEnd(): void {
    const headers = this.#headers;
    const data = Buffer.concat(this.#chunks, this.#bytes);
    const reply = { status: this.#status, data, header: (name: string) => headers[name] };
    // undici frees the connection in an immediate that it schedules next. An earlier request would open another connection.
    queueMicrotask(() => setImmediate(this.#settle.resolve, reply));
  }

  onResponseError(_controller: unknown, error: Error): void {
    this.#settle.reject(new Unanswered(error, this.#controller !== undefined));
  }
}
