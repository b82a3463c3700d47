import { afterAll, beforeAll, describe, expect, it, jest } from '@jest/globals';
import { RedisStore } from 'connect-redis';
import type { Request } from 'express';
import session, { type Store } from 'express-session';
import { logInTo } from '#support/browser/browser.js';
import { postgresServer, startPostgres, type RunningPostgres } from '#support/servers/postgres.js';
import { redisClient, redisServer, startRedis, type RunningRedis } from '#support/servers/redis.js';
import { scenario } from '#support/hosts/scenario.js';
import { storesInPostgres, storesInRedis } from '#support/stores/server-store-kinds.js';
import type { Act } from '#support/hosts/session-host.js';
import { called, destroySession, jobs, onlySid } from '#support/hosts/session-jobs.js';
import { storesInMemory, type StoreKind } from '#support/stores/store-kinds.js';

type Method = (this: unknown, ...args: unknown[]) => unknown;

const scene = scenario();

/** What a handler does, by the user who is logged in. */
const acts: Readonly<Record<string, (request: Request) => unknown>> = {
  'destroys the session': destroySession,
  'renews it for nobody': ({ session }) => called((done) => session.regenerate(done)),
  'removes its user': ({ session }) => {
    delete session.user;
  },
  'logs in again': async (request) => {
    const { user } = request.session;
    await called((done) => request.session.regenerate(done));
    request.session.user = user;
  },
  'does nothing': () => undefined,
};
const silent = ['logs in again', 'does nothing'];

/** Stores as hosts use them, each by one of each kind of end. */
function contract(kind: () => StoreKind): void {
  it('has each end reported, and nothing else', async () => {
    const { store, close } = await kind().open();
    scene.afterwards(() => close?.());
    let sid = '';
    const act: Act = (request) => {
      sid = request.sessionID;
      return acts[request.session.user?.uid ?? '']?.(request);
    };
    const host = await scene.start({ store: store as Store, act });
    for (const uid of Object.keys(acts)) await (await logInTo(host, uid)).post('/act');
    await (await logInTo(host, 'is killed by a job')).post('/act');
    await jobs.destroy(store as Store, sid);
    const ends = [...Object.keys(acts).filter((uid) => !silent.includes(uid)), 'is killed by a job'];
    expect([...new Set(await scene.logouts())].toSorted()).toEqual(ends.toSorted());
  });
}

const kindOf = (kinds: readonly StoreKind[], name: string): StoreKind => {
  const kind = kinds.find((each) => each.name === name);
  if (!kind) throw new Error(`no store ${name}`);
  return kind;
};

describe.each(['MemoryStore of express-session', 'memorystore'])('%s', (name) => {
  contract(() => kindOf(storesInMemory, name));
});

postgresServer.describe('connect-pg-simple', () => {
  let postgres: RunningPostgres;
  beforeAll(async () => {
    postgres = await startPostgres();
  });
  afterAll(() => postgres.stop());
  contract(() =>
    kindOf(
      storesInPostgres(() => postgres.connectionString),
      'connect-pg-simple',
    ),
  );
});

redisServer.describe('connect-redis', () => {
  let redis: RunningRedis;
  beforeAll(async () => {
    redis = await startRedis();
  });
  afterAll(() => redis.stop());
  contract(() =>
    kindOf(
      storesInRedis(() => redis.url),
      'connect-redis',
    ),
  );

  it.each([
    { does: 'passes on', ends: true },
    { does: 'ends nothing', ends: false },
  ])('has its prototype spied on after the first request, by a spy that $does', async ({ ends }) => {
    const client = await redisClient(redis.url).connect();
    scene.afterwards(() => client.close());
    const host = await scene.start({ store: new RedisStore({ client }), act: destroySession });
    const browser = await logInTo(host, 'alice');
    const spy = jest.spyOn(RedisStore.prototype, 'destroy');
    if (!ends)
      spy.mockImplementation((_, done) => {
        done?.(new Error('the spy ends nothing'), null);
        return Promise.resolve();
      });
    scene.afterwards(() => {
      spy.mockRestore();
    });
    await browser.post('/act');
    expect(await scene.logouts()).toEqual(ends ? ['alice'] : []);
    expect(spy).toHaveBeenCalledTimes(1);
  });
});

/** Counts how often it is read. */
class CountingStore extends session.MemoryStore {
  reads = 0;

  override get(...args: Parameters<session.MemoryStore['get']>): void {
    this.reads += 1;
    super.get(...args);
  }
}

it.each(Object.entries(acts))(
  'a request that %s costs the store no further read, or one',
  async (uid, act) => {
    const readsOf = async (watched: boolean): Promise<number> => {
      const store = new CountingStore();
      const host = await scene.start(watched ? { store, act } : { store, act, debateSpace: [] });
      const browser = await logInTo(host, uid);
      store.reads = 0;
      await browser.post('/act');
      await scene.stop();
      return store.reads;
    };
    const plain = await readsOf(false);
    expect((await readsOf(true)) - plain).toBeLessThanOrEqual(uid === 'does nothing' ? 0 : 1);
  },
);

/** Its promises say nothing, and settle before it calls back. */
class CallingBackLate extends session.MemoryStore {}
for (const name of ['get', 'set', 'destroy', 'touch', 'all', 'clear'] as const) {
  const own = Reflect.get(session.MemoryStore.prototype, name) as Method;
  const late: Method = async function (...args) {
    await Promise.resolve();
    setTimeout(() => Reflect.apply(own, this, args), 2);
  };
  Object.defineProperty(CallingBackLate.prototype, name, { value: late, writable: true, configurable: true });
}

/** As shimmer and agents for APM wrap methods: each takes no arguments by its length. */
function wrapped(store: session.MemoryStore): session.MemoryStore {
  for (const name of ['get', 'set', 'destroy', 'touch', 'all', 'clear'] as const) {
    const original = Reflect.get(store, name) as Method;
    const value: Method = function (...args) {
      return Reflect.apply(original, this, args);
    };
    Object.defineProperty(store, name, { value, writable: true, configurable: true, enumerable: true });
  }
  return store;
}

describe('a store whose methods take no arguments by their length, and that calls back after its promise', () => {
  const start = (act: Act) => {
    const store = wrapped(new CallingBackLate());
    return { store, starting: scene.start({ store, act }, { session: { store } }) };
  };

  it('has a logout reported once', async () => {
    const browser = await logInTo(await start(destroySession).starting, 'alice');
    await browser.post('/act');
    expect(await browser.get('/whoami')).toBe('nobody');
    expect(await scene.logouts()).toEqual(['alice']);
  });

  it.each(['destroy', 'removeUser'] as const)('has a session reported that a job ends: %s', async (job) => {
    const { store, starting } = start(() => undefined);
    const browser = await logInTo(await starting, 'alice');
    await jobs[job](store, await onlySid(store));
    expect(await browser.get('/whoami')).toBe('nobody');
    expect(await scene.logouts()).toEqual(['alice']);
  });
});
