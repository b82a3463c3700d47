import { afterEach, beforeEach, describe, expect, it, jest } from '@jest/globals';
import { AuthenticationError, UnexpectedResponseError } from '../../errors.js';
import { Secret } from '../../secrets/secret.js';
import { errorOf, serviceClients } from '#support/service/service-clients.js';
import { keys } from '#support/service/service.js';
import { fetchToken as fetchFrom } from './access-tokens.js';
import { Transport } from '../http/transport.js';

const { simulator, scripted, client } = serviceClients();
const never = new AbortController().signal;
const page = '<!doctype html><p>Welcome';
const good = { access_token: 'x', token_type: 'Bearer', expires_in: 7200, created_at: 1_700_000_000 };

/** The token route alone. */
async function fetchToken(authUrl: string, maxAttempts = 1) {
  const transport = new Transport(5000);
  const options = { authUrl, apiKey: new Secret(keys.apiKey), secretKey: new Secret(keys.secretKey) };
  try {
    return await fetchFrom(transport, options, { maxAttempts, totalTimeoutMs: 10_000 }, 'public', never);
  } finally {
    transport.close();
  }
}

describe('the token route', () => {
  beforeEach(() => {
    jest.spyOn(Math, 'random').mockReturnValue(0); // no backoff
  });
  afterEach(() => {
    jest.restoreAllMocks();
  });

  it('takes a form with the keys and the scope', async () => {
    const service = await scripted(() => ({ body: { access_token: 'x' } }));
    await fetchToken(`${service.url}/root`);
    expect(service.requests).toMatchObject([
      {
        method: 'POST',
        url: '/root/oauth/token',
        headers: { 'content-type': 'application/x-www-form-urlencoded' },
      },
    ]);
    expect(Object.fromEntries(new URLSearchParams(service.requests[0]?.body))).toEqual({
      grant_type: 'client_credentials',
      client_id: keys.apiKey,
      client_secret: keys.secretKey,
      scope: 'public',
    });
  });

  it('is asked once for a thousand concurrent calls, and once more for the other scope', async () => {
    const service = await simulator();
    // However slow the machine is, no call is repeated because its answer took too long.
    const debate = await client(service, { http: { timeoutMs: 100_000, totalTimeoutMs: 100_000 } });
    const calls = Array.from({ length: 1000 }, () => debate.listUsers());
    await Promise.all([...calls, debate.anonymizeUser('alice')]);
    expect(service.received.of('list')).toHaveLength(1000);
    expect(service.received.of('token')).toHaveLength(2);
  });

  it('may hand out a living token again: it is used for all calls', async () => {
    const service = await simulator({ reissueTokens: true });
    await fetchToken(service.url);
    service.clockOffsetSeconds = 5000; // created_at + the remaining expires_in now lies in the past
    const debate = await client(service);
    for (let call = 0; call < 5; call += 1) await debate.listUsers();
    expect(service.received.of('token')).toHaveLength(2);
  });

  it('is asked again once when the token was refused, and the call is made again', async () => {
    const service = await simulator();
    const debate = await client(service);
    await debate.listUsers();
    service.revokeTokens();
    const pages = await Promise.all(Array.from({ length: 20 }, () => debate.listUsers()));
    expect(pages).toHaveLength(20);
    expect(service.received.of('token')).toHaveLength(2);
  });

  it('is not asked a third time: a second refusal is an AuthenticationError', async () => {
    const service = await simulator();
    service.faults.add({ operation: 'delete', kind: 'status', status: 401 });
    const error = await errorOf((await client(service)).deleteUser('alice'));
    expect(error).toBeInstanceOf(AuthenticationError);
    expect(error).toMatchObject({ operation: 'deleteUser', status: 401, outcome: 'refused', attempts: 2 });
    expect(error).toMatchObject({ retryable: false });
    expect(service.received.of('delete')).toHaveLength(2);
    expect(service.received.of('token')).toHaveLength(2);
  });

  it('keeps a token that a web page with 401 says nothing of', async () => {
    const service = await simulator();
    const debate = await client(service);
    await debate.listUsers();
    service.faults.add({ operation: 'list', kind: 'body', status: 401, body: page, times: 2 });
    await debate.listUsers();
    expect(service.received.of('list').map(({ status }) => status)).toEqual([200, 401, 401, 200]);
    expect(service.received.of('token')).toHaveLength(1);
  });

  it('is not asked again by a call that may make one request: the next call asks', async () => {
    const service = await simulator();
    const debate = await client(service, { http: { maxAttempts: 1 } });
    await debate.listUsers();
    service.revokeTokens();
    const error = await errorOf(debate.listUsers());
    expect(error).toMatchObject({ code: 'ERR_DEBATE_SPACE_AUTHENTICATION', attempts: 1, retryable: true });
    expect(service.received.of('list')).toHaveLength(2);
    await debate.listUsers();
    expect(service.received.of('token')).toHaveLength(2);
  });

  it('names the administration panel for wrong keys, and is asked once', async () => {
    const service = await simulator({ secretKey: 'another secret key than that of the client' });
    const error = await errorOf((await client(service)).anonymizeUser('alice'));
    expect(error).toBeInstanceOf(AuthenticationError);
    expect((error as Error).message).toContain('administration panel, Configuration > General');
    expect(error).toMatchObject({
      operation: 'anonymizeUser',
      outcome: 'not-sent',
      status: 401,
      attempts: 1,
    });
    expect(error).toMatchObject({ retryable: false });
    expect(service.received.count).toBe(1);
  });

  it.each([500, 503, 429, 408])('is asked again after %d', async (status) => {
    const service = await simulator();
    service.faults.add({ operation: 'token', kind: 'status', status, times: 3 });
    await (await client(service)).listUsers();
    expect(service.received.of('token')).toHaveLength(4);
  });

  it.each([404, 410])('has its own error when it is not there (%d)', async (status) => {
    const service = await scripted(() => ({ status }));
    const error = await errorOf(fetchToken(`${service.url}/elsewhere`, 2));
    expect(service.requests).toHaveLength(2);
    expect(error).toBeInstanceOf(UnexpectedResponseError);
    expect((error as Error).message).toContain('check authUrl');
  });

  it.each<[string, unknown, string, number?]>([
    ['no access_token', { ...good, access_token: undefined }, 'no usable access_token'],
    ['an empty access_token', { ...good, access_token: '' }, 'no usable access_token'],
    ['a number for an access_token', { ...good, access_token: 7 }, 'no usable access_token'],
    ['an access_token with a line break', { ...good, access_token: 'x\r\ny: z' }, 'no usable access_token'],
    ['an error of its own', { error: 'temporarily_unavailable' }, 'has no usable access_token'],
    [
      'a token that is too long for a header',
      { ...good, access_token: 'x'.repeat(9_000) },
      'no usable access_token',
    ],
    ['a web page with 410', page, 'something else than the service answers (410 with a web page)', 410],
    ['an array', [good], 'has no usable access_token'],
    ['a word in JSON', '"x"', 'has no usable access_token'],
    ['null', 'null', 'has no usable access_token'],
    ['a word', 'OK', 'is not whole JSON'],
    ['cut-off JSON', '{"access_token":"x', 'is not whole JSON'],
    ['nothing', '', 'has no usable access_token'],
    ['a web page', page, 'something else than the service answers (200 with a web page)'],
    ['a web page with 401', page, 'something else than the service answers (401 with a web page)', 401],
    ['a web page with 403', page, 'something else than the service answers (403 with a web page)', 403],
    ['a web page with 404', page, 'something else than the service answers (404 with a web page)', 404],
  ])('gives no token with %s, and may do better later', async (_what, body, problem, status = 200) => {
    const service = await scripted(() => ({ status, body }));
    const error = await errorOf(fetchToken(`${service.url}/root`));
    expect(error).toBeInstanceOf(UnexpectedResponseError);
    expect((error as Error).message).toContain(problem);
    expect(error).toMatchObject({ operation: 'token', status, retryable: true });
  });

  it.each<[number, unknown]>([
    [200, { error: 'invalid_client', error_description: 'unknown' }],
    [200, { success: false, error: 'invalid_scope', access_token: null }],
    [400, { error: 'invalid_client' }],
    [401, ''],
    [403, 'no'],
  ])('refuses the keys with %d and %j', async (status, body) => {
    const service = await scripted(() => ({ status, body }));
    const error = await errorOf(fetchToken(`${service.url}/root`, 4));
    expect(error).toBeInstanceOf(AuthenticationError);
    expect((error as Error).message).toContain('the service refused the keys');
    expect(error).toMatchObject({ operation: 'token', status, retryable: false, attempts: 1 });
  });

  it.each([
    [7200, undefined],
    [7200, null],
    [7200, 0],
    [7200, -1],
    [7200, 'soon'],
    [7200, ''],
    [7200, [60]],
    [60, 60],
    [60, '60'],
    [60.5, ' 60.5 '],
  ])('gives %d seconds to a token with the expires_in %j', async (seconds, expires_in) => {
    const service = await scripted(() => ({ body: { access_token: 'x', expires_in } }));
    expect(await fetchToken(`${service.url}/root`)).toEqual({ value: 'x', lifeMs: seconds * 1000 });
  });

  it.each([String, Number])('takes a created_at that is a %p', async (typed) => {
    const created_at = typed(Math.floor(Date.now() / 1000) - 3600);
    const service = await scripted(() => ({ body: { ...good, created_at } }));
    const { lifeMs } = await fetchToken(`${service.url}/root`);
    expect(Math.abs(lifeMs - 3_600_000)).toBeLessThan(60_000);
  });

  it.each<[string, unknown]>([
    ['a byte order mark', `\uFEFF${JSON.stringify(good)}`],
    ['token_type in small letters', { ...good, token_type: 'bearer' }],
    ['another token_type', { ...good, token_type: 'mac' }],
    ['token_type null', { ...good, token_type: null }],
    ['created_at as text', { ...good, created_at: 'today' }],
    ['created_at null', { ...good, created_at: null }],
    ['an expires_in beyond all numbers', '{"access_token":"x","expires_in":1e999}'],
    ['no more than the access_token', { access_token: 'x' }],
    ['an error beside it', { ...good, success: false, error: 'deprecated' }],
    ['fields of its own', { ...good, refresh: null }],
  ])('accepts %s', async (_what, body) => {
    const service = await scripted(() => ({ body }));
    expect((await fetchToken(`${service.url}/root`)).value).toBe('x');
  });
});
