import { Agent, type AgentOptions } from 'node:https';
import type { ClientRequest } from 'node:http';
import type { TLSSocket } from 'node:tls';
import type { Axios, AxiosAdapter, AxiosError, AxiosHeaders, AxiosRequestConfig, AxiosResponse } from 'axios';
import { getProxyForUrl } from 'proxy-from-env';
import { lazy } from '../../async/promises.js';
import { SHORT_BYTES, Unanswered, type HttpRequest, type RawReply, type Send } from './exchange.js';

/** The type of the option `http.adapter`: one of axios's own adapters for Node.js, or a function. */
export type HttpAdapter = 'http' | 'fetch' | AxiosAdapter;

/** Sends through axios and an adapter that the host has chosen. */
export function axiosSender(adapter: HttpAdapter): {
  readonly load: () => Promise<Axios>;
  readonly send: Send;
} {
  const load = axiosWith(adapter);
  const send: Send = async (request, signal) => {
    const url = new URL(request.url);
    proxyFor(url); // for its error, which names the variable and shows no password
    const proxy = isLoopback(url.hostname) ? false : undefined;
    return rawReply(await answerOf(await load(), request, { proxy, signal }));
  };
  return { load, send };
}

/**
 * Sends through a proxy of the environment. For an `https:` address axios opens a tunnel, so that the proxy sees only the host.
 * Each request has its own tunnel, which closes with it. Rejects with {@link Unanswered}.
 */
export function proxySender({ protocol, hostname, port, username, password }: URL): Send {
  const load = axiosWith('http');
  const proxy = {
    protocol,
    host: hostname,
    port: Number(port) || (protocol === 'https:' ? 443 : 80),
    ...(username !== '' && { auth: { username: decoded(username), password: decoded(password) } }),
  };
  return async (request, signal) => {
    const httpsAgent = new Agent({ signal } as AgentOptions); // closes the tunnel, too, whose socket axios would leave open
    const axios = await load();
    try {
      const answer = await answerOf(axios, request, { proxy, httpsAgent, signal });
      const socket = (answer.request as ClientRequest).socket as TLSSocket | null;
      if (!request.url.startsWith('https:') || socket?.encrypted === true) return rawReply(answer);
      // The agent returns the proxy's refusal as if the service had answered.
      throw Object.assign(new Error('the proxy refused a tunnel'), { code: `PROXY_${answer.status}` });
    } catch (error) {
      const { request: sent } = error as { request?: ClientRequest };
      throw new Unanswered(error as Error, Boolean(sent?.socket));
    }
  };
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

/** Whether an address leads to this machine, so that no request leaves it. */
export function isLoopback(hostname: string): boolean {
  return (
    hostname === 'localhost' ||
    hostname.endsWith('.localhost') ||
    hostname === '[::1]' ||
    /^127(\.\d+){3}$/.test(hostname) // not 127.example.org
  );
}

/** Leaves a password with a bare `%` as it is, because many people do not encode it. */
function decoded(text: string): string {
  try {
    return decodeURIComponent(text);
  } catch {
    return text;
  }
}

function axiosWith(adapter: HttpAdapter): () => Promise<Axios> {
  return lazy(async () => {
    const { Axios: AxiosClass } = await import('axios');
    // Not axios.create(), which would take over the defaults and headers of the host's own axios.
    return new AxiosClass({
      adapter,
      decompress: false, // the transport decodes for all adapters alike
      maxRedirects: 0,
      responseType: 'arraybuffer',
    });
  });
}

async function answerOf(
  axios: Axios,
  { method, url, headers, body: data, maxBytes: maxContentLength = SHORT_BYTES }: HttpRequest,
  config: AxiosRequestConfig & { readonly signal: AbortSignal },
): Promise<AxiosResponse<unknown>> {
  const { signal } = config;
  try {
    const response = axios.request<unknown>({ ...config, method, url, headers, data, maxContentLength });
    return await Promise.race([response, abandoned(signal)]);
  } catch (error) {
    const { response } = error as AxiosError;
    if (response && !signal.aborted) return response;
    throw error;
  }
}

/** Rejects after an abort, a little later: an adapter that obeys the signal can first report whether the request was sent. */
function abandoned(signal: AbortSignal): Promise<never> {
  return new Promise((_, reject) => {
    const rejectSoon = (): void => void setImmediate(reject, new DOMException('aborted', 'AbortError'));
    signal.addEventListener('abort', rejectSoon, { once: true });
  });
}

function rawReply({ status, data, headers }: AxiosResponse<unknown>): RawReply {
  const valueOf = (name: string) =>
    (headers as AxiosHeaders).get(name) as string | string[] | null | undefined;
  return { status, data, header: (name) => valueOf(name) ?? undefined };
}
