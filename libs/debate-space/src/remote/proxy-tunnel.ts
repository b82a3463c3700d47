import { once } from 'node:events';
import http from 'node:http';
import https from 'node:https';
import { isIP, type Socket } from 'node:net';
import tls from 'node:tls';
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
      const socket = tls.connect(options);
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
  const request = (proxy.protocol === 'https:' ? https : http).request(proxy, {
    method: 'CONNECT',
    path,
    headers: { host: path, ...proxyAuthorization(proxy) },
    auth: null, // or the proxy's password would be sent once more, as one for the service
    agent: false,
    signal,
  });
  const [response, socket] = (await once(request.end(), 'connect')) as [http.IncomingMessage, Socket];
  const { statusCode = 0 } = response;
  if (statusCode >= 200 && statusCode < 300) return socket;
  socket.destroy();
  throw Object.assign(new Error('the proxy refused a tunnel'), { code: `PROXY_${statusCode}` });
}

/** Basic (RFC 7617), when the proxy's URL has a user name. */
export function proxyAuthorization({ username, password }: URL): Record<string, string> {
  if (username === '') return {};
  const pair = `${decodeURIComponent(username)}:${decodeURIComponent(password)}`;
  return { 'proxy-authorization': `Basic ${Buffer.from(pair).toString('base64')}` };
}
