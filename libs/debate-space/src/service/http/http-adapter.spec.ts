import { afterEach, describe, expect, it } from '@jest/globals';
import { once } from 'node:events';
import { request, type IncomingMessage } from 'node:http';
import { buffer } from 'node:stream/consumers';
import { inspect } from 'node:util';
import type { AxiosAdapter } from 'axios';
import nock from 'nock';
import type { DebateSpaceEvent } from 'nestjs-debate-space';
import { firstValueFrom, filter } from 'rxjs';
import { errorOf, serviceClients } from '#support/service/service-clients.js';
import { keys } from '#support/service/service.js';
import type { DebateSpaceRequestError } from '../../errors.js';
import type { HttpAdapter } from './axios-sender.js';

const { simulator, scripted, client, runtime } = serviceClients();

/** What a host may write: it ignores the signal and the limits, refuses no status, and parses the JSON. */
const hostsOwn: AxiosAdapter = async (config) => {
  const { url = '', method = 'get' } = config;
  const sent = request(url, { method: method.toUpperCase(), headers: config.headers.toJSON(true) });
  sent.end(config.data);
  const [answer] = (await once(sent, 'response')) as [IncomingMessage];
  const text = (await buffer(answer)).toString();
  const isJson = text.startsWith('{') || text.startsWith('[');
  const data: unknown = isJson ? JSON.parse(text) : text;
  return {
    data,
    status: answer.statusCode ?? 0,
    statusText: '',
    headers: answer.headers as never,
    config,
  };
};

const adapters: readonly [string, HttpAdapter | undefined][] = [
  ['our own', undefined],
  ["'http'", 'http'],
  ["'fetch'", 'fetch'],
  ['a function of the host’s', hostsOwn],
];

describe.each(adapters)('requests through %s adapter', (_name, adapter) => {
  const environment = { ...process.env };
  afterEach(() => {
    process.env = { ...environment };
  });
  const once = { adapter, maxAttempts: 1 };

  it('reach the service with their tokens, forms and parameters', async () => {
    const service = await simulator();
    const debate = await client(service, { http: { adapter } });
    expect((await debate.listUsers({ perPage: 1 })).totalPages).toBe(2);
    await debate.anonymizeUser('alice');
    await debate.deleteUser('bob');
    await debate.logoutUser('carol');
    await service.received.waitFor('logout');
    expect(service.received.all.every(({ accepted }) => accepted)).toBe(true);
    expect(service.users.has('bob')).toBe(false);
  });

  it('fail after a status with the same error and outcome', async () => {
    let status = 0;
    const service = await scripted(() => ({ status, body: { error: 'no' }, headers: { location: '/' } }));
    const debate = await client(service, { http: once });
    const found: unknown[] = [];
    for (status of [404, 422, 403, 500, 301, 302, 303, 307, 308]) {
      const error = (await errorOf(debate.deleteUser('alice'))) as DebateSpaceRequestError;
      found.push(`${error.status} ${error.name} ${error.outcome}`);
    }
    expect(found).toEqual([
      '404 UserNotFoundError refused',
      '422 RefusedError refused',
      '403 PermissionError refused',
      '500 UnavailableError unknown',
      ...[301, 302, 303, 307, 308].map((redirect) => `${redirect} UnexpectedResponseError refused`),
    ]);
    expect(service.requests).toHaveLength(found.length); // no redirect is followed
  });

  it('hear the first of several Retry-After headers', async () => {
    const headers = { 'retry-after': ['5', '9'] as never };
    const service = await scripted(() => ({ status: 429, headers }));
    const error = await errorOf((await client(service, { http: once })).listUsers());
    expect(error).toMatchObject({ code: 'ERR_DEBATE_SPACE_RATE_LIMITED', retryAfterMs: 5000 });
  });

  it('end with the time-out, with an unknown outcome', async () => {
    const service = await scripted(() => 'silence');
    const debate = await client(service, { http: { ...once, timeoutMs: 1_000 } });
    const error = await errorOf(debate.deleteUser('alice'));
    expect(error).toMatchObject({ code: 'ERR_DEBATE_SPACE_TIMEOUT', outcome: 'unknown', attempts: 1 });
    expect(service.requests).toHaveLength(1);
  });

  it('end when the caller aborts them, with an unknown outcome', async () => {
    const patience = new AbortController();
    const service = await scripted(() => {
      patience.abort();
      return 'silence';
    });
    const debate = await client(service, { http: { adapter } });
    const error = await errorOf(debate.deleteUser('alice', { signal: patience.signal }));
    expect(error).toMatchObject({ code: 'ERR_DEBATE_SPACE_ABORTED', outcome: 'unknown', attempts: 1 });
  });

  it('have an unknown outcome when the connection breaks', async () => {
    const service = await scripted(() => 'reset');
    const error = await errorOf((await client(service, { http: once })).deleteUser('alice'));
    expect(error).toMatchObject({ code: 'ERR_DEBATE_SPACE_NETWORK', outcome: 'unknown', attempts: 1 });
    expect((error as Error).message).toContain('ECONNRESET');
  });

  it('were not sent when nobody listens', async () => {
    const service = await simulator();
    const debate = await client(service, { http: once, users: { listAuth: 'apiKey' } });
    await service.goDown();
    const error = await errorOf(debate.listUsers());
    expect(error).toMatchObject({ code: 'ERR_DEBATE_SPACE_NETWORK', outcome: 'not-sent', attempts: 1 });
    expect((error as Error).message).toContain('ECONNREFUSED');
    expect(inspect(error, { depth: 9, showHidden: true })).not.toContain(keys.apiKey);
  });

  it('take no list beyond 16 KiB for each user, and no other answer beyond 64 KiB', async () => {
    const service = await scripted(({ method }) => ({
      body: ' '.repeat(method === 'GET' ? 1_638_401 : 65_537),
    }));
    const debate = await client(service, { http: { adapter } });
    const errors = await Promise.all([debate.listUsers(), debate.deleteUser('alice')].map(errorOf));
    const code = 'ERR_DEBATE_SPACE_UNEXPECTED_RESPONSE';
    for (const error of errors) expect(error).toMatchObject({ code, outcome: 'unknown', retryable: false });
    expect(errors.map(String).join()).toMatch(/larger than 1600 KiB.*larger than 64 KiB/);
  });

  it('go to loopback directly, whatever the proxy of the environment is', async () => {
    const proxy = await scripted(() => ({ body: [] }));
    const service = await simulator();
    Object.assign(process.env, { HTTP_PROXY: proxy.url, http_proxy: proxy.url, ALL_PROXY: proxy.url });
    await (await client(service, { http: { adapter } })).listUsers();
    expect(proxy.connections).toBe(0);
  });
});

