import { once } from 'node:events';
import { createConnection } from 'node:net';
import { inspect } from 'node:util';
import { describe, expect, it } from '@jest/globals';
import { DebateSpaceSimulator } from './debate-space-simulator.js';
import { DEMO_CREDENTIALS } from './simulator-options.js';
import { openEvents, accessToken, callApi, simulators } from './testing/service-client.js';

const start = simulators();

describe('a simulator', () => {
  it('runs beside others without sharing anything', async () => {
    const [one, other] = [await start(), await start({ users: [{ uid: 'u-1' }] })];
    expect(one.url).toMatch(/^http:\/\/127\.0\.0\.1:\d+$/);
    expect(one.baseUrl).toBe(`${one.url}/api/v1`);
    expect(one.url).not.toBe(other.url);
    const { access_token } = await accessToken(one);
    expect((await callApi(other, 'DELETE', '/users/u-1', access_token)).status).toBe(401);
    expect([one.received.count, other.received.count]).toEqual([1, 1]);
  });

  it('names an address clients can use when it listens on all of them', async () => {
    const sim = await start({ host: '0.0.0.0' });
    expect([sim.url, (await fetch(sim.url)).status]).toEqual([
      expect.stringMatching(/\/\/127\.0\.0\.1:\d+$/),
      200,
    ]);
  });

  it('shows its clock in the Date header', async () => {
    const sim = await start({ clockOffsetSeconds: 3600 });
    const ahead = async () => Date.parse((await fetch(sim.url)).headers.get('date') ?? '') - Date.now();
    expect(await ahead()).toBeGreaterThan(3_500_000);
    sim.clockOffsetSeconds = -3600;
    expect(await ahead()).toBeLessThan(-3_500_000);
    expect(sim.clockOffsetSeconds).toBe(-3600);
  });

  it('shows no secret and no token when it is inspected', async () => {
    const sim = await start({ users: [{ uid: 'u-1' }] });
    const { access_token } = await accessToken(sim);
    await callApi(sim, 'DELETE', '/users/u-1', access_token);
    const { apiKey, secretKey } = DEMO_CREDENTIALS;
    for (const [each, shown] of [
      [sim, 'DebateSpaceSimulator'] as const,
      [sim.received.all, 'u-1'] as const,
    ]) {
      const text = inspect(each, { depth: Infinity, showHidden: true });
      expect(text).toContain(shown);
      for (const secret of [access_token, apiKey, secretKey]) expect(text).not.toContain(secret);
    }
  });

  it.each([{ apiKey: '' }, { secretKey: '' }, { applicationName: '' }])('refuses %j', async (options) => {
    await expect(DebateSpaceSimulator.start(options)).rejects.toThrow('must not be empty');
  });

  it('refuses a secret key that is not Base64 when it should be, without repeating it', async () => {
    const starting = DebateSpaceSimulator.start({ secretKey: 'not-base64', secretKeyEncoding: 'base64' });
    await expect(starting).rejects.toThrow('is not Base64');
    await expect(starting).rejects.not.toThrow('not-base64');
  });

  it('passes on the system’s error for a port that is taken', async () => {
    const sim = await start();
    const port = Number(new URL(sim.url).port);
    await expect(DebateSpaceSimulator.start({ port })).rejects.toMatchObject({ code: 'EADDRINUSE' });
  });
});

describe('an outage', () => {
  it('refuses connections until it is finished, and keeps the address and the state', async () => {
    const sim = await start({ users: [{ uid: 'u-1' }] });
    const { url } = sim;
    const { access_token } = await accessToken(sim);
    await sim.goDown();
    await sim.goDown();
    await expect(fetch(url)).rejects.toMatchObject({ cause: { code: 'ECONNREFUSED' } });
    expect(sim.url).toBe(url);
    await sim.comeBack();
    await sim.comeBack();
    expect((await callApi(sim, 'DELETE', '/users/u-1', access_token)).status).toBe(200);
  });

  it('keeps the order of its steps when nobody waits for them', async () => {
    const sim = await start();
    await Promise.all([sim.goDown(), sim.comeBack(), sim.goDown(), sim.comeBack()]);
    expect((await fetch(sim.url)).status).toBe(200);
  });
});

describe('stopping', () => {
  it('ends event streams, idle connections and held-back answers, and can be repeated', async () => {
    const sim = await start();
    const events = await openEvents(`${sim.url}/simulator/events`);
    await events.next();
    const idle = createConnection(Number(new URL(sim.url).port), '127.0.0.1');
    await once(idle, 'connect');
    const idleClosed = once(idle, 'close');
    sim.faults.add({ kind: 'latency', ms: 60_000 });
    const held = expect(accessToken(sim)).rejects.toThrow();
    await sim.received.waitFor('token');
    await Promise.all([sim.stop(), sim.stop()]);
    await sim.stop();
    await expect(events.next()).rejects.toThrow('terminated');
    await Promise.all([idleClosed, held]);
    await expect(sim.comeBack()).rejects.toThrow('stopped for good');
  });

  it('happens at the end of an await using block', async () => {
    const sim = await start();
    await sim[Symbol.asyncDispose]();
    await expect(fetch(sim.url)).rejects.toThrow('fetch failed');
  });
});
