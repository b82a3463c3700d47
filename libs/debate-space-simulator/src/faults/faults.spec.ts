import { describe, expect, it } from '@jest/globals';
import { callApi, deleteUser, logOut, simulators, signedToken } from '../testing/service-client.js';

const start = simulators();

describe('the faults in force', () => {
  it('meet only their operation, and as often as they should', async () => {
    const sim = await start({ users: [{ uid: 'u-1' }] });
    sim.faults.add({ kind: 'status', status: 500, operation: 'delete', times: 2 });
    expect((await logOut(sim, signedToken())).status).toBe(200);
    for (const status of [500, 500, 200]) expect((await deleteUser(sim, 'u-1')).status).toBe(status);
  });

  it('meet every operation and unknown routes by default, yet never the page', async () => {
    const sim = await start();
    sim.faults.add({ kind: 'status', status: 500 });
    const paths = ['/oauth/token', '/nowhere', '/', '/simulator/state'];
    const responses = await Promise.all(paths.map((path) => fetch(sim.url + path)));
    expect(responses.map(({ status }) => status)).toEqual([500, 500, 200, 200]);
  });

  it('are met one at a time, the oldest first', async () => {
    const sim = await start();
    sim.faults.add({ kind: 'status', status: 502, times: 1 });
    sim.faults.add({ kind: 'status', status: 503, times: 1 });
    for (const status of [502, 503, 401]) expect((await callApi(sim, 'GET', '/users')).status).toBe(status);
  });

  it('can be taken back, one or all', async () => {
    const sim = await start();
    const takeBack = sim.faults.add({ kind: 'status', status: 502 });
    sim.faults.add({ kind: 'status', status: 503 });
    takeBack();
    takeBack();
    expect((await callApi(sim, 'GET', '/users')).status).toBe(503);
    sim.faults.clear();
    expect((await callApi(sim, 'GET', '/users')).status).toBe(401);
  });
});
