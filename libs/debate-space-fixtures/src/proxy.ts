import { once } from 'node:events';
import { createServer, request } from 'node:http';
import type { AddressInfo } from 'node:net';

/** A request as it reached a proxy. */
export interface ProxiedRequest {
  readonly url: string | undefined;
  readonly authorization: string | undefined;
}

export interface ProxyServer {
  readonly url: string;
  readonly requests: readonly ProxiedRequest[];
  stop(): Promise<void>;
}

/** A proxy for plain HTTP that takes every host for the one of `target`. */
export async function startProxy(target: string): Promise<ProxyServer> {
  const requests: ProxiedRequest[] = [];
  const server = createServer((incoming, outgoing) => {
    const { method, url = '', headers } = incoming;
    requests.push({ url, authorization: headers['proxy-authorization'] });
    const { pathname, search } = new URL(url);
    const passed = request(new URL(pathname + search, target), { method, headers }, (answer) => {
      outgoing.writeHead(answer.statusCode ?? 502, answer.headers);
      answer.pipe(outgoing);
    });
    incoming.pipe(passed);
  });
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  return {
    url: `http://127.0.0.1:${(server.address() as AddressInfo).port}`,
    requests,
    stop: async () => {
      server.closeAllConnections();
      server.close();
      await once(server, 'close');
    },
  };
}
