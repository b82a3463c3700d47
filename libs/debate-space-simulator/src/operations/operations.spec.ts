import { describe, expect, it } from '@jest/globals';
import type { NewUser } from '../state/users.js';
import {
  accessToken,
  callApi,
  deleteUser,
  logOut,
  logoutClaims,
  postForm,
  signedToken,
  simulators,
  TOKEN_FIELDS,
} from '../testing/service-client.js';
import type { AccessTokenAnswer } from './obtain-token.js';

const start = simulators();
const people = (count: number): NewUser[] => Array.from({ length: count }, (_, i) => ({ uid: `u-${i + 1}` }));
const uids = (body: unknown): unknown[] => (body as { data: { uid: unknown }[] }).data.map(({ uid }) => uid);

describe('the token route', () => {
  it('hands out a token with its lifetime and the time of its creation, by its own clock', async () => {
    const sim = await start({ clockOffsetSeconds: 1000 });
    const response = await postForm(`${sim.url}/oauth/token`, TOKEN_FIELDS);
    expect([response.status, response.headers.get('cache-control')]).toEqual([200, 'no-store']);
    const token = (await response.json()) as AccessTokenAnswer;
    const { created_at } = token;
    const access_token: unknown = expect.any(String);
    expect(token).toEqual({ access_token, token_type: 'Bearer', expires_in: 7200, created_at });
    expect(Number.isInteger(created_at)).toBe(true);
    expect(created_at - Date.now() / 1000).toBeGreaterThan(990);
  });

  it.each([
    ['no grant_type', { grant_type: undefined }, 400, 'invalid_request'],
    ['another grant_type', { grant_type: 'password' }, 400, 'unsupported_grant_type'],
    ['another client_id', { client_id: 'x' }, 401, 'invalid_client'],
    ['another client_secret', { client_secret: 'x' }, 401, 'invalid_client'],
    ['no client_secret', { client_secret: undefined }, 401, 'invalid_client'],
    ['another scope', { scope: 'admin' }, 400, 'invalid_scope'],
    ['two scopes', { scope: 'authentication public' }, 400, 'invalid_scope'],
    ['no scope', { scope: undefined }, 400, 'invalid_scope'],
    ['a body beyond its limit', { x: 'x'.repeat(70_000) }, 413, expect.any(String)],
  ])('refuses %s', async (_what, changes, status, error) => {
    const sim = await start();
    const fields = Object.entries({ ...TOKEN_FIELDS, ...changes }).filter(([, value]) => value !== undefined);
    const response = await postForm(`${sim.url}/oauth/token`, fields as [string, string][]);
    expect([response.status, await response.json()]).toMatchObject([status, { error }]);
  });

  it('refuses JSON, and parameters in the query, which it puts on record without the secrets', async () => {
    const sim = await start();
    const url = `${sim.url}/oauth/token`;
    const headers = { 'content-type': 'application/json' };
    const json = await fetch(url, { method: 'POST', headers, body: JSON.stringify(TOKEN_FIELDS) });
    expect([json.status, await json.json()]).toMatchObject([400, { error: 'invalid_request' }]);
    const query = new URLSearchParams(TOKEN_FIELDS).toString();
    expect((await postForm(`${url}?${query}`, {})).status).toBe(400);
    const redacted = { client_id: '[redacted]', client_secret: '[redacted]' };
    expect(sim.received.all[1]?.query).toMatchObject(redacted);
  });

  it('hands out a new token each time, and the old one lives on', async () => {
    const sim = await start({ users: people(1) });
    const [first, second] = [await accessToken(sim), await accessToken(sim)];
    expect(second.access_token).not.toBe(first.access_token);
    expect((await callApi(sim, 'DELETE', '/users/u-1', first.access_token)).status).toBe(200);
  });

  it('hands out a living token again, with the rest of its lifetime, when the option says so', async () => {
    const sim = await start({ reissueTokens: true });
    const first = await accessToken(sim);
    sim.clockOffsetSeconds = 100;
    const second = await accessToken(sim);
    expect(second).toMatchObject({ access_token: first.access_token, created_at: first.created_at });
    expect(second.expires_in).toBeLessThanOrEqual(7100);
    expect(second.expires_in).toBeGreaterThan(7000);
    expect((await accessToken(sim, 'public')).access_token).not.toBe(first.access_token);
    sim.clockOffsetSeconds = 7300;
    expect((await accessToken(sim)).access_token).not.toBe(first.access_token);
  });
});

