import { afterEach, beforeEach, describe, expect, it, jest } from '@jest/globals';
import dns from 'node:dns';
import { once } from 'node:events';
import { createServer, type RequestListener, type Server } from 'node:http';
import { createServer as createSecureServer } from 'node:https';
import type { AddressInfo, Server as NetServer, Socket } from 'node:net';
import tls from 'node:tls';
import { createProxy, type ProxyServer } from 'proxy';
import { outcomeOf } from '#support/service/exchange.js';
import type { HttpRequest } from './exchange.js';
import { Transport } from './transport.js';

const never = new AbortController().signal;
const pem = (what: string, base64: string): string =>
  `-----BEGIN ${what}-----\n${base64}\n-----END ${what}-----\n`;
// For debate.invalid, self-signed, until 2120; the key is used for nothing else.
const cert = pem(
  'CERTIFICATE',
  'MIIBcDCCARagAwIBAgIBATAKBggqhkjOPQQDAjAZMRcwFQYDVQQDDA5kZWJhdGUuaW52YWxpZDAgFw0yMDAxMDEwMDAwMDBaGA8yMTIwMDEwMTAwMDAwMFowGTEXMBUGA1UEAwwOZGViYXRlLmludmFsaWQwWTATBgcqhkjOPQIBBggqhkjOPQMBBwNCAAStl8CPOzrbEG/q3JIbAk4zN2NvECTk3AxK1xPbJV9ZnxCy9AWTnQSftkxWRdfBKD+a/9PwhFU9QDdef9QGZm1fo00wSzAZBgNVHREEEjAQgg5kZWJhdGUuaW52YWxpZDAPBgNVHRMBAf8EBTADAQH/MB0GA1UdDgQWBBSZ3joezXyN/uPsEwYcAgObgZ8RsjAKBggqhkjOPQQDAgNIADBFAiEA9Iq6lUCM+NyuFvwRGA9vFJMuvP8JkCl5GtVUmtvBtu0CIBDsId0iSZRGDmHvQWvFqErctiQhpcvpsajokuSQKbuU',
);
const key = pem(
  'PRIVATE KEY',
  'MIGHAgEAMBMGByqGSM49AgEGCCqGSM49AwEHBG0wawIBAQQglU2hW98lXX4ypBbQLchm8mt06Fl2fTUCSJUQMoYucqWhRANCAAStl8CPOzrbEG/q3JIbAk4zN2NvECTk3AxK1xPbJV9ZnxCy9AWTnQSftkxWRdfBKD+a/9PwhFU9QDdef9QGZm1f',
);

/** Enough to reach the proxy on a busy machine, before the time-out that the test is about. */
const LONG_ENOUGH_MS = 2_000;

