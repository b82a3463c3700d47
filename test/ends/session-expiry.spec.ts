import { beforeEach, describe, expect, it } from '@jest/globals';
import { setTimeout as pause } from 'node:timers/promises';
import { RedisStore } from 'connect-redis';
import session, { type SessionData, type Store } from 'express-session';
import {
  memoryStorage,
  StorageError,
  type DebateSpaceSessionOptions,
  type SessionRecord,
  type StorageEngine,
} from 'nestjs-debate-space';
import { redisStorage } from 'nestjs-debate-space/redis';
import { Browser } from 'debate-space-fixtures/browser.js';
import { firstEvent } from 'debate-space-fixtures/events.js';
import { FallibleStore } from 'debate-space-fixtures/fallible-store.js';
import { redisClient, redisServer, startRedis } from 'debate-space-fixtures/redis.js';
import { scenario } from 'debate-space-fixtures/scenario.js';
import { SessionHost } from 'debate-space-fixtures/session-host.js';
import { sharedStores } from 'debate-space-fixtures/shared-stores.js';
import { storageWith } from 'debate-space-fixtures/storage-with.js';
import { destroySession } from 'debate-space-fixtures/session-jobs.js';

const storageKey = 'a storage key of a test';
/** Long enough for a busy machine to come back in time, and short enough to be waited for. */
const MAX_AGE_MS = 1_500;
const users = Array.from({ length: 20 }, (_, n) => `user-${String(n).padStart(2, '0')}`);

const scene = scenario();
let hosts: SessionHost[];

async function start(
  stores: Store[],
  storage: StorageEngine,
  options: Partial<DebateSpaceSessionOptions> = {},
): Promise<void> {
  hosts = [];
  for (const store of stores) {
    const watched = { store, expiry: { sweepMs: 50 }, ...options } as DebateSpaceSessionOptions;
    const host = { store, act: destroySession, maxAge: MAX_AGE_MS };
    hosts.push(await scene.start(host, { session: watched, storage, storageKey }));
  }
}

/** The app of the first instance. */
function appOfFirst(): SessionHost['app'] {
  const [host] = hosts;
  if (!host) throw new Error('no instance has started');
  return host.app;
}

/** Each at an instance, in turn. */
async function logIn(uids: readonly string[]): Promise<Browser[]> {
  const browsers = uids.map((_, n) => new Browser(hosts[n % hosts.length]?.url ?? ''));
  await Promise.all(browsers.map((browser, n) => browser.post('/login', { uid: uids[n] ?? '' })));
  return browsers;
}

const received = (count: number): Promise<unknown> =>
  scene.service.received.waitFor('logout', { count, timeoutMs: 20_000 });

interface Place {
  readonly stores: (count: number) => Store[];
  readonly storage: () => StorageEngine;
  readonly instances: number;
  /** Takes a session away as if the store had never known it. */
  readonly lose: () => Promise<unknown>;
}

function expiry(place: () => Place): void {
  it('each user whose session expires is reported once', async () => {
    await start(place().stores(place().instances), place().storage());
    await logIn(users);
    await received(users.length);
    await pause(200); // some more sweeps
    expect((await scene.logouts()).toSorted()).toEqual(users);
  });

  it('a session that is used is not reported, whichever instance it is used at', async () => {
    await start(place().stores(place().instances), place().storage());
    const [browser = new Browser('')] = await logIn(['alice']);
    const end = Date.now() + 2 * MAX_AGE_MS;
    while (Date.now() < end) {
      for (const { url } of hosts) expect(await browser.get(`${url}/whoami`)).toBe('alice');
      await pause(50);
    }
    expect(scene.service.received.logouts).toEqual([]);
    await received(1); // until it is used no more
  });

  it('a logout is reported once, and not again when its session would have expired', async () => {
    await start(place().stores(place().instances), place().storage());
    const [browser] = await logIn(['alice', 'bob']);
    await browser?.post('/act');
    await received(2); // bob's session runs out
    await pause(200);
    expect(await scene.logouts()).toEqual(['alice', 'bob']);
  });

  it('a session that was deleted behind the store’s back is reported when it would have expired', async () => {
    await start(place().stores(place().instances), place().storage());
    await logIn(['alice']);
    await place().lose();
    await received(1);
    expect(await scene.logouts()).toEqual(['alice']);
  });

  it('each session of a user that ends is reported, by a logout or when it expires', async () => {
    await start(place().stores(place().instances), place().storage());
    const [browser] = await logIn(['alice', 'alice', 'bob']);
    await browser?.post('/act');
    await received(3);
    await pause(200);
    expect((await scene.logouts()).toSorted()).toEqual(['alice', 'alice', 'bob']);
  });
}

