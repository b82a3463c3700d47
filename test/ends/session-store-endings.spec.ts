import { describe, expect, it, jest } from '@jest/globals';
import { ObjectId } from 'bson';
import { RedisStore } from 'connect-redis';
import type { Request } from 'express';
import type { Store } from 'express-session';
import type { DebateSpaceModuleOptions } from 'nestjs-debate-space';
import { redisStorage } from 'nestjs-debate-space/redis';
import { createClient } from 'redis';
import { Browser, logInTo } from 'debate-space-fixtures/browser.js';
import { Latch } from 'debate-space-fixtures/latch.js';
import { redisServer, startRedis } from 'debate-space-fixtures/redis.js';
import { scenario } from 'debate-space-fixtures/scenario.js';
import { BsonStore } from 'debate-space-fixtures/watched-store/bson-store.js';
import { localKinds } from 'debate-space-fixtures/watched-store/kinds.js';
import { RowStore } from 'debate-space-fixtures/watched-store/small-stores.js';
import { destroySession } from 'debate-space-fixtures/session-jobs.js';

const scene = scenario();
const cleared = (store: Store): Promise<unknown> => new Promise((resolve) => store.clear?.(resolve));

type Redis = ReturnType<typeof createClient>;

interface ClearedStore {
  readonly name: string;
  readonly open: () => Promise<{ readonly store: object; readonly close?: () => unknown }>;
}
const kindOf = (name: string): ClearedStore => {
  const kind = localKinds.find((each) => each.name === name);
  if (!kind) throw new Error(`no store of this name: ${name}`);
  return { name, open: async () => kind.open() };
};

/** A host whose users have a request under way each, but for carol, when the store is cleared – twice. */
async function clearWhileUsersAreThere({ open }: ClearedStore): Promise<readonly string[]> {
  const { store, close: closeStore } = await open();
  if (closeStore) scene.afterwards(closeStore);
  const [waiting, done] = [new Latch(3), new Latch()];
  const warnings: string[] = [];
  const warn = (message: unknown): unknown => warnings.push(String(message));
  const nothing = (): void => undefined;
  const act = async (): Promise<void> => {
    waiting.open();
    await done.passed;
  };
  const logger = { log: nothing, error: nothing, warn };
  const host = await scene.start({ store: store as Store, act, logger });
  const browsers = await Promise.all(['alice', 'bob', 'carol', 'dora'].map((uid) => logInTo(host, uid)));
  const underWay = browsers.filter((_, index) => index !== 2).map((browser) => browser.post('/act'));
  await waiting.passed;
  await cleared(store as Store);
  await cleared(store as Store);
  done.open();
  await Promise.all(underWay);
  await scene.stop();
  return warnings.filter((line) => /clear/i.test(line));
}

describe('a store that cannot list its sessions with their ids', () => {
  const blind: ClearedStore[] = [
    kindOf('session-file-store'),
    { name: 'rows of a table', open: () => Promise.resolve({ store: new RowStore() }) },
  ];

  it.each(blind)('is cleared, and each user with a request is reported once: $name', async (kind) => {
    await clearWhileUsersAreThere(kind);
    const known = scene.service.received.logouts.filter((uid) => uid !== 'carol');
    expect(known.toSorted()).toEqual(['alice', 'bob', 'dora']);
  });

  it.each(blind)('is cleared twice, and one warning says what cannot be seen: $name', async (kind) => {
    expect(await clearWhileUsersAreThere(kind)).toHaveLength(1);
  });
});

describe('a store that lists its sessions', () => {
  const lists = ['MemoryStore of express-session', 'memorystore', 'BSON', 'connect-sqlite3'].map(kindOf);

  it.each(lists)('is cleared, and each user is reported once, without a warning: $name', async (kind) => {
    expect(await clearWhileUsersAreThere(kind)).toEqual([]);
    expect(scene.service.received.logouts.toSorted()).toEqual(['alice', 'bob', 'carol', 'dora']);
  });
});

describe('a store that keeps BSON', () => {
  it('has a user who is an ObjectId, and their logout is reported by its hexadecimal text', async () => {
    const id = new ObjectId();
    const act = (request: Request): unknown => {
      if (request.query.name === 'logout') return destroySession(request);
      return Object.assign(request.session, { userId: id });
    };
    const host = await scene.start({ store: new BsonStore(), act });
    const browser = new Browser(host.url);
    await browser.post('/act?name=login');
    await browser.post('/act?name=logout');
    expect(await scene.logouts()).toEqual([id.toHexString()]);
  });
});

