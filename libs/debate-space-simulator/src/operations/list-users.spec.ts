import { describe, expect, it } from '@jest/globals';
import type { NewUser } from '../state/users.js';
import { accessToken, callApi, simulators } from '../testing/service-client.js';

const start = simulators();
const people = (count: number): NewUser[] => Array.from({ length: count }, (_, i) => ({ uid: `u-${i + 1}` }));
const uids = (body: unknown): unknown[] => (body as { data: { uid: unknown }[] }).data.map(({ uid }) => uid);

describe('the user list', () => {
  it('describes every user in the envelope, the anonymized ones included', async () => {
    const sim = await start({
      users: [{ uid: 'u-1', first_name: 'F', last_name: 'L', contributions: 2 }, { uid: 'u-2' }],
    });
    sim.users.anonymize('u-2');
    const { access_token } = await accessToken(sim, 'public');
    const response = await callApi(sim, 'GET', '/users', access_token);
    expect(await response.json()).toMatchObject({
      success: true,
      data: [
        { uid: 'u-1', full_name: 'F L', email: null, contributions_count: 2 },
        { uid: null, full_name: null, contributions_count: 0 },
      ],
    });
  });

  it('has 20 users on a page and says so in the headers', async () => {
    const sim = await start({ users: people(45) });
    const { access_token } = await accessToken(sim, 'public');
    const response = await callApi(sim, 'GET', '/users?page=2&sort=uid', access_token);
    const body = uids(await response.json());
    expect([body.length, body[0]]).toEqual([20, 'u-21']);
    expect(Object.fromEntries(response.headers)).toMatchObject({
      total: '45',
      'total-pages': '3',
      'current-page': '2',
      'next-page': '3',
      'page-items': '20',
    });
    const page = (n: number) => `<${sim.baseUrl}/users?page=${n}&sort=uid>`;
    expect(response.headers.get('link')).toBe(
      `${page(1)}; rel="first", ${page(1)}; rel="prev", ${page(3)}; rel="next", ${page(3)}; rel="last"`,
    );
  });

  it.each([3, 4])('names no next page on the last one and beyond: page %d', async (page) => {
    const sim = await start({ users: people(5) });
    const response = await callApi(sim, 'GET', `/users?api_key=demo-api-key&per_page=2&page=${page}`);
    expect(uids(await response.json())).toEqual(page === 3 ? ['u-5'] : []);
    expect(response.headers.get('next-page')).toBe('');
    expect(response.headers.get('link')).not.toContain('rel="next"');
    expect(response.headers.get('link')).not.toContain('demo-api-key');
  });

  it.each([
    'page=0',
    'page=-1',
    'page=x',
    'page=1.5',
    'page=',
    'page=1&page=2',
    'per_page=0',
    'per_page=101',
  ])('refuses %s with 422', async (query) => {
    const sim = await start();
    expect((await callApi(sim, 'GET', `/users?api_key=demo-api-key&${query}`)).status).toBe(422);
  });

  it.each(['api_key=wrong', 'api_key=', 'api_key=demo-api-key&api_key=demo-api-key', ''])(
    'refuses the query “%s” with 401',
    async (query) => {
      const sim = await start();
      expect((await callApi(sim, 'GET', `/users?${query}`)).status).toBe(401);
    },
  );

  it('puts filters on record, repeated ones as arrays, and the API key never', async () => {
    const sim = await start();
    const query = 'api_key=demo-api-key&created_at.gte=2024-01-01&role=a&role=b&x[]=1';
    expect((await callApi(sim, 'GET', `/users?${query}`)).status).toBe(200);
    expect(sim.received.all[0]?.query).toEqual({
      api_key: '[redacted]',
      'created_at.gte': '2024-01-01',
      role: ['a', 'b'],
      'x[]': '1',
    });
  });

  it('comes without paging headers when the option says so', async () => {
    const sim = await start({ users: people(1), pagingHeaders: false });
    const response = await callApi(sim, 'GET', '/users?api_key=demo-api-key');
    expect(await response.json()).toMatchObject({ data: [{ uid: 'u-1' }] });
    for (const name of ['total', 'total-pages', 'current-page', 'next-page', 'page-items', 'link']) {
      expect(response.headers.has(name)).toBe(false);
    }
  });
});
