import { afterAll, afterEach, beforeAll, beforeEach, expect, it } from '@jest/globals';
import { Module } from '@nestjs/common';
import { NestFactory } from '@nestjs/core';
import { RedisStore } from 'connect-redis';
import session from 'express-session';
import type { DebateSpaceSimulator } from 'debate-space-simulator';
import { DebateSpaceEvents, DebateSpaceModule } from 'nestjs-debate-space';
import { Browser } from 'debate-space-fixtures/browser.js';
import { Latch } from 'debate-space-fixtures/latch.js';
import { redisClient, redisServer, startRedis, type RunningRedis } from 'debate-space-fixtures/redis.js';
import { startService, using } from 'debate-space-fixtures/service.js';
import { SessionHost, type Act } from 'debate-space-fixtures/session-host.js';

let redis: RunningRedis;
let service: DebateSpaceSimulator;
/** What to close, the last one first. */
const closing: (() => unknown)[] = [];

/** A process has a connection, and so a store object, of its own. */
async function storeOfProcess(): Promise<RedisStore> {
  const client = await redisClient(redis.url).connect();
  closing.push(() => client.close());
  return new RedisStore({ client });
}

interface Instance {
  readonly url: string;
  readonly reported: string[];
}

async function startInstance(act: Act): Promise<Instance> {
  const store = await storeOfProcess();
  const host = await SessionHost.start({ store, act, debateSpace: using(service) });
  closing.push(() => host.stop());
  const reported: string[] = [];
  host.app.get(DebateSpaceEvents).events$.subscribe((event) => {
    if (event.type === 'session-ended') reported.push(event.uid);
  });
  return { url: host.url, reported };
}

async function stopAll(): Promise<void> {
  for (const close of closing.splice(0).reverse()) await close();
}

const destroy: Act = (request) => new Promise((resolve) => request.session.destroy(resolve));

redisServer.describe('processes with one Redis:', () => {
  beforeAll(async () => {
    redis = await startRedis();
  });
  beforeEach(async () => {
    service = await startService();
  });
  afterEach(async () => {
    await stopAll();
    await service.stop();
  });
  afterAll(async () => {
    await redis.stop();
  });

  const logouts = [
    { name: 'that has not seen a request before', warm: false },
    { name: 'that has', warm: true },
  ];
  it.each(logouts)('a logout at another instance, $name, is reported by that one', async ({ warm }) => {
    const [one, other] = [await startInstance(destroy), await startInstance(destroy)];
    const browser = new Browser(one.url);
    await browser.post('/login', { uid: 'alice' });
    if (warm) expect(await browser.get(`${other.url}/whoami`)).toBe('alice');
    await browser.post(`${other.url}/act`);
    expect(await browser.get('/whoami')).toBe('nobody');
    await stopAll();
    expect({ one: one.reported, other: other.reported }).toEqual({ one: [], other: ['alice'] });
    expect(service.received.logouts).toEqual(['alice']);
  });

  it('a login at one instance of a session that another one has ended is reported when it ends again', async () => {
    const [one, other] = [await startInstance(destroy), await startInstance(destroy)];
    const browser = new Browser(one.url);
    for (const { url } of [one, other, one, other]) {
      await browser.post(`${url}/login`, { uid: 'alice' });
      await browser.post(`${url === one.url ? other.url : one.url}/act`);
    }
    await stopAll();
    expect({ one: one.reported, other: other.reported }).toEqual({
      one: ['alice', 'alice'],
      other: ['alice', 'alice'],
    });
  });

  it('what a script without HTTP ends by the store of its options is reported by the script', async () => {
    const instance = await startInstance(destroy);
    const browser = new Browser(instance.url);
    await browser.post('/login', { uid: 'alice' });

    const store = await storeOfProcess();
    @Module({ imports: [DebateSpaceModule.forRoot(using(service, { session: { store } }))] })
    class Script {}
    const script = await NestFactory.createApplicationContext(Script, { logger: false });
    const sessions = (await store.all()) as unknown as (session.SessionData & { id: string })[];
    for (const { id } of sessions) await store.destroy(id);
    await script.close(); // delivers what there is

    expect(await browser.get('/whoami')).toBe('nobody');
    expect(service.received.logouts).toEqual(['alice']);
    await stopAll();
    expect(instance.reported).toEqual([]);
    expect(service.received.logouts).toEqual(['alice']);
  });

  it('a session that two instances end at the same moment is reported at least once, and at most by each', async () => {
    const bothIn = new Latch(2);
    const together: Act = async (request, ...rest) => {
      bothIn.open();
      await bothIn.passed;
      await destroy(request, ...rest);
    };
    const [one, other] = [await startInstance(together), await startInstance(together)];
    const browser = new Browser(one.url);
    await browser.post('/login', { uid: 'alice' });
    await Promise.all([browser.post('/act'), browser.post(`${other.url}/act`)]);
    expect(await browser.get('/whoami')).toBe('nobody');
    await stopAll();
    // Neither knows of the other: rather one logout too many.
    expect([['alice'], ['alice', 'alice']]).toContainEqual(service.received.logouts);
    expect([...one.reported, ...other.reported]).toEqual(service.received.logouts);
  });
});