describe('the routes under {base_url}', () => {
  it.each([
    ['no token', '', 'Bearer'],
    ['an unknown token', 'Bearer unknown', 'Bearer error="invalid_token"'],
    ['another scheme', 'Basic dTpw', 'Bearer'],
    ['a token without its scheme', 'unknown', 'Bearer'],
  ])('answer 401 to %s', async (_what, authorization, challenge) => {
    const sim = await start({ users: people(1) });
    const response = await callApi(sim, 'DELETE', '/users/u-1', undefined, { authorization });
    expect([response.status, response.headers.get('www-authenticate')]).toEqual([401, challenge]);
    expect(await response.json()).toMatchObject({ success: false });
    expect(sim.users.has('u-1')).toBe(true);
  });

  it('answer 401 to an expired token and to a revoked one', async () => {
    const sim = await start({ users: people(1) });
    const expiring = await accessToken(sim);
    sim.clockOffsetSeconds = 7201;
    expect((await callApi(sim, 'DELETE', '/users/u-1', expiring.access_token)).status).toBe(401);
    const revoked = await accessToken(sim);
    sim.revokeTokens();
    expect((await callApi(sim, 'DELETE', '/users/u-1', revoked.access_token)).status).toBe(401);
  });

  it('answer 403 to a token of another scope', async () => {
    const sim = await start({ users: people(1) });
    const forList = await accessToken(sim, 'public');
    const forUsers = await accessToken(sim, 'authentication');
    const deletion = await callApi(sim, 'DELETE', '/users/u-1', forList.access_token);
    expect(deletion.status).toBe(403);
    expect(deletion.headers.get('www-authenticate')).toContain('scope="authentication"');
    expect((await callApi(sim, 'GET', '/users', forUsers.access_token)).status).toBe(403);
  });

  it.each([
    ['', 415],
    ['text/plain', 415],
    ['application/x-www-form-urlencoded', 415],
    ['application/json; charset=utf-8', 200],
  ])(
    'want a JSON content type, whether or not there is a body: "%s" is answered %d',
    async (type, status) => {
      const sim = await start({ users: people(1) });
      const { access_token } = await accessToken(sim);
      const headers = { 'content-type': type };
      const response = await callApi(sim, 'POST', '/users/u-1/anonymize', access_token, headers);
      expect(response.status).toBe(status);
    },
  );

  it('answer 429 with Retry-After above the rate limit, which the other routes do not count for', async () => {
    const sim = await start({ rateLimit: { requests: 2, perMs: 60_000 } });
    const { access_token } = await accessToken(sim, 'public');
    for (const status of [200, 200, 429])
      expect((await callApi(sim, 'GET', '/users', access_token)).status).toBe(status);
    const refused = await callApi(sim, 'GET', '/users?api_key=demo-api-key');
    expect(refused.status).toBe(429);
    expect(refused.headers.get('retry-after')).toMatch(/^[1-6]\d$/);
    expect((await accessToken(sim, 'public')).token_type).toBe('Bearer');
  });

  it.each([
    ['GET', '/oauth/token'],
    ['POST', '/api/v1/users'],
    ['DELETE', '/users/u-1'],
    ['GET', '/api/v1/users/'],
    ['GET', '/API/v1/users'],
  ])('are known, and all others answered 404 as JSON: %s %s', async (method, path) => {
    const sim = await start();
    const response = await fetch(sim.url + path, { method });
    expect([response.status, await response.json()]).toMatchObject([404, { success: false }]);
    expect(sim.received.all).toMatchObject([{ operation: 'unknown', method, path, accepted: false }]);
  });
});

