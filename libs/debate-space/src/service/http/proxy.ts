import { once } from 'node:events';
import { request as httpRequest, type IncomingMessage } from 'node:http';
import { request as httpsRequest } from 'node:https';
import { isIP, type Socket } from 'node:net';
import { connect as connectTls } from 'node:tls';
import { getProxyForUrl } from 'proxy-from-env';
import type { buildConnector } from 'undici';
import { withCombinedSignal } from '../../async/combined-signal.js';
import { isLoopback } from '../../options/service-url.js';

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
export function proxyTunnel(proxy: URL, timeoutMs: number, closing: AbortSignal): buildConnector.connector {
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
