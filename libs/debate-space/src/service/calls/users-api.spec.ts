import { describe, expect, it } from '@jest/globals';
import { InvalidUidError } from '../../errors.js';
import { errorOf, serviceClients } from '#support/service/service-clients.js';
import { keys } from '#support/service/service.js';

const { simulator, scripted, client, runtime } = serviceClients();

describe('the user operations', () => {
  it('are one request each, with a Bearer token and no body', async () => {
    const service = await scripted(() => ({ body: [] }));
    const debate = await client(service);
    await debate.anonymizeUser('alice');
    await debate.deleteUser('alice');
    const filters = { sort: 'uid', role: ['a', 'b'], 'created_at.gte': '2024-01-01' };
    await debate.listUsers({ page: 2, perPage: 50, ...filters });
    expect(service.requests.map(({ method, url }) => `${method} ${url}`)).toEqual([
      'POST /api/v1/users/alice/anonymize',
      'DELETE /api/v1/users/alice',
      'GET /api/v1/users?page=2&per_page=50&sort=uid&role=a&role=b&created_at.gte=2024-01-01',
    ]);
    for (const { headers, body } of service.requests) {
      expect(headers).toMatchObject({ authorization: 'Bearer a-token', 'content-type': 'application/json' });
      expect(body).toBe('');
    }
    expect(JSON.stringify(service.requests)).not.toContain(keys.secretKey);
    expect(JSON.stringify(service.requests)).not.toContain(keys.apiKey);
  });

  it('go to the {base_url} of the option baseUrl', async () => {
    const service = await scripted(() => ({}));
    await (await client(service, { baseUrl: `${service.url}/v2/api/` })).deleteUser('alice');
    expect(service.requests[0]?.url).toBe('/v2/api/users/alice');
  });

  it('ask for a token of the scope of the operation', async () => {
    const service = await simulator();
    const debate = await client(service);
    await debate.anonymizeUser('alice');
    await debate.deleteUser('bob');
    await debate.listUsers();
    // The simulator refuses a token of the other scope.
    expect(service.received.of('token')).toHaveLength(2);
    expect(service.received.all.every(({ accepted }) => accepted)).toBe(true);
  });

  it('list with the API key in the query when users.listAuth says so, and then need no token', async () => {
    const service = await simulator();
    const debate = await client(service, { users: { listAuth: 'apiKey' } });
    expect((await debate.listUsers()).users).toHaveLength(2);
    expect(service.received.all).toMatchObject([
      { operation: 'list', accepted: true, query: { page: '1', api_key: '[redacted]' } },
    ]);
    expect(service.received.all[0]?.headers.authorization).toBeUndefined();
  });

  it('encode the API key', async () => {
    const service = await scripted(() => ({ body: [] }));
    await (await client(service, { apiKey: 'a&b=c d/é', users: { listAuth: 'apiKey' } })).listUsers();
    const { searchParams } = new URL(service.requests[0]?.url ?? '', service.url);
    expect(Object.fromEntries(searchParams)).toEqual({ page: '1', api_key: 'a&b=c d/é' });
  });

  it('name both keys when the API key in the query is refused', async () => {
    const service = await simulator();
    const debate = await client(service, { apiKey: 'wrong', users: { listAuth: 'apiKey' } });
    const error = await errorOf(debate.listUsers());
    expect(error).toMatchObject({ code: 'ERR_DEBATE_SPACE_AUTHENTICATION', status: 401, attempts: 1 });
    expect((error as Error).message).toContain('API key');
  });
});

describe('a uid', () => {
  it('is one part of the path, whatever its characters are', async () => {
    const parts: Readonly<Record<string, string>> = {
      alice: 'alice',
      42: '42',
      'a/b': 'a%2Fb',
      '100%': '100%25',
      '%2e%2e': '%252e%252e',
      'who?': 'who%3F',
      'a#b': 'a%23b',
      'a b': 'a%20b',
      ' ': '%20',
      'a+b': 'a%2Bb',
      'a\\b': 'a%5Cb',
      Zoë: 'Zo%C3%AB',
      李: '%E6%9D%8E',
      '🦊': '%F0%9F%A6%8A',
      '..a': '..a',
      '...': '...',
      'a./b..': 'a.%2Fb..',
      'a@b.example': 'a%40b.example',
    };
    const service = await simulator({ users: Object.keys(parts).map((uid) => ({ uid })) });
    const debate = await client(service);
    for (const uid of Object.keys(parts)) {
      await debate.anonymizeUser(uid);
      service.users.add({ uid });
      await debate.deleteUser(uid);
      expect([uid, service.users.wasDeleted(uid)]).toEqual([uid, true]);
    }
    const paths = (operation: 'anonymize' | 'delete') =>
      service.received.of(operation).map(({ path }) => path);
    expect(paths('delete')).toEqual(Object.values(parts).map((part) => `/api/v1/users/${part}`));
    expect(paths('anonymize')).toEqual(Object.values(parts).map((part) => `/api/v1/users/${part}/anonymize`));
  });

  it('that the rule refuses is an InvalidUidError before anything is sent', async () => {
    const service = await scripted(() => ({}));
    const debate = await client(service);
    const refused = [
      '',
      '.',
      '..',
      '../users',
      'a/.',
      'a\\..\\b',
      'a\n',
      '\ud83d',
      undefined,
      null,
      4.2,
      ['alice'],
    ];
    for (const uid of refused)
      for (const operation of ['anonymizeUser', 'deleteUser', 'logoutUser'] as const) {
        const error = await errorOf(debate[operation](uid as string));
        expect(error).toBeInstanceOf(InvalidUidError);
        expect(error).toMatchObject({ operation, retryable: false, outcome: 'not-sent', attempts: 0 });
      }
    expect(service.connections).toBe(0);
  });

  it('is the digits of a number', async () => {
    const service = await simulator({ users: [{ uid: '42' }] });
    const debate = await client(service);
    const number = 42 as unknown as string;
    expect(await debate.findUser(number)).toMatchObject({ uid: '42' });
    await debate.logoutUser(number);
    await service.received.waitFor('logout');
    await debate.deleteUser(number);
    expect(service.received.logouts).toEqual(['42']);
    expect(service.users.wasDeleted('42')).toBe(true);
  });

  it('is found in JSON of a user for a logout, and for nothing that cannot be undone', async () => {
    const service = await simulator({ users: [{ uid: '7' }] });
    const { service: debate, erasures } = await runtime(service);
    const json = '{"id":7,"email":"ada@post.example"}';
    await debate.logoutUser(json);
    await service.received.waitFor('logout');
    const request = { mode: 'delete', reference: 'GDPR-1' } as const;
    const refusals = [
      debate.deleteUser(json),
      debate.anonymizeUser(json),
      debate.findUser(json),
      erasures.request({ ...request, uid: json }),
      erasures.requestMany([json], request),
    ];
    for (const error of await Promise.all(refusals.map(errorOf))) {
      expect((error as Error).message).toContain('the uid is the text of a JSON object');
      expect((error as Error).message).not.toContain('ada@');
    }
    expect(service.received.logouts).toEqual(['7']);
    expect(service.received.count).toBe(1);
  });
});
