import { afterEach, beforeEach, describe, expect, it, jest } from '@jest/globals';
import { errorOf, serviceClients } from '#support/service/service-clients.js';
import { keys } from '#support/service/service.js';
import { AuthenticationError, type DebateSpaceRequestError } from '../../errors.js';
import { Secret } from '../../secrets/secret.js';
import type { HttpReply, HttpRequest } from '../http/exchange.js';
import { AccessTokens, fetchToken, lifeSeconds, type IssuedToken, type Scope } from './access-tokens.js';

const { simulator, client } = serviceClients();

const HOUR = 60 * 60_000;
const never = new AbortController().signal;

/** Tokens that are counted and handed out when the test says so. */
class Issuer {
  readonly requests: { scope: Scope; answer: (token: IssuedToken) => void; fail: (error: Error) => void }[] =
    [];
  readonly tokens = new AccessTokens(
    (scope) =>
      new Promise((answer, fail) => {
        this.requests.push({ scope, answer, fail });
      }),
  );

  async issued(value: string, lifeMs = 2 * HOUR): Promise<string> {
    const token = this.tokens.get('public', never);
    this.requests.at(-1)?.answer({ value, lifeMs });
    return token;
  }
}

describe('access tokens', () => {
  beforeEach(() => {
    jest.useFakeTimers();
  });
  afterEach(() => {
    jest.useRealTimers();
  });

  it('are fetched once for a thousand callers', async () => {
    const issuer = new Issuer();
    const callers = Array.from({ length: 1000 }, () => issuer.tokens.get('public', never));
    expect(issuer.requests).toHaveLength(1);
    issuer.requests[0]?.answer({ value: 'one', lifeMs: HOUR });
    expect(new Set(await Promise.all(callers))).toEqual(new Set(['one']));
    expect(await issuer.tokens.get('public', never)).toBe('one');
    expect(issuer.requests).toHaveLength(1);
  });

  it('are kept apart by scope', async () => {
    const issuer = new Issuer();
    const both = [issuer.tokens.get('public', never), issuer.tokens.get('authentication', never)];
    expect(issuer.requests.map(({ scope }) => scope)).toEqual(['public', 'authentication']);
    issuer.requests[1]?.answer({ value: 'for users', lifeMs: HOUR });
    issuer.requests[0]?.answer({ value: 'for the list', lifeMs: HOUR });
    expect(await Promise.all(both)).toEqual(['for the list', 'for users']);
  });

  it('are renewed ahead in the background, while the valid one is used', async () => {
    const issuer = new Issuer();
    await issuer.issued('old');
    jest.advanceTimersByTime(2 * HOUR - 5 * 60_000 - 1);
    expect(await issuer.tokens.get('public', never)).toBe('old');
    expect(issuer.requests).toHaveLength(1);
    jest.advanceTimersByTime(1);
    const callers = Array.from({ length: 100 }, () => issuer.tokens.get('public', never));
    expect(new Set(await Promise.all(callers))).toEqual(new Set(['old']));
    expect(issuer.requests).toHaveLength(2);
    issuer.requests[1]?.answer({ value: 'new', lifeMs: HOUR });
    await jest.advanceTimersByTimeAsync(0);
    expect(await issuer.tokens.get('public', never)).toBe('new');
  });

  it('survive a renewal that fails, and are requested again only after half of the rest', async () => {
    const issuer = new Issuer();
    await issuer.issued('old');
    jest.advanceTimersByTime(2 * HOUR - 5 * 60_000);
    expect(await issuer.tokens.get('public', never)).toBe('old');
    issuer.requests[1]?.fail(new Error('the service is down'));
    await jest.advanceTimersByTimeAsync(60_000);
    expect(await issuer.tokens.get('public', never)).toBe('old');
    expect(issuer.requests).toHaveLength(2);
    jest.advanceTimersByTime(2 * 60_000);
    expect(await issuer.tokens.get('public', never)).toBe('old');
    expect(issuer.requests).toHaveLength(3);
  });

  it('are not used in the last seconds of their life', async () => {
    const issuer = new Issuer();
    await issuer.issued('old');
    jest.advanceTimersByTime(2 * HOUR - 5_000);
    expect(await issuer.issued('new')).toBe('new');
  });

  it('are waited for no longer than the caller’s signal, and the others continue', async () => {
    const issuer = new Issuer();
    const patience = new AbortController();
    const impatient = issuer.tokens.get('public', patience.signal);
    const patient = issuer.tokens.get('public', never);
    patience.abort();
    await expect(impatient).rejects.toMatchObject({ name: 'AbortError' });
    issuer.requests[0]?.answer({ value: 'one', lifeMs: HOUR });
    expect(await patient).toBe('one');
  });

  it('are fetched anew after a failure', async () => {
    const issuer = new Issuer();
    const first = issuer.tokens.get('public', never);
    issuer.requests[0]?.fail(new Error('the service is down'));
    await expect(first).rejects.toThrow('the service is down');
    expect(await issuer.issued('one')).toBe('one');
  });

  it('are dropped one by one: not a newer token that another caller has fetched', async () => {
    const issuer = new Issuer();
    await issuer.issued('old');
    issuer.tokens.drop('public', 'old');
    await issuer.issued('new');
    issuer.tokens.drop('public', 'old');
    issuer.tokens.drop('authentication', 'new');
    expect(await issuer.tokens.get('public', never)).toBe('new');
    expect(issuer.requests).toHaveLength(2);
  });
});

