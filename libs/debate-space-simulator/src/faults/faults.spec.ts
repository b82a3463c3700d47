import { describe, expect, it } from '@jest/globals';
import type { DebateSpaceSimulator } from '../debate-space-simulator.js';
import { callApi, deleteUser, logOut, simulators, signedToken } from '../testing/service-client.js';
import type { Fault } from './faults.js';

const start = simulators();
const DONE = '{"success":true}';

/** A simulator with `u-1` signed in and one simulated failure for the next logout. */
async function startWith(fault: Fault): Promise<DebateSpaceSimulator> {
  const sim = await start({ users: [{ uid: 'u-1' }] });
  sim.debate.signIn('u-1');
  sim.faults.add({ operation: 'logout', times: 1, ...fault });
  return sim;
}

describe('a simulated failure', () => {
  it.each<[fault: Fault, status: number | undefined, body: string, isApplied: boolean]>([
    [{ kind: 'outage' }, undefined, 'fetch failed', false],
    [{ kind: 'latency', ms: 20 }, 200, DONE, true],
    [{ kind: 'status', status: 503 }, 503, '{"success":false,"error":"Status 503"}', false],
    [{ kind: 'reset-after-apply' }, undefined, 'fetch failed', true],
    [{ kind: 'slow-body', ms: 20 }, 200, DONE, true],
    [{ kind: 'cut-body' }, 200, 'terminated', true],
    [{ kind: 'malformed-body' }, 200, '{"succes', true],
    [{ kind: 'body', body: '' }, 200, '', false],
    [{ kind: 'body', body: undefined }, 200, '', false],
    [{ kind: 'body', body: '<h1>Bad gateway</h1>' }, 200, '<h1>Bad gateway</h1>', false],
    [{ kind: 'body', body: { success: false } }, 200, '{"success":false}', false],
    [{ kind: 'body', body: [1], status: 202, apply: true }, 202, '[1]', true],
    [{ kind: 'body', body: null, apply: true }, 200, 'null', true],
    [{ kind: 'body', body: '', status: 204, apply: true }, 204, '', true],
    [{ kind: 'redirect', location: '/elsewhere' }, 302, '', false],
  ])('of kind %j answers %s %s, applied: %s', async (fault, status, body, isApplied) => {
    const sim = await startWith(fault);
    const text = await logOut(sim, signedToken())
      .then((response) => response.text())
      .catch((error: unknown) => (error as Error).message);
    expect(text).toBe(body);
    expect(sim.debate.isSignedIn('u-1')).toBe(!isApplied);
    const [received] = sim.received.all;
    expect([received?.status, received?.accepted]).toEqual([status, isApplied]);
    if (!isApplied) expect(received?.reason).toBe(`simulated failure: ${fault.kind}`);
    if (fault.kind !== 'outage') expect(received).toMatchObject({ uid: 'u-1', claims: { sub: 'u-1' } });
    expect((await logOut(sim, signedToken())).status).toBe(200); // the connection is usable
  });

  it.each<[Fault, string, string]>([
    [{ kind: 'status', status: 503, headers: { 'Retry-After': '7' } }, 'retry-after', '7'],
    [{ kind: 'body', body: '', contentType: 'text/html' }, 'content-type', 'text/html'],
    [{ kind: 'redirect', location: 'https://elsewhere.example/' }, 'location', 'https://elsewhere.example/'],
    [{ kind: 'slow-body', ms: 60_000 }, 'content-length', '16'], // immediately, before the body
    [{ kind: 'cut-body' }, 'content-length', '16'],
  ])('as %j sends the header %s: %s', async (fault, name, value) => {
    const sim = await startWith(fault);
    const response = await logOut(sim, signedToken());
    expect(response.headers.get(name)).toBe(value);
    await response.body?.cancel().catch(() => undefined);
  });

  it.each(['latency', 'slow-body'] as const)('of kind %s holds the answer back', async (kind) => {
    const sim = await startWith({ kind, ms: 160 });
    const begun = performance.now();
    const answer = logOut(sim, signedToken());
    await sim.received.waitFor('logout');
    expect(sim.debate.isSignedIn('u-1')).toBe(false);
    expect(await (await answer).text()).toBe(DONE);
    expect(performance.now() - begun).toBeGreaterThan(140);
  });

  it('of kind latency applies the request of a client that gives up', async () => {
    const sim = await startWith({ kind: 'latency', ms: 60_000 });
    const body = new URLSearchParams({ logout_token: signedToken() });
    const leaving = new AbortController();
    const answer = fetch(`${sim.url}/auth/logout/demo`, { method: 'POST', body, signal: leaving.signal });
    await sim.received.waitFor('logout');
    leaving.abort();
    await expect(answer).rejects.toThrow('aborted');
    expect(sim.received.logouts).toEqual(['u-1']);
  });

  it('changes nothing else in the answer of a refused operation', async () => {
    const sim = await startWith({ kind: 'malformed-body' });
    expect((await logOut(sim, 'no token')).status).toBe(400);
    expect(sim.received.all).toMatchObject([{ accepted: false, status: 400 }]);
  });
});

describe('the simulated failures in force', () => {
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

  it('are met one at a time, the oldest first, and can be taken back, one or all', async () => {
    const sim = await start();
    const answered = async () => (await callApi(sim, 'GET', '/users')).status;
    sim.faults.add({ kind: 'status', status: 502, times: 1 });
    sim.faults.add({ kind: 'status', status: 503, times: 1 });
    expect([await answered(), await answered(), await answered()]).toEqual([502, 503, 401]);
    const takeBack = sim.faults.add({ kind: 'status', status: 502 });
    sim.faults.add({ kind: 'status', status: 503 });
    takeBack();
    takeBack();
    expect(await answered()).toBe(503);
    sim.faults.clear();
    expect(await answered()).toBe(401);
  });
});