describe('session.expiry, in one process', () => {
  let stores: ReturnType<typeof sharedStores>;
  expiry(() => ({
    instances: 1,
    stores: (count) => {
      stores = sharedStores(count);
      return stores;
    },
    storage: memoryStorage,
    lose: async () => {
      const [sessions] = stores.map((store) => (store as unknown as { sessions: object }).sessions);
      for (const sid of Object.keys(sessions ?? {})) Reflect.deleteProperty(sessions ?? {}, sid);
      return Promise.resolve();
    },
  }));

  it('a store that cannot be read has nothing reported before it answers', async () => {
    const store = new FallibleStore();
    await start([store], memoryStorage());
    const fault = firstEvent(appOfFirst(), 'fault');
    await logIn(['alice']);
    store.fail('get', Infinity);
    expect(await fault).toMatchObject({ where: 'session.expiry' });
    expect(await scene.logouts()).toEqual([]);
  });

  it('a uid function that fails has nothing reported before it answers', async () => {
    const store = new session.MemoryStore();
    // It keeps what has run out, and so it is the function that has to find the user.
    store.get = (_, callback) => {
      callback(null, { user: { uid: 'alice' } } as SessionData);
    };
    let isFailing = false;
    const uid = ({ user }: SessionRecord): string | undefined => {
      if (isFailing) throw new Error('a fault of the host');
      return (user as { uid: string } | undefined)?.uid;
    };
    await start([store], memoryStorage(), { uid });
    const fault = firstEvent(appOfFirst(), 'fault');
    await logIn(['alice']);
    isFailing = true;
    await fault;
    expect(await scene.logouts()).toEqual([]);
  });

  it.each([
    { name: 'fails', answer: () => Promise.reject(new StorageError('down', 'wait')) },
    { name: 'does not answer', answer: () => new Promise<never>(() => undefined) },
  ])('a logout is reported while the storage $name for the live sessions', async ({ answer }) => {
    const storage = storageWith((memory) => ({
      get: (keys) => (keys.some((key) => key.startsWith('session:')) ? answer() : memory.get(keys)),
    }));
    await start(sharedStores(1), storage, { expiry: { sweepMs: 60_000 } });
    const [browser] = await logIn(['alice']);
    expect(await browser?.post('/act')).toBe('done');
    expect(await scene.logouts()).toEqual(['alice']);
  });

  it('a login stores its session although the app closes meanwhile', async () => {
    const steps: string[] = [];
    const storage = storageWith((memory) => ({
      get: async (keys) => {
        if (keys.some((key) => key.startsWith('session:'))) await pause(300);
        return memory.get(keys);
      },
      commit: (checks, changes) => {
        if ([...changes.keys()].some((key) => key.startsWith('session:'))) steps.push('stored');
        return memory.commit(checks, changes);
      },
      close: () => {
        steps.push('closed');
        return memory.close();
      },
    }));
    await start(sharedStores(1), storage);
    await logIn(['alice']);
    await scene.stop();
    expect(steps).toEqual(['stored', 'closed']);
  });

  it('the plugin stores no session without the option', async () => {
    const written: string[] = [];
    const storage = storageWith((memory) => ({
      commit: (checks, changes) => {
        written.push(...changes.keys());
        return memory.commit(checks, changes);
      },
    }));
    await start(sharedStores(1), storage, { expiry: false });
    const [browser] = await logIn(['alice']);
    await browser?.post('/act');
    await received(1);
    expect(written).not.toEqual([]);
    expect(written.filter((key) => key.startsWith('session:'))).toEqual([]);
  });
});

redisServer.describe('session.expiry, over two instances and a Redis', () => {
  let client: ReturnType<typeof redisClient>;
  beforeEach(async () => {
    const redis = await startRedis();
    scene.afterwards(() => redis.stop());
    client = redisClient(redis.url);
    await client.connect();
    scene.afterwards(() => client.close());
  });
  const storage = (): StorageEngine => redisStorage({ sendCommand: (...args) => client.sendCommand(args) });
  const stores = (count: number): Store[] => Array.from({ length: count }, () => new RedisStore({ client }));

  expiry(() => ({
    instances: 2,
    stores,
    storage,
    lose: async () => client.del(await client.keys('sess:*')),
  }));

  it('the storage keeps neither a session id nor a uid where others could read it', async () => {
    await start(stores(1), storage());
    await logIn(['alice']);
    const [key = ''] = await client.keys('sess:*');
    let stored = '';
    while (!stored.includes('session:s:')) {
      stored = JSON.stringify(await client.hGetAll('debate-space:{demo}:values'));
      await pause(10);
    }
    for (const hidden of ['alice', key.slice('sess:'.length)]) expect(stored).not.toContain(hidden);
  });
});