redisServer.describe('connect-redis', () => {
  async function client(): Promise<Redis> {
    const redis = await startRedis();
    scene.afterwards(() => redis.stop());
    const connected = createClient({ url: redis.url });
    await connected.connect();
    scene.afterwards(() => connected.close());
    return connected;
  }

  it('has its prototype spied on after the first request: the spy sees a logout, which is reported', async () => {
    const host = await scene.start({
      store: new RedisStore({ client: await client() }),
      act: destroySession,
    });
    const browser = await logInTo(host, 'alice');
    const spy = jest.spyOn(RedisStore.prototype, 'destroy');
    scene.afterwards(() => {
      spy.mockRestore();
    });
    await browser.post('/act');
    await scene.stop();
    expect(spy).toHaveBeenCalledTimes(1);
    expect(scene.service.received.logouts).toEqual(['alice']);
  });

  it('has its prototype replaced by a method that ends nothing: nothing is reported', async () => {
    const host = await scene.start({
      store: new RedisStore({ client: await client() }),
      act: destroySession,
    });
    const browser = await logInTo(host, 'alice');
    const spy = jest.spyOn(RedisStore.prototype, 'destroy').mockImplementation((_, done) => {
      done?.(new Error('the spy ends nothing'), null);
      return Promise.resolve();
    });
    scene.afterwards(() => {
      spy.mockRestore();
    });
    await browser.post('/act');
    await scene.stop();
    expect(spy).toHaveBeenCalledTimes(1);
    expect(scene.service.received.logouts).toEqual([]);
  });

  it('is the prototype of a store with another prefix: each keeps its own keys, and each logout is reported', async () => {
    const redis = await client();
    const store = new RedisStore({ client: redis, prefix: 'main:' });
    const derived = Object.create(store, { prefix: { value: 'youth:' } }) as RedisStore;
    const host = await scene.start({ store, stores: { '/youth': derived }, act: destroySession });
    const alice = await logInTo(host, 'alice');
    const bob = await logInTo(host, 'bob', '/youth/');
    const prefixes = (await redis.keys('*')).map((key) => key.replace(/:.*/, '')).toSorted();
    expect(prefixes).toEqual(['main', 'youth']);
    await alice.post('/act');
    await bob.post('/youth/act');
    expect(await redis.keys('*')).toEqual([]);
    expect((await scene.logouts()).toSorted()).toEqual(['alice', 'bob']);
  });

  /** Counts the commands about sessions that clients send from now on, without those that scripts run in the server. */
  async function monitor(redis: Redis): Promise<() => Promise<number>> {
    let count = 0;
    const end = new Latch();
    const watching = await redis.duplicate().connect();
    await watching.monitor((line) => {
      if (line.includes('"the end"')) end.open();
      else if (/"(sess|session):/.test(line) && !line.includes(' lua] ')) count += 1;
    });
    return async () => {
      await redis.echo('the end');
      await end.passed;
      watching.destroy();
      return count;
    };
  }

  const REQUESTS = 100;
  const HOUR_MS = 3_600_000;

  /** How many commands Redis gets from requests of a session whose stored form is ten minutes old. */
  async function commandsOfRequests(
    options: (redis: Redis, store: RedisStore) => Partial<DebateSpaceModuleOptions>,
  ): Promise<number> {
    const redis = await client();
    const store = new RedisStore({ client: redis });
    const host = await scene.start({ store, maxAge: HOUR_MS }, options(redis, store));
    const browser = await logInTo(host, 'alice');
    const [key = ''] = await redis.keys('sess:*');
    const stored = JSON.parse((await redis.get(key)) ?? '') as { cookie: { expires: string } };
    stored.cookie.expires = new Date(Date.now() + HOUR_MS - 600_000).toISOString(); // touch never writes it
    await redis.set(key, JSON.stringify(stored), { KEEPTTL: true });
    const commands = await monitor(redis);
    for (let request = 0; request < REQUESTS; request += 1)
      expect(await browser.get('/whoami')).toBe('alice');
    const count = await commands();
    await scene.stop();
    return count;
  }

  it('costs a few commands more with session.expiry, and not some with each request', async () => {
    const without = await commandsOfRequests(() => ({}));
    const withRegistry = await commandsOfRequests((redis, store) => ({
      storage: redisStorage({ sendCommand: (...args) => redis.sendCommand(args) }),
      storageKey: 'a storage key of a test',
      session: { store, expiry: true },
    }));
    expect(without).toBeGreaterThanOrEqual(REQUESTS);
    expect(withRegistry - without).toBeLessThanOrEqual(REQUESTS / 10);
  });
});