describe('the life of a token', () => {
  const now = 1_000_000;
  it.each<[string, number, number | undefined, number]>([
    ['what expires_in says, without created_at', 7200, undefined, 7200],
    ['what is left, after created_at', 7200, now - 2200, 5000],
    ['never longer than expires_in', 7200, now + 99_999, 7200],
    ['the remaining time of a token handed out again', 2200, now - 5000, 2200],
  ])('is %s', (_what, expiresIn, createdAt, expected) => {
    expect(lifeSeconds(expiresIn, createdAt, now)).toBe(expected);
  });
});

/** What the token route gives for an answer, which may come again and again. */
async function given(status: number, body: unknown): Promise<{ result: string; requests: HttpRequest[] }> {
  const requests: HttpRequest[] = [];
  const text = typeof body === 'string' ? body : JSON.stringify(body);
  const reply: HttpReply = { operation: 'token', status, body: text, header: () => undefined };
  const exchange = (request: HttpRequest): Promise<HttpReply> => {
    requests.push(request);
    return Promise.resolve(reply);
  };
  const options = {
    authUrl: 'https://x/root',
    apiKey: new Secret(keys.apiKey),
    secretKey: new Secret(keys.secretKey),
  };
  const policy = { maxAttempts: 2, totalTimeoutMs: 10_000 };
  try {
    const { value, lifeMs } = await fetchToken({ exchange }, options, policy, 'public', never);
    return { result: `${value} for ${Math.round(lifeMs / 10) / 100} s`, requests };
  } catch (error) {
    const { message, retryable, attempts } = error as DebateSpaceRequestError;
    return { result: `${message} | ${retryable ? 'retryable' : 'final'} after ${attempts}`, requests };
  }
}

const page = '<!doctype html><p>Welcome';
const good = { access_token: 'x', token_type: 'Bearer', expires_in: 7200, created_at: 1_700_000_000 };
const anHourAgo = Math.floor(Date.now() / 1000) - 3600;
const REFUSED =
  /^token: the service refused the keys \(\d+.*\); hint: compare apiKey .* General \| final after 1$/;
const STRANGER =
  /^token: something else than the service answers \(\d+ with a web page\).* \| retryable after 2$/;
const MISSING = /^token: there is no token route .* \(4\d\d\); hint: check authUrl \| retryable after 2$/;

/** What the token route gives for each status and each of these bodies. */
const ANSWERS: readonly (readonly [result: RegExp, statuses: readonly number[], ...bodies: unknown[]])[] = [
  [/^x for 7200 s$/, [200], good, `\uFEFF${JSON.stringify(good)}`],
  [/^x for 7200 s$/, [200], ...['bearer', 'mac', null].map((token_type) => ({ ...good, token_type }))],
  [/^x for 7200 s$/, [200], ...['today', null].map((created_at) => ({ ...good, created_at }))],
  [
    /^x for 7200 s$/,
    [200],
    ...[undefined, null, 0, -1, 'soon', '', [60]].map((expires_in) => ({ access_token: 'x', expires_in })),
    '{"access_token":"x","expires_in":1e999}',
    { ...good, success: false, error: 'deprecated', refresh: null },
  ],
  [/^x for 60.5 s$/, [200], ...[60.5, ' 60.5 '].map((expires_in) => ({ access_token: 'x', expires_in }))],
  [
    /^x for 3[56]\d\d/,
    [200],
    ...[anHourAgo, String(anHourAgo)].map((created_at) => ({ ...good, created_at })),
  ],
  [
    /^token: the service answered 200, and the body has no usable access_token \| retryable after 2$/,
    [200],
    ...[undefined, '', 7, 'x\r\ny: z', 'x'.repeat(9_000)].map((value) => ({ ...good, access_token: value })),
    ...[{ error: 'temporarily_unavailable' }, [good], '"x"', 'null', ''],
  ],
  [/and the body is not whole JSON \| retryable after 2$/, [200], 'OK', '{"access_token":"x'],
  [STRANGER, [200, 401, 403, 404, 410], page],
  [MISSING, [404, 410], ''],
  [REFUSED, [400, 401, 403], { error: 'invalid_client' }, '', 'no'],
  [
    REFUSED,
    [200],
    { error: 'invalid_client' },
    { success: false, error: 'invalid_scope', access_token: null },
  ],
];

