import { HttpRequest, RawReply } from './undici-sender.js';
import { HttpReply } from './answer.js';
import type { Axios, AxiosAdapter, AxiosHeaders, AxiosResponse } from 'axios';
import { AbortedError } from '../../errors.js';
import { withCombinedSignal } from '../../async/combined-signal.js';
import { lazy } from '../../async/lazy.js';
import { isLoopback } from '../../options/option-problem.js';
import { Failure } from './answer.js';
import { retryAfterMs } from './service-pause.js';
import { proxyFor, UndiciSender } from './undici-sender.js';
import type { ServicePause } from './service-pause.js';
import { MAX_RESPONSE_BYTES, tooLarge, transportFailure } from './transport-failure.js';

/** What the option `http.adapter` takes: one of axios's own adapters for Node.js, or a function. */
export type HttpAdapter = 'http' | 'fetch' | AxiosAdapter;

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