describe('an adapter of the host’s that throws', () => {
  const broken: AxiosAdapter = () => {
    throw new TypeError('axios.getAgent is not a function');
  };

  it('shows its own error to the caller, and not one of the network', async () => {
    const service = await simulator();
    const debate = await client(service, { http: { adapter: broken } });
    const calls = [debate.listUsers(), debate.deleteUser('alice'), debate.findUser('bob')];
    for (const error of await Promise.all(calls.map(errorOf)))
      expect(error).toEqual(new TypeError('axios.getAgent is not a function'));
  });

  it('is reported as a fault, and the logouts wait', async () => {
    const service = await simulator();
    let isBroken = true;
    const adapter: AxiosAdapter = (config) => (isBroken ? broken(config) : hostsOwn(config));
    const { service: debate, events } = await runtime(service, { http: { adapter } });
    const fault = firstValueFrom(events.events$.pipe(filter(({ type }) => type === 'fault')), {
      defaultValue: undefined,
    });
    const delivered = firstValueFrom(
      events.events$.pipe(filter(({ type }: DebateSpaceEvent) => type === 'logout-delivered')),
      { defaultValue: undefined },
    );
    await debate.logoutUser('alice');
    expect(await fault).toEqual({ type: 'fault', where: 'http', error: 'TypeError' });
    isBroken = false;
    expect(await delivered).toMatchObject({ uid: 'alice' });
  });

  it('because fetch gets no connection causes a NetworkError', async () => {
    const service = await simulator();
    const adapter: AxiosAdapter = () => {
      const cause = Object.assign(new Error('connect ECONNREFUSED'), { code: 'ECONNREFUSED' });
      throw new TypeError('fetch failed', { cause });
    };
    const debate = await client(service, { http: { adapter, maxAttempts: 1 } });
    expect(await errorOf(debate.listUsers())).toMatchObject({ code: 'ERR_DEBATE_SPACE_NETWORK' });
  });
});

describe("requests through 'http'", () => {
  afterEach(() => {
    nock.cleanAll();
    nock.restore();
  });

  it('are seen by nock', async () => {
    const mocked = nock('https://debate.example')
      .post('/oauth/token', {
        grant_type: 'client_credentials',
        client_id: keys.apiKey,
        client_secret: keys.secretKey,
        scope: 'public',
      })
      .reply(200, { access_token: 'a-token', token_type: 'Bearer', expires_in: 7200 })
      .get('/api/v1/users')
      .query({ page: '1' })
      .matchHeader('authorization', 'Bearer a-token')
      .reply(200, { success: true, data: [{ uid: 'alice' }] });
    const debate = await client({ url: 'https://debate.example' }, { http: { adapter: 'http' } });
    expect((await debate.listUsers()).users).toEqual([{ uid: 'alice' }]);
    expect(mocked.isDone()).toBe(true);
  });
});
