import { describe, expect, it } from '@jest/globals';
import { UnexpectedResponseError } from '../../errors.js';
import { errorOf, serviceClients } from '#support/service/service-clients.js';
import { keys } from '#support/service/service.js';

const { simulator, scripted, client } = serviceClients();

describe('the user operations', () => {
  it('anonymize by POST {base_url}/users/{uid}/anonymize with a Bearer token and no body', async () => {
    const service = await scripted(() => ({}));
    await (await client(service)).anonymizeUser('alice');
    expect(service.requests).toHaveLength(1);
    expect(service.requests[0]).toMatchObject({
      method: 'POST',
      url: '/api/v1/users/alice/anonymize',
      headers: { authorization: 'Bearer a-token', 'content-type': 'application/json' },
      body: '',
    });
  });

  it('delete by DELETE {base_url}/users/{uid} with a Bearer token and no body', async () => {
    const service = await scripted(() => ({}));
    await (await client(service)).deleteUser('alice');
    expect(service.requests).toHaveLength(1);
    expect(service.requests[0]).toMatchObject({
      method: 'DELETE',
      url: '/api/v1/users/alice',
      headers: { authorization: 'Bearer a-token', 'content-type': 'application/json' },
      body: '',
    });
  });

  it('list by GET {base_url}/users with a Bearer token, pages and filters', async () => {
    const service = await scripted(() => ({ body: [] }));
    const query = { page: 2, perPage: 50, sort: 'uid', role: ['a', 'b'], 'created_at.gte': '2024-01-01' };
    await (await client(service)).listUsers(query);
    expect(service.requests).toHaveLength(1);
    expect(service.requests[0]).toMatchObject({
      method: 'GET',
      url: '/api/v1/users?page=2&per_page=50&sort=uid&role=a&role=b&created_at.gte=2024-01-01',
      headers: { authorization: 'Bearer a-token', 'content-type': 'application/json' },
      body: '',
    });
  });

  it.each([{ error: 'it is locked' }, { success: true, error: { code: 7 } }, { success: false }])(
    'are refused when the service answers 200 with %j, which the error does not repeat',
    async (body) => {
      const service = await scripted(() => ({ body }));
      const error = await errorOf((await client(service)).deleteUser('alice'));
      expect(error).toMatchObject({ code: 'ERR_DEBATE_SPACE_REFUSED', status: 200, outcome: 'refused' });
      expect(String(error)).not.toContain('locked');
    },
  );

  it('are asked again after a 202, and done when the user is gone then', async () => {
    const service = await scripted(({ index }) => ({ status: index === 0 ? 202 : 404 }));
    await (await client(service)).deleteUser('alice');
    expect(service.requests).toHaveLength(2);
  });

  it('have an unknown outcome when the service answers nothing but 202', async () => {
    const service = await scripted(() => ({ status: 202 }));
    const debate = await client(service, { http: { maxAttempts: 2, rateLimit: false } });
    const error = await errorOf(debate.anonymizeUser('alice'));
    expect(error).toMatchObject({ status: 202, outcome: 'unknown', retryable: true, attempts: 2 });
    expect(service.requests).toHaveLength(2);
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

  it('send nothing else of the host’s keys', async () => {
    const service = await scripted(() => ({ body: [] }));
    const debate = await client(service);
    await debate.listUsers();
    await debate.deleteUser('alice');
    expect(JSON.stringify(service.requests)).not.toContain(keys.secretKey);
    expect(JSON.stringify(service.requests)).not.toContain(keys.apiKey);
  });

  it('take a list that is not there for a wrong address, not for a missing user', async () => {
    const service = await scripted(() => ({ status: 404 }));
    const error = await errorOf((await client(service)).listUsers());
    expect(error).toBeInstanceOf(UnexpectedResponseError);
    expect((error as Error).message).toContain('check baseUrl');
  });
});
