import { describe, expect, it } from '@jest/globals';
import { accessToken, callApi, deleteUser, simulators } from '../testing/service-client.js';

const start = simulators();
const AWKWARD_UIDS = ['a/b', '100%', '%2F', 'née 😀', '..a', 'a?b#c', 'a+b c', '"<uid>"'];

describe('anonymization', () => {
  it('erases the personal fields and the uid, keeps the contributions, and ends the session', async () => {
    const sim = await start({
      users: [{ uid: 'u-1', first_name: 'F', last_name: 'L', email: 'e@example.org', contributions: 3 }],
    });
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

describe('deletion', () => {
  it('removes the user with everything and refuses the uid for ever', async () => {
    const sim = await start({ users: [{ uid: 'u-1', contributions: 3 }] });
    sim.debate.signIn('u-1');
    expect((await deleteUser(sim, 'u-1')).status).toBe(200);
    expect(sim.users.all()).toEqual([]);
    expect(sim.debate.signedIn()).toEqual([]);
    expect(sim.users.wasDeleted('u-1')).toBe(true);
    expect(() => {
      sim.debate.signIn('u-1');
    }).toThrow('deletion is final');
    expect((await deleteUser(sim, 'u-1')).status).toBe(404);
  });
});

describe('the uid in the path', () => {
  it.each(AWKWARD_UIDS)('is decoded from one segment: %s', async (uid) => {
    const sim = await start({ users: [{ uid }, { uid: 'other' }] });
    const { access_token } = await accessToken(sim);
    const path = `/users/${encodeURIComponent(uid)}`;
    expect((await callApi(sim, 'POST', `${path}/anonymize`, access_token)).status).toBe(200);
    sim.users.add({ uid });
    expect((await callApi(sim, 'DELETE', path, access_token)).status).toBe(200);
    expect(sim.users.count).toBe(2);
    expect(sim.users.has('other')).toBe(true);
    expect(sim.received.of('delete')).toMatchObject([{ uid }]);
  });

  it('does not span segments', async () => {
    const sim = await start({ users: [{ uid: 'a/b' }] });
    const { access_token } = await accessToken(sim);
    expect((await callApi(sim, 'DELETE', '/users/a/b', access_token)).status).toBe(404);
    expect((await callApi(sim, 'DELETE', '/users/a%252Fb', access_token)).status).toBe(404);
    expect(sim.received.all.slice(1)).toMatchObject([{ operation: 'unknown' }, { operation: 'delete' }]);
    expect(sim.users.has('a/b')).toBe(true);
  });

  it('is refused with 400 when it cannot be decoded', async () => {
    const sim = await start();
    const response = await callApi(sim, 'DELETE', '/users/%zz', 'any');
    expect([response.status, await response.json()]).toMatchObject([400, { success: false }]);
    expect(sim.received.all).toMatchObject([{ operation: 'unknown', status: 400 }]);
  });
});

describe('an unknown route', () => {
  it.each([
    'GET /oauth/token',
    'POST /api/v1/users',
    'DELETE /users/u-1',
    'GET /api/v1/users/',
    'GET /API/v1/users',
  ])('is answered 404 as JSON: %s', async (route) => {
    const sim = await start();
    const [method = '', path = ''] = route.split(' ');
    const response = await fetch(sim.url + path, { method });
    expect([response.status, await response.json()]).toMatchObject([404, { success: false }]);
    expect(sim.received.all).toMatchObject([{ operation: 'unknown', method, path, accepted: false }]);
  });
});
