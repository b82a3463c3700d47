import { describe, expect, it } from '@jest/globals';
import type { DebateSpaceSimulator } from '../debate-space-simulator.js';
import { logOut, simulators, signedToken } from '../testing/service-client.js';
import type { Fault } from './faults.js';

const start = simulators();

/** A simulator with `u-1` signed in and one fault for the next logout. */
async function startWith(fault: Fault): Promise<DebateSpaceSimulator> {
  const sim = await start({ users: [{ uid: 'u-1' }] });
  sim.debate.signIn('u-1');
  sim.faults.add({ operation: 'logout', times: 1, ...fault });
  return sim;
}

describe('a fault', () => {
  it('of kind outage ends the connection and applies nothing', async () => {
    const sim = await startWith({ kind: 'outage' });
    await expect(logOut(sim, signedToken())).rejects.toThrow('fetch failed');
    expect(sim.debate.isSignedIn('u-1')).toBe(true);
    expect(sim.received.all).toMatchObject([
      { operation: 'logout', accepted: false, reason: 'fault: outage' },
    ]);
    expect(sim.received.all[0]).not.toHaveProperty('status');
  });

  it('of kind latency applies on arrival and answers later', async () => {
    const sim = await startWith({ kind: 'latency', ms: 150 });
    const begun = performance.now();
    const answer = logOut(sim, signedToken());
    await sim.received.waitFor('logout');
    expect(sim.debate.isSignedIn('u-1')).toBe(false);
    expect((await answer).status).toBe(200);
    expect(performance.now() - begun).toBeGreaterThanOrEqual(145);
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

  it('of kind status answers with that status and applies nothing', async () => {
    const sim = await startWith({ kind: 'status', status: 503, headers: { 'Retry-After': '7' } });
    const response = await logOut(sim, signedToken());
    expect([response.status, response.headers.get('retry-after')]).toEqual([503, '7']);
    expect(await response.json()).toEqual({ success: false, error: 'Status 503' });
    expect(sim.debate.isSignedIn('u-1')).toBe(true);
    expect(sim.received.all).toMatchObject([
      { status: 503, accepted: false, uid: 'u-1', reason: 'fault: status', claims: { sub: 'u-1' } },
    ]);
  });

  it('of kind reset-after-apply applies and does not answer', async () => {
    const sim = await startWith({ kind: 'reset-after-apply' });
    await expect(logOut(sim, signedToken())).rejects.toThrow('fetch failed');
    expect(sim.debate.isSignedIn('u-1')).toBe(false);
    expect(sim.received.logouts).toEqual(['u-1']);
    expect(sim.received.all[0]).not.toHaveProperty('status');
  });

  it('of kind slow-body sends the headers immediately', async () => {
    const sim = await startWith({ kind: 'slow-body', ms: 60_000 });
    const response = await logOut(sim, signedToken());
    expect([response.status, response.headers.get('content-length')]).toEqual([200, '16']);
    expect(sim.debate.isSignedIn('u-1')).toBe(false);
    await response.body?.cancel();
  });

  it('of kind slow-body sends the whole body later', async () => {
    const sim = await startWith({ kind: 'slow-body', ms: 160 });
    const begun = performance.now();
    const response = await logOut(sim, signedToken());
    expect(await response.json()).toEqual({ success: true });
    expect(performance.now() - begun).toBeGreaterThan(140);
  });

  it('of kind cut-body promises the whole length and sends half of it', async () => {
    const sim = await startWith({ kind: 'cut-body' });
    const response = await logOut(sim, signedToken());
    expect([response.status, response.headers.get('content-length')]).toEqual([200, '16']);
    await expect(response.text()).rejects.toThrow('terminated');
    expect(sim.debate.isSignedIn('u-1')).toBe(false);
  });

  it('of kind malformed-body is complete by its length and cut off as JSON', async () => {
    const sim = await startWith({ kind: 'malformed-body' });
    const response = await logOut(sim, signedToken());
    expect([response.status, await response.text()]).toEqual([200, '{"succes']);
    expect(sim.debate.isSignedIn('u-1')).toBe(false);
  });

  it.each<[unknown, string]>([
    ['', ''],
    [undefined, ''],
    ['<h1>Bad gateway</h1>', '<h1>Bad gateway</h1>'],
    [{ success: false }, '{"success":false}'],
    [[1], '[1]'],
    [null, 'null'],
  ])('of kind body answers %j and applies nothing unless apply is set', async (body, sent) => {
    const sim = await startWith({ kind: 'body', body, contentType: 'text/html' });
    const response = await logOut(sim, signedToken());
    expect([response.status, await response.text()]).toEqual([200, sent]);
    expect(response.headers.get('content-type')).toBe('text/html');
    expect(sim.debate.isSignedIn('u-1')).toBe(true);

    sim.faults.add({ kind: 'body', body, status: 202, apply: true, times: 1 });
    expect((await logOut(sim, signedToken())).status).toBe(202);
    expect(sim.received.logouts).toEqual(['u-1']);
  });

  it('of kind body with a status that has no body leaves the connection usable', async () => {
    const sim = await startWith({ kind: 'body', body: '', status: 204, apply: true });
    const response = await logOut(sim, signedToken());
    expect([response.status, await response.text()]).toEqual([204, '']);
    expect((await logOut(sim, signedToken())).status).toBe(200);
  });

  it('of kind redirect answers with a location and applies nothing', async () => {
    const sim = await startWith({ kind: 'redirect', location: 'https://elsewhere.example/', status: 307 });
    const response = await logOut(sim, signedToken());
    expect([response.status, response.headers.get('location')]).toEqual([307, 'https://elsewhere.example/']);
    expect(sim.debate.isSignedIn('u-1')).toBe(true);
  });

  it('changes nothing else in the answer of a refused operation', async () => {
    const sim = await startWith({ kind: 'malformed-body' });
    expect((await logOut(sim, 'no token')).status).toBe(400);
    expect(sim.received.all).toMatchObject([{ accepted: false, status: 400 }]);
  });
});
