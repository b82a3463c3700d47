import { afterEach, describe, expect, it } from '@jest/globals';
import { once, setMaxListeners } from 'node:events';
import { createServer } from 'node:http';
import {
  createServer as createTcpServer,
  type AddressInfo,
  type Server as NetServer,
  type Socket,
} from 'node:net';
import { setTimeout as setTimeoutAsync } from 'node:timers/promises';
import { inspect } from 'node:util';
import axios from 'axios';
import { outcomeOf } from '#support/service/exchange.js';
import { errorOf, serviceClients } from '#support/service/service-clients.js';
import { Transport } from './transport.js';
import { UndiciSender } from './undici-sender.js';

const { simulator, scripted, client } = serviceClients();
const never = new AbortController().signal;
setMaxListeners(0, never);
const open = { http: { allowInsecureHttp: true, rateLimit: false, maxAttempts: 1 } } as const;

describe('the way to the service', () => {
  const environment = { ...process.env };
  afterEach(() => {
    process.env = { ...environment };
  });

  it('asks for an answer that is not compressed', async () => {
    const service = await scripted(() => ({ body: [] }));
    await (await client(service)).listUsers();
    expect(service.requests[0]?.headers).toMatchObject({ 'accept-encoding': 'identity' });
  });

  it('reads UTF-8 across the pieces in which it comes', async () => {
    const server = createServer((_request, response) => {
      const bytes = Buffer.from('\uFEFF["李🦊"]');
      response.write(bytes.subarray(0, 7));
      setTimeout(() => response.end(bytes.subarray(7)), 20);
    });
    const transport = new Transport(5000);
    const get = getOf(await listening(server));
    expect(await outcomeOf(transport.exchange(get, never))).toMatchObject({ reply: { body: '["李🦊"]' } });
    transport.close();
    server.close();
  });

  it('has one time-out from the connection to the last byte of the body', async () => {
    const service = await simulator();
    service.faults.add({ operation: 'list', kind: 'slow-body', ms: 60_000 });
    const debate = await client(service, {
      http: { ...open.http, timeoutMs: 1_000 },
      users: { listAuth: 'apiKey' },
    });
    const error = await errorOf(debate.listUsers());
    expect(error).toMatchObject({ code: 'ERR_DEBATE_SPACE_TIMEOUT', retryable: true, outcome: 'unknown' });
    expect(error).not.toHaveProperty('status', expect.anything());
  });

  it('stops reading an answer that has no end', async () => {
    const server = createServer((_request, response) => {
      const pump = (): void => {
        while (response.write(' '.repeat(16_384)));
      };
      response.on('drain', pump);
      pump();
    });
    const connected = once(server, 'connection') as Promise<[Socket]>;
    const transport = new Transport(60_000);
    const exchange = transport.exchange(getOf(await listening(server)), never);
    expect(await outcomeOf(exchange)).toMatchObject({ failure: { reason: 'TOO_LARGE', sent: true } });
    const [socket] = await connected;
    if (!socket.destroyed) await new Promise((resolve) => socket.once('close', resolve));
    transport.close();
    server.close();
  });

  it('is one connection for calls one after the other', async () => {
    const service = await scripted(() => ({ body: [] }));
    const debate = await client(service);
    for (let call = 0; call < 5; call += 1) await debate.listUsers();
    expect(service.requests).toHaveLength(5);
    expect(service.connections).toBe(1);
  });

  it('is one connection again after the service has closed an idle one', async () => {
    let connections = 0;
    const server = createServer((_request, response) => response.end('[]'));
    server.on('connection', () => (connections += 1));
    const transport = new Transport(5000);
    const get = getOf(await listening(server));
    await outcomeOf(transport.exchange(get, never));
    server.closeAllConnections(); // the next request goes out before the client knows
    for (let call = 0; call < 10; call += 1) await outcomeOf(transport.exchange(get, never));
    transport.close();
    server.close();
    expect(connections).toBe(2);
  });

  it('leaves connections alone that the server is about to close', async () => {
    const server = createServer((request, response) => {
      request.resume().once('end', () => response.end());
    });
    server.keepAliveTimeout = 1_000;
    const post = { ...getOf(await listening(server)), method: 'POST', body: 'a=b' } as const;
    const pairs = Array.from({ length: 40 }, async (_, n) => {
      const transport = new Transport(5000);
      const first = await outcomeOf(transport.exchange(post, never));
      await setTimeoutAsync(900 + 5 * n); // the second comes just before, while or just after it does
      const second = await outcomeOf(transport.exchange(post, never));
      transport.close();
      return [first, second];
    });
    for (const answer of (await Promise.all(pairs)).flat())
      expect(answer).toMatchObject({ reply: { status: 200 } });
    server.close();
  });

  it('sends no request with a header that is not valid', async () => {
    const service = await scripted(() => ({}));
    const transport = new Transport(5000);
    const request = { ...getOf(service.url), headers: { 'X-Name': 'Zoë 李' } };
    expect(await outcomeOf(transport.exchange(request, never))).toMatchObject({
      failure: { kind: 'network', sent: false },
    });
    transport.close();
    expect(service.requests).toEqual([]);
  });

  it('knows that a request to a name that does not exist was not sent', async () => {
    const debate = await client({ url: 'http://debate.invalid' }, { ...open, users: { listAuth: 'apiKey' } });
    const error = await errorOf(debate.listUsers());
    expect(error).toMatchObject({ code: 'ERR_DEBATE_SPACE_NETWORK', outcome: 'not-sent' });
  });

  it('takes nothing over from the host’s own axios', async () => {
    const service = await scripted(() => ({ body: [] }));
    const { defaults, interceptors } = axios;
    const before = { ...defaults, headers: { ...defaults.headers, common: { ...defaults.headers.common } } };
    let intercepted = 0;
    const interceptor = interceptors.request.use((config) => {
      intercepted += 1;
      return config;
    });
    try {
      Object.assign(defaults, {
        baseURL: 'http://host.invalid',
        params: { host: 1 },
        timeout: 1,
        maxRedirects: 9,
      });
      defaults.headers.common['X-Host'] = 'secret of the host';
      const debate = await client(service);
      await debate.listUsers();
      await debate.deleteUser('alice');
    } finally {
      interceptors.request.eject(interceptor);
      for (const key of ['baseURL', 'params', 'timeout', 'maxRedirects'] as const)
        defaults[key] = before[key] as never;
      delete defaults.headers.common['X-Host'];
    }
    expect(intercepted).toBe(0);
    expect(service.requests.map(({ url }) => url)).toEqual(['/api/v1/users?page=1', '/api/v1/users/alice']);
    for (const { headers } of service.requests) expect(headers).not.toHaveProperty('x-host');
  });

  it.each([undefined, 'http'] as const)(
    'names the variable of a proxy that is no URL, and does not show it (adapter %s)',
    async (adapter) => {
      process.env.HTTPS_PROXY = 'http://user:a-password@proxy:not-a-port';
      const debate = await client({ url: 'https://debate.invalid' }, { http: { adapter } });
      const error = (await errorOf(debate.listUsers())) as Error;
      expect(error).toMatchObject({ code: 'ERR_DEBATE_SPACE_NETWORK', outcome: 'not-sent', attempts: 1 });
      expect(error.message).toContain('hint: correct HTTPS_PROXY');
      expect(inspect(error)).not.toContain('a-password');
    },
  );

  const handshakes: {
    readonly name: string;
    readonly act: (socket: Socket) => unknown;
    readonly code: string;
  }[] = [
    { name: 'is cut', act: (socket) => socket.destroy(), code: 'ERR_DEBATE_SPACE_NETWORK' },
    {
      name: 'is answered with plain text',
      act: (socket) => socket.end('HTTP/1.1 400 No\r\n\r\n'),
      code: 'ERR_DEBATE_SPACE_NETWORK',
    },
    { name: 'is never answered', act: () => undefined, code: 'ERR_DEBATE_SPACE_TIMEOUT' },
  ];
  it.each(handshakes)('knows that nothing was sent when the TLS handshake $name', async ({ act, code }) => {
    const server = createTcpServer((socket) => {
      socket.on('error', () => undefined);
      act(socket);
    });
    const url = (await listening(server)).replace('http:', 'https:');
    const timeoutMs = code === 'ERR_DEBATE_SPACE_TIMEOUT' ? 100 : 60_000; // a busy machine has time for the others
    const http = { ...open.http, timeoutMs };
    const debate = await client({ url }, { http, users: { listAuth: 'apiKey' } });
    expect(await errorOf(debate.listUsers())).toMatchObject({ code, outcome: 'not-sent' });
    server.close();
  });
});

describe('the first requests of an UndiciSender, which wait for undici', () => {
  it('share their connections with the later ones, and are not sent when they are aborted before', async () => {
    let connections = 0;
    const server = createServer((_, response) => setTimeout(() => response.end(), 20));
    server.on('connection', () => (connections += 1));
    const request = getOf(await listening(server));
    const [first, sender] = [new UndiciSender(1_000), new UndiciSender(1_000)];
    const abort = new AbortController();
    const aborted = first.send(request, abort.signal);
    abort.abort();
    await expect(aborted).rejects.toMatchObject({ sent: false });
    expect(connections).toBe(0);
    for (let round = 0; round < 3; round += 1)
      await Promise.all([sender.send(request, never), sender.send(request, never)]);
    expect(connections).toBe(2);
    for (const each of [first, sender]) each.close();
    server.close();
  });
});

const getOf = (url: string) => ({ operation: 'logoutUser', method: 'GET', url, headers: {} }) as const;

async function listening(server: NetServer): Promise<string> {
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  return `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
}
