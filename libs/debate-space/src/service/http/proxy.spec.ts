import { afterEach, beforeEach, describe, expect, it, jest } from '@jest/globals';
import { once } from 'node:events';
import { createServer, type Server } from 'node:http';
import { createServer as createSecureServer } from 'node:https';
import { connect, type AddressInfo, type Server as NetServer, type Socket } from 'node:net';
import tls from 'node:tls';
import { outcomeOf } from 'debate-space-fixtures/exchange.js';
import { Transport } from './transport.js';

const url = 'https://debate.invalid/auth/logout/demo';
const post = { method: 'POST', url, headers: { authorization: 'Bearer a-token' }, body: 'a=b' } as const;
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

describe('the tunnel through a proxy', () => {
  const environment = { ...process.env };
  const servers: NetServer[] = [];
  const sockets: Socket[] = [];
  const transports: Transport[] = [];
  /** What the service behind the proxy got. */
  let received: unknown[] = [];
  let service: NetServer;

  beforeEach(async () => {
    received = [];
    service = createSecureServer({ cert, key }, (request, response) => {
      received.push({ url: request.url, authorization: request.headers.authorization });
      if (!request.url?.includes('silent')) response.end('{}');
    });
    await listen(service);
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
  async function startProxy(act: (socket: Socket) => unknown, credentials = ''): Promise<Server> {
    const proxy = createServer().on('connect', (_request, socket: Socket) => {
      socket.on('error', () => undefined);
      act(socket);
    });
    process.env.HTTPS_PROXY = `http://${credentials}127.0.0.1:${await listen(proxy)}`;
    return proxy;
  }
  function open(socket: Socket): void {
    const upstream = connect((service.address() as AddressInfo).port, '127.0.0.1', () => {
      socket.write('HTTP/1.1 200 OK\r\n\r\n');
      upstream.pipe(socket).pipe(upstream);
    });
    upstream.on('error', () => undefined);
  }
  function counted(proxy: Server): { count: number } {
    const connects = { count: 0 };
    proxy.on('connect', () => (connects.count += 1));
    return connects;
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

  it('is one for calls one after the other', async () => {
    trustTheService();
    const connects = counted(await startProxy(open));
    const one = transport();
    for (let call = 0; call < 3; call += 1) {
      expect(await outcomeOf(one.exchange(post, never))).toMatchObject({
        reply: { status: 200, body: '{}' },
      });
    }
    const got = { url: '/auth/logout/demo', authorization: 'Bearer a-token' };
    expect(received).toEqual([got, got, got]);
    expect(connects.count).toBe(1);
  });

  it('is requested with the credentials of the proxy, and with nothing for the service', async () => {
    const seen: unknown[] = [];
    const proxy = await startProxy((socket) => socket.end('HTTP/1.1 407 No\r\n\r\n'), 'user:p%40ss@');
    proxy.on('connect', ({ headers }) => seen.push(headers));
    expect(await outcomeOf(transport().exchange(post, never))).toEqual({
      failure: { kind: 'network', reason: 'PROXY_407', sent: false },
    });
    const basic = `Basic ${Buffer.from('user:p@ss').toString('base64')}`;
    expect(seen).toEqual([{ host: 'debate.invalid:443', 'proxy-authorization': basic, connection: 'close' }]);
  });

  it('is requested with a password that has a bare %, as it stands', async () => {
    const seen: unknown[] = [];
    const proxy = await startProxy((socket) => socket.end('HTTP/1.1 407 No\r\n\r\n'), 'user:100%@');
    proxy.on('connect', ({ headers }) => seen.push(headers['proxy-authorization']));
    await outcomeOf(transport().exchange(post, never));
    expect(seen).toEqual([`Basic ${Buffer.from('user:100%').toString('base64')}`]);
  });

  it('is checked for the service’s certificate before anything is sent', async () => {
    await startProxy(open);
    expect(await outcomeOf(transport().exchange(post, never))).toEqual({
      failure: { kind: 'network', reason: 'DEPTH_ZERO_SELF_SIGNED_CERT', sent: false },
    });
    expect(received).toEqual([]);
  });

  it('is known to have led a request to the service that was not answered', async () => {
    trustTheService();
    await startProxy(open);
    expect(await outcomeOf(transport(300).exchange({ ...post, url: `${url}/silent` }, never))).toEqual({
      failure: { kind: 'timeout', reason: 'TIMEOUT', sent: true },
    });
    expect(received).toHaveLength(1);
  });

  it('is not requested again when the proxy hangs up', async () => {
    const connects = counted(await startProxy((socket) => socket.destroy()));
    expect(await outcomeOf(transport().exchange(post, never))).toEqual({
      failure: { kind: 'network', reason: 'ECONNRESET', sent: false },
    });
    expect(connects.count).toBe(1);
  });

  const silences: [string, (socket: Socket) => unknown][] = [
    ['says nothing', () => undefined],
    ['opens it and then says nothing', (socket) => socket.write('HTTP/1.1 200 OK\r\n\r\n')],
  ];
  describe.each(silences)('of a proxy that %s', (_what, act) => {
    it('ends with the time-out', async () => {
      const ended = closing(await startProxy(quiet(act)));
      expect(await outcomeOf(transport(100).exchange(post, never))).toEqual({
        failure: { kind: 'timeout', reason: 'TIMEOUT', sent: false },
      });
      await ended;
    });

    it('ends with the transport, and the call before that when it is aborted', async () => {
      const proxy = await startProxy(quiet(act));
      const ended = closing(proxy);
      const patience = new AbortController();
      const one = transport();
      const exchange = outcomeOf(one.exchange(post, patience.signal));
      await once(proxy, 'connect');
      patience.abort();
      expect(await exchange).toEqual({ failure: { kind: 'aborted', reason: 'ABORTED', sent: false } });
      one.close();
      await ended;
    });
  });
});

function quiet(act: (socket: Socket) => unknown): (socket: Socket) => void {
  return (socket) => {
    act(socket);
    socket.resume().once('end', () => socket.end());
  };
}

/** Ends with the connection to the proxy. */
async function closing(proxy: Server): Promise<void> {
  const [, socket] = (await once(proxy, 'connect')) as [unknown, Socket];
  await new Promise((resolve) => socket.once('close', resolve)); // be it with an error
}
