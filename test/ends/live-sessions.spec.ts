import { afterAll, beforeAll, beforeEach, describe, expect, it } from '@jest/globals';
import { setTimeout as pause } from 'node:timers/promises';
import { RedisStore } from 'connect-redis';
import type { Request } from 'express';
import type { SessionData, Store } from 'express-session';
import { memoryStorage, type DebateSpaceModuleOptions, type StorageEngine } from 'nestjs-debate-space';
import { redisStorage } from 'nestjs-debate-space/redis';
import { Browser, logInTo } from 'debate-space-fixtures/browser.js';
import { sessionOf } from 'debate-space-fixtures/fastify-logins.js';
import { FastifyHost } from 'debate-space-fixtures/fastify-host.js';
import { fastifyLogins } from 'debate-space-fixtures/fastify-logins.js';
import { Latch } from 'debate-space-fixtures/latch.js';
import { postgresServer, startPostgres, type RunningPostgres } from 'debate-space-fixtures/postgres.js';
import { redisClient, redisServer, startRedis, type RunningRedis } from 'debate-space-fixtures/redis.js';
import { scenario } from 'debate-space-fixtures/scenario.js';
import { storesInPostgres, storesInRedis } from 'debate-space-fixtures/server-store-kinds.js';
import { using } from 'debate-space-fixtures/service.js';
import type { SessionHost } from 'debate-space-fixtures/session-host.js';
import { called, destroySession } from 'debate-space-fixtures/session-jobs.js';
import { sharedStores } from 'debate-space-fixtures/shared-stores.js';
import { storesInMemory, type StoreKind } from 'debate-space-fixtures/store-kinds.js';

const storageKey = 'a storage key of a test';
const users = Array.from({ length: 40 }, (_, n) => `user-${String(n).padStart(2, '0')}`);
const scene = scenario();

type SessionOptions = DebateSpaceModuleOptions['session'];

/** What a host does by `POST /act?name=…`. */
type Acts = Readonly<Record<string, (request: Request) => unknown>>;
const acting =
  (acts: Acts) =>
  (request: Request): unknown =>
    acts[request.query.name as string]?.(request);

const save = ({ session }: Request): Promise<void> => called((done) => session.save(done));

const received = (count: number): Promise<unknown> =>
  scene.service.received.waitFor('logout', { count, timeoutMs: 20_000 });

async function logInAll(url: string): Promise<void> {
  await Promise.all(users.map((uid) => logInTo({ url }, uid)));
}

const startOnFastify = (store: object, session: SessionOptions, maxAge: number): Promise<FastifyHost> =>
  scene.add(
    FastifyHost.start({
      debateSpace: using(scene.service, { session, storage: memoryStorage(), storageKey }),
      login: fastifyLogins.session(store as never, maxAge),
      act: ({ request }) => sessionOf(request).destroy(),
    }),
  );

/** Sessions of 2 s, on a store that answers in its own way when they have expired. */
function expiring(
  kind: () => StoreKind,
  start: (store: object, session: SessionOptions) => Promise<unknown>,
) {
  it('each of 40 sessions that expire is reported once', async () => {
    const { store, close } = await kind().open();
    scene.afterwards(() => close?.());
    await start(store, { store: store as Store, expiry: { sweepMs: 50 } });
    await received(users.length);
    expect((await scene.logouts()).toSorted()).toEqual(users);
  });
}

const kindOf = (kinds: readonly StoreKind[], name: string): StoreKind => {
  const kind = kinds.find((each) => each.name === name);
  if (!kind) throw new Error(`no store ${name}`);
  return kind;
};

const onExpress = async (store: object, session: SessionOptions): Promise<void> => {
  const host = await scene.start(
    { store: store as Store, maxAge: 2_000 },
    { session, storage: memoryStorage(), storageKey },
  );
  await logInAll(host.url);
};

for (const name of ['MemoryStore of express-session', 'memorystore'])
  describe(`on ${name}`, () => {
    expiring(() => kindOf(storesInMemory, name), onExpress);
  });

describe('on MemoryStore of @fastify/session, which keeps sessions that have expired,', () => {
  expiring(
    () => kindOf(storesInMemory, 'MemoryStore of @fastify/session'),
    async (store, session) => {
      const host = await startOnFastify(store, session, 2_000);
      await logInAll(host.url);
    },
  );
});

postgresServer.describe('on connect-pg-simple', () => {
  let postgres: RunningPostgres;
  beforeAll(async () => {
    postgres = await startPostgres();
  });
  afterAll(() => postgres.stop());
  expiring(
    () =>
      kindOf(
        storesInPostgres(() => postgres.connectionString),
        'connect-pg-simple',
      ),
    onExpress,
  );
});

