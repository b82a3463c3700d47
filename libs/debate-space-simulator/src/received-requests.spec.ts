import { request } from 'node:http';
import { describe, expect, it } from '@jest/globals';
import {
  accessToken,
  callApi,
  deleteUser,
  logOut,
  simulators,
  logoutClaims,
  signedToken,
} from './testing/service-client.js';

const start = simulators();

describe('the record of received requests', () => {
  it('has every request in order, with its outcome and without its secrets', async () => {
    const sim = await start({ users: [{ uid: 'u-1' }] });
    const before = Date.now();
    await deleteUser(sim, 'u-1');
    await logOut(sim, signedToken(logoutClaims({ nonce: 'n' })));
    const form = { 'content-type': 'application/x-www-form-urlencoded;charset=UTF-8' };
    const json = { authorization: 'Bearer', 'content-type': 'application/json' };
    const user = { method: 'DELETE', path: '/api/v1/users/u-1', uid: 'u-1' };
    expect(sim.received.all).toMatchObject([
      {
        operation: 'token',
        method: 'POST',
        path: '/oauth/token',
        status: 200,
        accepted: true,
        headers: form,
      },
      { operation: 'delete', ...user, headers: json },
      { operation: 'logout', status: 400, accepted: false, uid: 'u-1', claims: { nonce: 'n' } },
    ]);
    expect(sim.received.count).toBe(3);
    for (const { at } of sim.received.all) expect(at).toBeGreaterThanOrEqual(before);
    expect(sim.received.logouts).toEqual([]);
  });

  it('does not take a bare credential for a scheme, and does not grow after it was read', async () => {
    const sim = await start();
    const { all } = sim.received;
    await callApi(sim, 'GET', '/users', undefined, { authorization: 'credential' });
    expect(sim.received.all[0]?.headers.authorization).toBe('[no known scheme]');
    expect(all).toEqual([]);
  });

  it('has a request whose client went away before it was complete', async () => {
    const sim = await start();
    const headers = { 'content-length': 100 };
    const leaving = request(`${sim.url}/auth/logout/demo`, { method: 'POST', headers });
    leaving.on('error', () => undefined);
    leaving.write('logout_token=', () => leaving.destroy());
    const [received] = await sim.received.waitFor('logout');
    expect(received).toMatchObject({ accepted: false, reason: expect.stringContaining('closed') });
    expect(received).not.toHaveProperty('status');
  });
});

describe('waitFor', () => {
  it('resolves when the request arrives, and immediately when it has arrived', async () => {
    const sim = await start();
    const waiting = sim.received.waitFor('logout', { count: 2 });
    await logOut(sim, signedToken());
    await logOut(sim, signedToken(logoutClaims({ sub: 'u-2' })));
    expect((await waiting).map(({ uid }) => uid)).toEqual(['u-1', 'u-2']);
    expect(await sim.received.waitFor(({ uid }) => uid === 'u-2', { timeoutMs: 0 })).toHaveLength(1);
  });

  it('rejects on time-out and names what came instead, if anything', async () => {
    const sim = await start();
    const nothing = sim.received.waitFor(() => true, { timeoutMs: 5 });
    await expect(nothing).rejects.toThrow('1 matching request(s). Nothing was received.');
    await accessToken(sim);
    await logOut(sim, 'x');
    const waiting = sim.received.waitFor('delete', { timeoutMs: 5 });
    const token = 'POST /oauth/token: status 200, accepted';
    const logout = 'POST /auth/logout/demo: status 400, not accepted: invalid_request';
    for (const part of ['Waited 5 ms for 1 delete request(s)', token, logout])
      await expect(waiting).rejects.toThrow(part);
  });
});
