import { afterAll, beforeAll, expect, it } from '@jest/globals';
import { Module } from '@nestjs/common';
import { NestFactory } from '@nestjs/core';
import { RedisStore } from 'connect-redis';
import session from 'express-session';
import { DebateSpaceModule } from 'nestjs-debate-space';
import { Browser } from '#support/browser/browser.js';
import { eventsOf } from '#support/hosts/events.js';
import { Latch } from '#support/latch.js';
import { redisClient, redisServer, startRedis, type RunningRedis } from '#support/servers/redis.js';
import { scenario } from '#support/hosts/scenario.js';
import { using } from '#support/service/service.js';
import type { Act } from '#support/hosts/session-host.js';

let redis: RunningRedis;
const scene = scenario();

/** A process has a connection, and so a store object, of its own. */
async function storeOfProcess(): Promise<RedisStore> {
  const client = await redisClient(redis.url).connect();
  scene.afterwards(() => client.close());
  return new RedisStore({ client });
}

interface Instance {
  readonly url: string;
  /** The users whose sessions it ended. */
  readonly reported: () => string[];
}

async function startInstance(act: Act): Promise<Instance> {
  const store = await storeOfProcess();
  const host = await scene.start({ store, act });
  const events = eventsOf(host.app);
  const reported = () => events.flatMap((event) => (event.type === 'session-ended' ? [event.uid] : []));
  return { url: host.url, reported };
}

const destroy: Act = (request) => new Promise((resolve) => request.session.destroy(resolve));

redisServer.describe('when processes share one Redis,', () => {
  beforeAll(async () => {
    redis = await startRedis();
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
    await scene.stop();
    expect({ one: one.reported(), other: other.reported() }).toEqual({ one: [], other: ['alice'] });
    expect(scene.service.received.logouts).toEqual(['alice']);
  });

  it('a browser that gets another cookie afterwards, from an instance that has seen it, is not reported again', async () => {
    const shop: Act = ({ session }) => void Object.assign(session, { cart: ['a book'] });
    const [one, other] = [await startInstance(shop), await startInstance(destroy)];
    const browser = new Browser(one.url);
    await browser.post('/login', { uid: 'alice' });
    await browser.post(`${other.url}/act`);
    await browser.post('/act'); // with the old cookie
    await scene.stop();
    expect({ one: one.reported(), other: other.reported() }).toEqual({ one: [], other: ['alice'] });
  });

  it('a login at one instance of a session that another one has ended is reported when it ends again', async () => {
    const [one, other] = [await startInstance(destroy), await startInstance(destroy)];
    const browser = new Browser(one.url);
    for (const { url } of [one, other, one, other]) {
      await browser.post(`${url}/login`, { uid: 'alice' });
      await browser.post(`${url === one.url ? other.url : one.url}/act`);
    }
    await scene.stop();
    expect({ one: one.reported(), other: other.reported() }).toEqual({
      one: ['alice', 'alice'],
      other: ['alice', 'alice'],
    });
  });

  it('two people at one browser are each reported when they leave, at whichever instance', async () => {
    // The id of the session stays: each instance remembers it with the user whom it has seen last.
    const leave: Act = ({ session }) => {
      delete session.user;
    };
    const both = [await startInstance(leave), await startInstance(leave)] as const;
    const browser = new Browser(both[0].url);
    const people = ['ann', 'ben'];
    for (let round = 0; round < 16; round += 1) {
      const via = (bit: number): string => both[round & bit ? 1 : 0].url;
      await browser.post(`${via(2)}/login`, { uid: people[round % 2] ?? '' });
      await browser.get(`${via(4)}/whoami`);
      await browser.post(`${via(8)}/act`);
    }
    await scene.stop();
    const reported = both.flatMap((instance) => instance.reported());
    expect(reported.toSorted()).toEqual(people.flatMap((uid) => Array<string>(8).fill(uid)));
  });

  it('what a script without HTTP ends by the store of its options is reported by the script', async () => {
    const instance = await startInstance(destroy);
    const browser = new Browser(instance.url);
    await browser.post('/login', { uid: 'alice' });

    const store = await storeOfProcess();
    @Module({ imports: [DebateSpaceModule.forRoot(using(scene.service, { session: { store } }))] })
    class Script {}
    const script = await NestFactory.createApplicationContext(Script, { logger: false });
    const sessions = (await store.all()) as unknown as (session.SessionData & { id: string })[];
    for (const { id } of sessions) await store.destroy(id);
    await script.close(); // delivers what there is

    expect(await browser.get('/whoami')).toBe('nobody');
    expect(scene.service.received.logouts).toEqual(['alice']);
    await scene.stop();
    expect(instance.reported()).toEqual([]);
    expect(scene.service.received.logouts).toEqual(['alice']);
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
    await scene.stop();
    // Neither knows of the other: rather one logout too many.
    expect([['alice'], ['alice', 'alice']]).toContainEqual(scene.service.received.logouts);
    expect([...one.reported(), ...other.reported()]).toEqual(scene.service.received.logouts);
  });
});