describe('the token route', () => {
  beforeEach(() => {
    jest.spyOn(Math, 'random').mockReturnValue(0); // no backoff
  });
  afterEach(() => {
    jest.restoreAllMocks();
  });

  it('takes a form with the keys and the scope', async () => {
    const [request] = (await given(200, good)).requests;
    expect(request).toMatchObject({ method: 'POST', url: 'https://x/root/oauth/token' });
    expect(request?.headers).toEqual({ 'Content-Type': 'application/x-www-form-urlencoded' });
    expect(Object.fromEntries(new URLSearchParams(request?.body))).toEqual({
      grant_type: 'client_credentials',
      client_id: keys.apiKey,
      client_secret: keys.secretKey,
      scope: 'public',
    });
  });

  it('gives a token, refuses the keys, or may do better later, by its answer', async () => {
    for (const [result, statuses, ...bodies] of ANSWERS)
      for (const status of statuses)
        for (const body of bodies) expect((await given(status, body)).result).toMatch(result);
  });

  it('is asked once for many concurrent calls, and once more for the other scope', async () => {
    const service = await simulator();
    const debate = await client(service);
    await Promise.all([
      ...Array.from({ length: 50 }, () => debate.listUsers()),
      debate.anonymizeUser('alice'),
    ]);
    expect(service.received.of('list')).toHaveLength(50);
    expect(service.received.of('token')).toHaveLength(2);
  });

  it('may issue a valid token again, which is used for all calls', async () => {
    const service = await simulator({ reissueTokens: true });
    await (await client(service)).listUsers();
    service.clockOffsetSeconds = 5000; // created_at + the remaining expires_in is now in the past
    const debate = await client(service);
    for (let call = 0; call < 5; call += 1) await debate.listUsers();
    expect(service.received.of('token')).toHaveLength(2);
  });

  it('is asked once more when the service refuses the token, and the calls are repeated', async () => {
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
    const details = {
      operation: 'deleteUser',
      status: 401,
      outcome: 'refused',
      attempts: 2,
      retryable: false,
    };
    expect(error).toMatchObject(details);
    expect([service.received.of('delete').length, service.received.of('token').length]).toEqual([2, 2]);
  });

  it('is not asked again after a web page with 401, which is not about the token', async () => {
    const service = await simulator();
    const debate = await client(service);
    await debate.listUsers();
    service.faults.add({ operation: 'list', kind: 'body', status: 401, body: page, times: 2 });
    await debate.listUsers();
    expect(service.received.of('list').map(({ status }) => status)).toEqual([200, 401, 401, 200]);
    expect(service.received.of('token')).toHaveLength(1);
  });

  it('is asked again by the next call where one call may make one request', async () => {
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

  it('stops a call when it refuses the keys: the call was not sent', async () => {
    const service = await simulator({ secretKey: 'another secret key than that of the client' });
    const error = await errorOf((await client(service)).anonymizeUser('alice'));
    expect(error).toBeInstanceOf(AuthenticationError);
    const details = {
      operation: 'anonymizeUser',
      outcome: 'not-sent',
      status: 401,
      attempts: 1,
      retryable: false,
    };
    expect(error).toMatchObject(details);
    expect((error as Error).message).toMatch(/^anonymizeUser: no access token: .*administration panel/);
    expect(service.received.count).toBe(1);
  });

  it('is asked again after 500, 429 and 408', async () => {
    const service = await simulator();
    for (const status of [500, 429, 408])
      service.faults.add({ operation: 'token', kind: 'status', status, times: 1 });
    await (await client(service)).listUsers();
    expect(service.received.of('token').map(({ status }) => status)).toEqual([500, 429, 408, 200]);
  });
});