describe('an anonymization', () => {
  it('erases the personal fields and the uid, keeps the contributions, and ends the session', async () => {
    const named = { first_name: 'F', last_name: 'L', email: 'e@example.org' };
    const sim = await start({ users: [{ uid: 'u-1', ...named, contributions: 3 }] });
    sim.debate.signIn('u-1');
    const { access_token } = await accessToken(sim);
    const response = await callApi(sim, 'POST', '/users/u-1/anonymize', access_token);
    expect([response.status, await response.json()]).toEqual([200, { success: true }]);
    const erased = { uid: null, first_name: null, last_name: null, email: null, image_url: null };
    expect(sim.users.all()).toMatchObject([{ ...erased, contributions: 3 }]);
    expect(sim.debate.signedIn()).toEqual([]);
    expect(sim.received.of('anonymize')).toMatchObject([{ uid: 'u-1', accepted: true, status: 200 }]);
    expect((await callApi(sim, 'POST', '/users/u-1/anonymize', access_token)).status).toBe(404);
  });
});

describe('a deletion', () => {
  it('removes the user with everything and refuses the uid for ever', async () => {
    const sim = await start({ users: [{ uid: 'u-1', contributions: 3 }] });
    sim.debate.signIn('u-1');
    expect((await deleteUser(sim, 'u-1')).status).toBe(200);
    expect([sim.users.all(), sim.debate.signedIn(), sim.users.wasDeleted('u-1')]).toEqual([[], [], true]);
    expect(() => {
      sim.debate.signIn('u-1');
    }).toThrow('deletion is final');
    expect((await deleteUser(sim, 'u-1')).status).toBe(404);
  });

  it.each(['a/b', '100%', '%2F', 'née 😀', '..a', 'a?b#c', 'a+b c', '"<uid>"'])(
    'decodes the uid from one segment of the path, as an anonymization does: %s',
    async (uid) => {
      const sim = await start({ users: [{ uid }, { uid: 'other' }] });
      const { access_token } = await accessToken(sim);
      const path = `/users/${encodeURIComponent(uid)}`;
      expect((await callApi(sim, 'POST', `${path}/anonymize`, access_token)).status).toBe(200);
      sim.users.add({ uid });
      expect((await callApi(sim, 'DELETE', path, access_token)).status).toBe(200);
      expect([sim.users.count, sim.users.has('other')]).toEqual([2, true]);
      expect(sim.received.of('delete')).toMatchObject([{ uid }]);
    },
  );

  it.each([
    ['/users/a/b', 404, 'unknown'],
    ['/users/a%252Fb', 404, 'delete'],
    ['/users/%zz', 400, 'unknown'],
  ])('takes no user from %s', async (path, status, operation) => {
    const sim = await start({ users: [{ uid: 'a/b' }] });
    const { access_token } = await accessToken(sim);
    const response = await callApi(sim, 'DELETE', path, access_token);
    expect([response.status, await response.json()]).toMatchObject([status, { success: false }]);
    expect(sim.received.all[1]).toMatchObject({ operation, status });
    expect(sim.users.has('a/b')).toBe(true);
  });
});