describe('behind a forward proxy of the environment', () => {
  const environment = { ...process.env };
  const servers: NetServer[] = [];
  const sockets: Socket[] = [];
  const transports: Transport[] = [];
  /** What the service got. */
  let received: { url: string | undefined; via: boolean; authorization: string | undefined }[] = [];

  /** Called for a request that the service does not answer. */
  let onSilence: () => unknown;

  beforeEach(() => {
    received = [];
    onSilence = () => undefined;
    const { lookup } = dns;
    // The proxy, which is real, looks up the name of the service.
    jest.spyOn(dns, 'lookup').mockImplementation(((name: string, ...rest: [never]) => {
      lookup(name === 'debate.invalid' ? '127.0.0.1' : name, ...rest);
    }) as never);
  });
  afterEach(() => {
    process.env = { ...environment };
    jest.restoreAllMocks();
    for (const transport of transports.splice(0)) transport.close();
    for (const socket of sockets.splice(0)) socket.destroy();
    for (const server of servers.splice(0)) server.close();
  });

  async function listen(server: NetServer): Promise<number> {
    servers.push(server.on('connection', (socket) => sockets.push(socket)));
    server.listen(0, '127.0.0.1');
    await once(server, 'listening');
    return (server.address() as AddressInfo).port;
  }
  async function startService(protocol: 'http' | 'https'): Promise<HttpRequest> {
    const answer: RequestListener = ({ url, headers }, response) => {
      const { via, authorization } = headers;
      received.push({ url, via: via !== undefined, authorization });
      if (url?.includes('silent') === true) onSilence();
      else response.end('{}');
    };
    const server = protocol === 'https' ? createSecureServer({ cert, key }, answer) : createServer(answer);
    const url = `${protocol}://debate.invalid:${await listen(server)}/auth/logout/demo`;
    return {
      operation: 'logoutUser',
      method: 'POST',
      url,
      headers: { authorization: 'Bearer a-token' },
      body: 'a=b',
    };
  }
  async function use(proxy: Server, credentials = ''): Promise<{ connections: number }> {
    const seen = { connections: 0 };
    proxy.on('connection', () => (seen.connections += 1));
    process.env.ALL_PROXY = `http://${credentials}127.0.0.1:${await listen(proxy)}`;
    return seen;
  }
  /** @param user whom the proxy knows; absent when it lets everybody through */
  function forwardProxy(user?: string): ProxyServer {
    const proxy = createProxy(createServer());
    const expected = user && `Basic ${Buffer.from(user).toString('base64')}`;
    proxy.authenticate = ({ headers }) =>
      expected === undefined || headers['proxy-authorization'] === expected;
    return proxy;
  }
  function connectProxy(act: (socket: Socket) => unknown): Server {
    return createServer().on('connect', (_request, socket: Socket) => {
      socket.on('error', () => undefined);
      socket.resume().once('end', () => socket.end());
      act(socket);
    });
  }
  function transport(timeoutMs = 60_000): Transport {
    const made = new Transport(timeoutMs);
    transports.push(made);
    return made;
  }
  function trustTheService(): void {
    // Node.js itself calls it for each connection that brings no context of its own.
    const original = tls.createSecureContext.bind(tls);
    jest
      .spyOn(tls, 'createSecureContext')
      .mockImplementation((options) => original({ ...options, ca: cert }));
  }

  describe.each(['http', 'https'] as const)('a request to an %s service', (protocol) => {
    const answered = { reply: { status: 200, body: '{}' } };
    // The proxy reads what is for an http address, and only the host of the others.
    const arrived = { url: '/auth/logout/demo', via: protocol === 'http', authorization: 'Bearer a-token' };

    it('goes through the proxy', async () => {
      trustTheService();
      const seen = await use(forwardProxy());
      const [post, one] = [await startService(protocol), transport()];
      for (let call = 0; call < 3; call += 1)
        expect(await outcomeOf(one.exchange(post, never))).toMatchObject(answered);
      expect(received).toEqual([arrived, arrived, arrived]);
      expect(seen.connections).toBeGreaterThan(0);
    });

    it('brings the credentials of the proxy', async () => {
      trustTheService();
      const post = await startService(protocol);
      for (const [written, user] of [
        ['name:secret', 'name:secret'],
        ['na%40me:p%25ss', 'na@me:p%ss'],
        ['name:100%', 'name:100%'],
      ]) {
        await use(forwardProxy(user), `${written}@`);
        expect(await outcomeOf(transport().exchange(post, never))).toMatchObject(answered);
      }
      expect(received).toEqual([arrived, arrived, arrived]);
    });

    it('does not go through it where NO_PROXY excludes its host', async () => {
      trustTheService();
      const seen = await use(forwardProxy());
      process.env.NO_PROXY = 'other.invalid,.invalid';
      expect(await outcomeOf(transport().exchange(await startService(protocol), never))).toMatchObject(
        answered,
      );
      expect(received).toEqual([{ ...arrived, via: false }]);
      expect(seen.connections).toBe(0);
    });

    it('may have arrived when it is aborted before the service answers', async () => {
      trustTheService();
      await use(forwardProxy());
      const post = await startService(protocol);
      const patience = new AbortController();
      onSilence = () => {
        patience.abort();
      };
      const exchange = transport().exchange({ ...post, url: `${post.url}/silent` }, patience.signal);
      expect(await outcomeOf(exchange)).toEqual({
        failure: { kind: 'aborted', reason: 'ABORTED', sent: true },
      });
      expect(received).toHaveLength(1);
    });

    it('fails once when nobody listens at the proxy', async () => {
      const proxy = forwardProxy();
      await use(proxy);
      proxy.close();
      await once(proxy, 'close');
      expect(await outcomeOf(transport().exchange(await startService(protocol), never))).toEqual({
        failure: { kind: 'network', reason: 'ECONNREFUSED', sent: false },
      });
    });
  });

  it('an https service is not reached when the proxy refuses the credentials', async () => {
    const seen = await use(forwardProxy('name:secret'), 'name:wrong@');
    expect(await outcomeOf(transport().exchange(await startService('https'), never))).toEqual({
      failure: { kind: 'network', reason: 'PROXY_407', sent: false },
    });
    expect(seen.connections).toBe(1);
    expect(received).toEqual([]);
  });

  it('an http service is not reached when the proxy refuses the credentials', async () => {
    await use(forwardProxy('name:secret'), 'name:wrong@');
    const outcome = await outcomeOf(transport().exchange(await startService('http'), never));
    expect(outcome).toMatchObject({ reply: { status: 407 } });
    expect(received).toEqual([]);
  });

  it.each([403, 404, 502])('the refusal %d of a tunnel is not taken for the service’s', async (status) => {
    await use(connectProxy((socket) => socket.end(`HTTP/1.1 ${status} No\r\ncontent-length: 0\r\n\r\n`)));
    expect(await outcomeOf(transport().exchange(await startService('https'), never))).toEqual({
      failure: { kind: 'network', reason: `PROXY_${status}`, sent: false },
    });
  });

  it('the certificate of the service is checked before anything is sent', async () => {
    await use(forwardProxy());
    const outcome = await outcomeOf(transport().exchange(await startService('https'), never));
    expect(outcome).toMatchObject({ failure: { kind: 'network', reason: 'DEPTH_ZERO_SELF_SIGNED_CERT' } });
    expect(received).toEqual([]);
  });

  it('a proxy is left after the time-out, and is not tried again', async () => {
    const silences: ((socket: Socket) => unknown)[] = [
      () => undefined, // says nothing
      (socket) => socket.write('HTTP/1.1 200 OK\r\n\r\n'), // opens a tunnel, and then says nothing
      (socket) => socket.end(),
    ];
    const post = await startService('https');
    const left: Promise<void>[] = [];
    for (const act of silences) {
      const proxy = connectProxy(act);
      const seen = await use(proxy);
      const ended = [outcomeOf(transport(LONG_ENOUGH_MS).exchange(post, never)), closing(proxy)] as const;
      const leave = async (): Promise<void> => {
        const [outcome] = await Promise.all(ended);
        expect(outcome).toMatchObject({ failure: { kind: 'timeout', reason: 'TIMEOUT' } });
        expect(seen.connections).toBe(1);
      };
      left.push(leave());
    }
    await Promise.all(left);
  });

  it('a proxy that resets the connection is not tried again', async () => {
    const seen = await use(connectProxy((socket) => socket.resetAndDestroy()));
    expect(await outcomeOf(transport().exchange(await startService('https'), never))).toEqual({
      failure: { kind: 'network', reason: 'ECONNRESET', sent: false },
    });
    expect(seen.connections).toBe(1);
  });

  it('an aborted call leaves no connection to the proxy', async () => {
    const proxy = connectProxy(() => undefined);
    await use(proxy);
    const closed = closing(proxy);
    const patience = new AbortController();
    const exchange = outcomeOf(transport().exchange(await startService('https'), patience.signal));
    await once(proxy, 'connect');
    patience.abort();
    expect(await exchange).toEqual({ failure: { kind: 'aborted', reason: 'ABORTED', sent: false } });
    await closed;
  });
});

/** Ends with the connection to the proxy. */
async function closing(proxy: Server): Promise<void> {
  const [, socket] = (await once(proxy, 'connect')) as [unknown, Socket];
  await new Promise((resolve) => socket.once('close', resolve)); // be it with an error
}