redisServer.describe('with Redis,', () => {
  let redis: RunningRedis;
  beforeAll(async () => {
    redis = await startRedis();
  });
  afterAll(() => redis.stop());

  let client: ReturnType<typeof redisClient>;
  beforeEach(async () => {
    client = redisClient(redis.url);
    await client.connect();
    await client.flushAll();
    scene.afterwards(() => client.close());
  });
  const storage = (): StorageEngine => redisStorage({ sendCommand: (...args) => client.sendCommand(args) });

  /** Two instances of one app, on the same sessions and one storage. */
  async function startTwo(acts: Acts): Promise<[SessionHost, SessionHost]> {
    const [one, other] = await Promise.all(
      sharedStores(2).map((store) => {
        const options = { store, expiry: { sweepMs: 50 } } as SessionOptions;
        return scene.start(
          { store, act: acting(acts) },
          { session: options, storage: storage(), storageKey },
        );
      }),
    );
    if (!one || !other) throw new Error('two instances are needed');
    return [one, other];
  }

  describe('on connect-redis', () => {
    expiring(
      () =>
        kindOf(
          storesInRedis(() => redis.url),
          'connect-redis',
        ),
      onExpress,
    );

    it('a session that is shortened without being saved is reported when it has expired', async () => {
      const store = new RedisStore({ client });
      const shorten = ({ session }: Request): void => {
        session.cookie.maxAge = 1_500;
      };
      const session = { store, expiry: { sweepMs: 50 } } as unknown as SessionOptions;
      const host = await scene.start(
        { store, maxAge: 3_600_000, act: shorten },
        { session, storage: storage(), storageKey },
      );
      const browser = await logInTo(host, 'alice');
      await browser.post('/act');
      await received(1);
      expect(await scene.logouts()).toEqual(['alice']);
    });
  });

  describe('two instances', () => {
    it.each([0, 10, 30])(
      'report a session once that logs out twice, at each of them, %d ms apart',
      async (apartMs) => {
        const act = async (request: Request): Promise<void> => {
          await pause(40); // as a handler that asks a database
          await destroySession(request);
        };
        const [one, other] = await startTwo({ logout: act });
        const logOut = async (uid: string): Promise<void> => {
          const browser = await logInTo(one, uid);
          const first = browser.post('/act?name=logout');
          await pause(apartMs);
          await Promise.all([first, browser.post(`${other.url}/act?name=logout`)]);
          expect(await browser.get('/whoami')).toBe('nobody');
        };
        for (const uid of users.slice(0, 10)) await logOut(uid);
        expect((await scene.logouts()).toSorted()).toEqual(users.slice(0, 10));
      },
    );

    it('report the next logout of a user who logs in again at once', async () => {
      const acts: Acts = {
        logout: (request) => {
          delete request.session.user;
          return save(request);
        },
      };
      const [one, other] = await startTwo(acts);
      const browser = new Browser(one.url);
      for (const { url } of [one, other, one, other, one, other]) {
        await browser.post(`${url}/login`, { uid: 'alice' });
        await browser.post(`${url === one.url ? other.url : one.url}/act?name=logout`);
      }
      expect(await scene.logouts()).toHaveLength(6);
    });

    /** Two requests that have loaded a session of alice's: one removes her, the other puts bob in. */
    async function overlap(last: 'leave' | 'enter'): Promise<[SessionHost, SessionHost, Browser]> {
      const bothIn = new Latch(2);
      const firstSaved = new Latch();
      const inTurn = async (name: 'leave' | 'enter', request: Request): Promise<void> => {
        bothIn.open();
        await bothIn.passed;
        if (name === last) await firstSaved.passed;
        const user: Partial<SessionData> = { user: name === 'enter' ? { uid: 'bob' } : undefined };
        Object.assign(request.session, user);
        await save(request);
        firstSaved.open();
      };
      const acts: Acts = {
        leave: (request) => inTurn('leave', request),
        enter: (request) => inTurn('enter', request),
        logout: destroySession,
      };
      const [one, other] = await startTwo(acts);
      const browser = await logInTo(one, 'alice');
      await Promise.all([browser.post('/act?name=leave'), browser.post(`${other.url}/act?name=enter`)]);
      return [one, other, browser];
    }

    it('report alice and not bob when he enters her session after another request has removed her', async () => {
      const [one, , browser] = await overlap('enter');
      expect(await browser.get('/whoami')).toBe('bob');
      await received(1);
      expect(scene.service.received.logouts).toEqual(['alice']);
      await (await logInTo(one, 'alice')).post('/act?name=logout');
      await received(2);
      await browser.post('/act?name=logout');
      expect(await scene.logouts()).toEqual(['alice', 'alice', 'bob']);
    });

    it('report alice and bob when another request removes him without knowing', async () => {
      const [one, , browser] = await overlap('leave');
      expect(await browser.get('/whoami')).toBe('nobody');
      await received(2);
      expect(scene.service.received.logouts.toSorted()).toEqual(['alice', 'bob']);
      await (await logInTo(one, 'bob')).post('/act?name=logout');
      expect((await scene.logouts()).toSorted()).toEqual(['alice', 'bob', 'bob']);
    });
  });
});
