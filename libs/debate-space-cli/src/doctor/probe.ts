import { isHtml } from 'nestjs-debate-space/internal';
import { Agent, ProxyAgent, request, type Dispatcher } from 'undici';
import { codeOf, Failure } from '../failure.js';
import { proxySetting } from './proxy.js';

/** What the service answered to one request, or the system's code for why there was no answer. */
export type Probed =
  | {
      readonly status: number;
      /** As JSON; `undefined` when it is none. */
      readonly body: unknown;
      /** Whether something else than the service has answered, such as a firewall. */
      readonly isWebPage: boolean;
      readonly header: (name: string) => string | undefined;
      /** The service's clock minus this one's, in milliseconds; `undefined` without a `Date`. */
      readonly skewMs: number | undefined;
    }
  | { readonly code: string };

export interface ProbeRequest {
  readonly method: 'GET' | 'POST';
  readonly url: string;
  readonly headers?: Readonly<Record<string, string>>;
  readonly form?: Readonly<Record<string, string>>;
}

const TIMEOUT_MS = 10_000;
const MAX_BYTES = 1024 * 1024;

/** Asks the service directly: what comes back is looked at here, not acted upon. Goes through the proxy of the environment. */
export class Probe {
  readonly #dispatchers = new Map<string | undefined, Dispatcher>();
  readonly #interrupted: AbortSignal;

  constructor(interrupted: AbortSignal) {
    this.#interrupted = interrupted;
  }

  async ask({ method, url, headers, form }: ProbeRequest): Promise<Probed> {
    const began = Date.now();
    try {
      const {
        statusCode,
        headers: answered,
        body,
      } = await request(url, {
        method,
        headers: {
          accept: 'application/json',
          'user-agent': 'debate-space doctor',
          'content-type': form === undefined ? 'application/json' : 'application/x-www-form-urlencoded',
          ...headers,
        },
        body: form === undefined ? undefined : new URLSearchParams(form).toString(),
        signal: AbortSignal.any([this.#interrupted, AbortSignal.timeout(TIMEOUT_MS)]),
        dispatcher: this.#dispatcherTo(url),
      });
      const text = await body.text();
      const header = (name: string): string | undefined => [answered[name]].flat()[0];
      const isWebPage = isHtml(text, header('content-type'));
      return {
        status: statusCode,
        body: json(text),
        isWebPage,
        header,
        skewMs: skewMs(header('date'), began),
      };
    } catch (error) {
      if (this.#interrupted.aborted) throw new Failure('unfinished', 'Interrupted.');
      const isLate = error instanceof Error && error.name === 'TimeoutError';
      return { code: isLate ? 'ETIMEDOUT' : codeOf(error) };
    }
  }

  async close(): Promise<void> {
    for (const dispatcher of this.#dispatchers.values()) await dispatcher.destroy();
  }

  #dispatcherTo(address: string): Dispatcher {
    const proxy = proxySetting(address)?.url;
    const known = this.#dispatchers.get(proxy?.href);
    if (known) return known;
    const dispatcher = proxy
      ? new ProxyAgent({
          uri: proxy.origin,
          token: `Basic ${Buffer.from(`${proxy.username}:${proxy.password}`).toString('base64')}`,
          proxyTunnel: false, // to an http: address, as the plugin does
          maxResponseSize: MAX_BYTES,
        })
      : new Agent({ maxResponseSize: MAX_BYTES });
    this.#dispatchers.set(proxy?.href, dispatcher);
    return dispatcher;
  }
}

function json(text: string): unknown {
  try {
    return JSON.parse(text) as unknown;
  } catch {
    return undefined;
  }
}

/** `Date` has whole seconds, so half of one is added; the request is taken to have arrived half-way. */
function skewMs(date: string | undefined, began: number): number | undefined {
  const told = Date.parse(date ?? '');
  return Number.isNaN(told) ? undefined : told + 500 - (began + Date.now()) / 2;
}