describe('the user list', () => {
  it('describes every user in the envelope, the anonymized ones included', async () => {
    const named = { uid: 'u-1', first_name: 'F', last_name: 'L', contributions: 2 };
    const sim = await start({ users: [named, { uid: 'u-2' }] });
    sim.users.anonymize('u-2');
    const { access_token } = await accessToken(sim, 'public');
    const data = [
      { uid: 'u-1', full_name: 'F L', email: null, contributions_count: 2 },
      { uid: null, full_name: null, contributions_count: 0 },
    ];
    const response = await callApi(sim, 'GET', '/users', access_token);
    expect(await response.json()).toMatchObject({ success: true, data });
  });

  it('has 20 users on a page and says so in the headers', async () => {
    const sim = await start({ users: people(45) });
    const { access_token } = await accessToken(sim, 'public');
    const response = await callApi(sim, 'GET', '/users?page=2&sort=uid', access_token);
    const body = uids(await response.json());
    expect([body.length, body[0]]).toEqual([20, 'u-21']);
    const paging = { total: '45', 'total-pages': '3', 'current-page': '2', 'next-page': '3' };
    const page = (n: number) => `<${sim.baseUrl}/users?page=${n}&sort=uid>`;
    const link = `${page(1)}; rel="first", ${page(1)}; rel="prev", ${page(3)}; rel="next", ${page(3)}; rel="last"`;
    expect(Object.fromEntries(response.headers)).toMatchObject({ ...paging, 'page-items': '20', link });
  });

  it.each([3, 4])('names no next page on the last one and beyond: page %d', async (page) => {
    const sim = await start({ users: people(5) });
    const response = await callApi(sim, 'GET', `/users?api_key=demo-api-key&per_page=2&page=${page}`);
    expect(uids(await response.json())).toEqual(page === 3 ? ['u-5'] : []);
    expect(response.headers.get('next-page')).toBe('');
    expect(response.headers.get('link')).not.toMatch(/rel="next"|demo-api-key/);
  });

  it.each([
    ...[
      'page=0',
      'page=-1',
      'page=x',
      'page=1.5',
      'page=',
      'page=1&page=2',
      'per_page=0',
      'per_page=101',
    ].map((query) => [`api_key=demo-api-key&${query}`, 422] as const),
    ...['api_key=wrong', 'api_key=', 'api_key=demo-api-key&api_key=demo-api-key', ''].map(
      (query) => [query, 401] as const,
    ),
  ])('refuses the query "%s" with %d', async (query, status) => {
    const sim = await start();
    expect((await callApi(sim, 'GET', `/users?${query}`)).status).toBe(status);
  });

  it('puts filters on record, repeated ones as arrays, and the API key never', async () => {
    const sim = await start();
    const query = 'api_key=demo-api-key&created_at.gte=2024-01-01&role=a&role=b&x[]=1';
    expect((await callApi(sim, 'GET', `/users?${query}`)).status).toBe(200);
    const filters = { 'created_at.gte': '2024-01-01', role: ['a', 'b'], 'x[]': '1' };
    expect(sim.received.all[0]?.query).toEqual({ api_key: '[redacted]', ...filters });
  });

  it('comes without paging headers when the option says so', async () => {
    const sim = await start({ users: people(1), pagingHeaders: false });
    const response = await callApi(sim, 'GET', '/users?api_key=demo-api-key');
    expect(await response.json()).toMatchObject({ data: [{ uid: 'u-1' }] });
    const names = [...response.headers.keys()];
    expect(names.filter((name) => /page|total|link/.test(name))).toEqual([]);
  });
});

describe('the logout route', () => {
  it('ends the debate session of the user named by sub, and nobody else’s', async () => {
    const sim = await start();
    sim.debate.signIn('u-1');
    sim.debate.signIn('u-2');
    const response = await logOut(sim, signedToken());
    expect([response.status, response.headers.get('cache-control')]).toEqual([200, 'no-store']);
    expect([sim.debate.signedIn(), sim.received.logouts]).toEqual([['u-2'], ['u-1']]);
    expect(sim.received.all[0]?.claims).toMatchObject({ sub: 'u-1', aud: 'demo-api-key' });
    // The effect is there already.
    expect((await logOut(sim, signedToken())).status).toBe(200);
  });

  it('knows one application, and takes its name percent-encoded', async () => {
    const sim = await start({ applicationName: 'town hall/1' });
    const logout_token = signedToken(logoutClaims({ iss: 'town hall/1' }));
    expect((await postForm(`${sim.url}/auth/logout/demo`, { logout_token })).status).toBe(404);
    const response = await postForm(`${sim.url}/auth/logout/town%20hall%2F1`, { logout_token });
    expect(response.status).toBe(200);
  });

  it('wants a form with one logout_token', async () => {
    const sim = await start();
    const fields = [
      { token: signedToken() },
      [0, 1].map((): [string, string] => ['logout_token', signedToken()]),
    ];
    for (const each of fields) expect((await postForm(`${sim.url}/auth/logout/demo`, each)).status).toBe(400);
    const headers = { 'content-type': 'application/json' };
    const body = JSON.stringify({ logout_token: signedToken() });
    const json = await fetch(`${sim.url}/auth/logout/demo`, { method: 'POST', headers, body });
    expect([json.status, sim.received.logouts]).toEqual([400, []]);
  });
});
