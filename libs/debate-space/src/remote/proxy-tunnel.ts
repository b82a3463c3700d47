import { once } from 'node:events';
import { request as httpRequest, type IncomingMessage } from 'node:http';
import { request as httpsRequest } from 'node:https';
import { isIP, type Socket } from 'node:net';
import { connect as connectTls } from 'node:tls';
import type { buildConnector } from 'undici';
import { withLinkedSignal } from '../linked-signal.js';

/**
 * Opens connections to an HTTPS service through a proxy: the proxy sees the host and nothing else. undici's ProxyAgent
 * is not used because it tries again without end, and without a pause, when the proxy closes the connection instead of
 * answering; and it waits long after the request has been given up.
 * @param timeoutMs from the beginning to the end of the TLS handshake
 * @param closing ends what is being opened
 */
export function proxyTunnel(proxy: URL, timeoutMs: number, closing: AbortSignal): buildConnector.connector {
  return (target, callback) => {
    withLinkedSignal([closing], timeoutMs, async ({ signal }) => {
      const tunnel = await connect(proxy, target, signal);
      const { hostname } = target;
      const servername = isIP(hostname) === 0 ? hostname : '';
      const options = { socket: tunnel, host: hostname, servername, ALPNProtocols: ['http/1.1'], signal };
      const socket = connectTls(options);
      await once(socket, 'secureConnect');
      return socket;
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
  const request = (proxy.protocol === 'https:' ? httpsRequest : httpRequest)(address, {
    method: 'CONNECT',
    path,
    headers: { host: path, ...proxyAuthorization(proxy) },
    agent: false,
    signal,
  });
  const [response, socket] = (await once(request.end(), 'connect')) as [IncomingMessage, Socket];
  const { statusCode = 0 } = response;
  if (statusCode >= 200 && statusCode < 300) return socket;
  socket.destroy();
  throw Object.assign(new Error('the proxy refused a tunnel'), { code: `PROXY_${statusCode}` });
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
