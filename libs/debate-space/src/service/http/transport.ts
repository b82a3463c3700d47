import { withCombinedSignal } from '../../async/combined-signal.js';
import { AbortedError } from '../../errors.js';
import { axiosSender, proxyFor, proxySender, type HttpAdapter } from './axios-sender.js';
import {
  MAX_RESPONSE_BYTES,
  type HttpReply,
  type HttpRequest,
  type RawReply,
  type Send,
} from './exchange.js';
import { Failure, tooLarge, transportFailure } from './failure.js';
import { retryAfterMs, type ServicePause } from './service-pause.js';
import { UndiciSender } from './undici-sender.js';

/** Nothing compressed: the answers are short. */
const HEADERS = {
  Accept: 'application/json',
  'Accept-Encoding': 'identity',
  'User-Agent': 'nestjs-debate-space',
};

/**
 * One HTTP exchange, once, with no retry and no redirect. The error of an adapter holds the request with its keys and
 * tokens, so none leaves this file. The time-out and the abort work with every adapter, also with one that ignores its
 * signal.
 */
export class Transport {
  /** Loads what sends, which is needed with the first request only. */
  readonly load: () => Promise<unknown>;
  readonly #undici: UndiciSender;
  readonly #chosen: Send | undefined;
  /** By origin. */
  readonly #senders = new Map<string, Send>();
  readonly #timeoutMs: number;
  readonly #pause: ServicePause | undefined;

  /**
   * @param adapter default: undici, or axios's `http` adapter where there is a proxy for the address
   * @param pause notes the pauses that the service asks for
   */
  constructor(timeoutMs: number, adapter?: HttpAdapter, pause?: ServicePause) {
    this.#timeoutMs = timeoutMs;
    this.#pause = pause;
    this.#undici = new UndiciSender(timeoutMs);
    const chosen = adapter && axiosSender(adapter);
    this.#chosen = chosen?.send;
    this.load = chosen?.load ?? this.#undici.load;
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
    const headers = { ...HEADERS, ...request.headers };
    return withCombinedSignal([signal], timeoutMs, async (combined) => {
      let raw: RawReply;
      try {
        const send = this.#chosen ?? this.#senderFor(request.url);
        raw = await send({ ...request, headers }, combined.signal);
      } catch (error) {
        throw transportFailure(error, combined);
      }
      const reply = replyOf(raw);
      this.#pause?.record(reply.status, reply.retryAfterMs);
      // An adapter of the host's may not know maxContentLength.
      if (reply.body.length > MAX_RESPONSE_BYTES) throw tooLarge();
      return reply;
    });
  }

  #senderFor(address: string): Send {
    const url = new URL(address);
    const known = this.#senders.get(url.origin);
    if (known) return known;
    const proxy = proxyFor(url);
    const send = proxy ? proxySender(proxy) : this.#undici.send;
    this.#senders.set(url.origin, send);
    return send;
  }

  /** Closes the connections. */
  close(): void {
    this.#undici.close();
  }
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
