import { afterAll, beforeAll, describe, expect, it } from '@jest/globals';
import { RedisStore } from 'connect-redis';
import type { Request } from 'express';
import session from 'express-session';
import { memoryStorage, type DebateSpaceModuleOptions } from 'nestjs-debate-space';
import { redisStorage } from 'nestjs-debate-space/redis';
import { Browser, logInTo } from 'debate-space-fixtures/browser.js';
import { eventsOf } from 'debate-space-fixtures/events.js';
import { FastifyHost } from 'debate-space-fixtures/fastify-host.js';
import { fastifyLogins } from 'debate-space-fixtures/fastify-logins.js';
import { sessionOf } from 'debate-space-fixtures/fastify-logins.js';
import { redisClient, redisServer, startRedis } from 'debate-space-fixtures/redis.js';
import { scenario } from 'debate-space-fixtures/scenario.js';
import { using } from 'debate-space-fixtures/service.js';
import { called, jobs } from 'debate-space-fixtures/session-jobs.js';
import type { SessionHost } from 'debate-space-fixtures/session-host.js';
import { slowStore } from 'debate-space-fixtures/slow-store.js';

type PluginOptions = Partial<DebateSpaceModuleOptions>;

/** What a handler has at hand, on either platform. */
interface Handling {
  readonly store: session.Store;
  readonly sid: string;
  user: { uid: string } | undefined;
  destroy(): Promise<unknown>;
  regenerate(): Promise<unknown>;
  /** The browser loses its cookie, and the row stays. */
  clearCookie(): void;
}
type Act = (handling: Handling) => Promise<unknown>;

const scene = scenario();

const onExpress = (store: session.Store, act: Act, plugin: PluginOptions): Promise<SessionHost> => {
  const handlingOf = (request: Request): Handling => ({
    store,
    sid: request.sessionID,
    get user() {
      return request.session.user;
    },
    set user(user) {
      request.session.user = user;
    },
    destroy: () => called((done) => request.session.destroy(done)),
    regenerate: () => called((done) => request.session.regenerate(done)),
    clearCookie: () => void request.res?.clearCookie('connect.sid'),
  });
  return scene.start({ store, act: (request) => act(handlingOf(request)) }, plugin);
};

const onFastify = (store: session.Store, act: Act, plugin: PluginOptions): Promise<FastifyHost> =>
  scene.add(
    FastifyHost.start({
      debateSpace: using(scene.service, plugin),
      login: fastifyLogins.session(store),
      act: ({ request, reply }) =>
        act({
          store,
          sid: sessionOf(request).sessionId,
          get user() {
            return sessionOf(request).user;
          },
          set user(user) {
            sessionOf(request).user = user;
          },
          destroy: () => sessionOf(request).destroy(),
          regenerate: () => sessionOf(request).regenerate(),
          clearCookie: () => {
            Object.assign(request, { session: null }); // or it sets its cookie again
            void reply.clearCookie('sessionId', { path: '/' });
          },
        }),
    }),
  );

/** The sessions of a user, as a host finds them. */
const sessionsOf = async (store: session.Store, uid: string): Promise<string[]> => {
  const rows = await new Promise<Record<string, session.SessionData>>((resolve, reject) => {
    store.all?.((error: unknown, all) => {
      if (error) reject(new Error('the store does not list', { cause: error }));
      else
        resolve(
          Array.isArray(all)
            ? Object.fromEntries(all.map((row) => [(row as unknown as { id: string }).id, row]))
            : (all ?? {}),
        );
    });
  });
  return Object.entries(rows).flatMap(([sid, { user }]) => (user?.uid === uid ? [sid] : []));
};
const endOthers = async ({ store, sid }: Handling, uid: string): Promise<void> => {
  for (const other of await sessionsOf(store, uid)) if (other !== sid) await jobs.destroy(store, other);
};

const platforms = [
  { platform: 'Express', start: onExpress },
  { platform: 'Fastify', start: onFastify },
];

/** On Fastify, which saves a session that was only ended at the store back, some are left out. */
const logoutsEverywhere: { readonly name: string; readonly act: Act; readonly onlyOn?: string }[] = [
  {
    name: 'the others, then its own',
    act: async (handling) => {
      await endOthers(handling, 'alice');
      await handling.destroy();
    },
  },
  {
    name: 'its own, then the others',
    act: async (handling) => {
      await handling.destroy();
      await endOthers(handling, 'alice');
    },
  },
  {
    name: 'all of them at the store, one after another',
    onlyOn: 'Express',
    act: async ({ store }) => {
      for (const sid of await sessionsOf(store, 'alice')) await jobs.destroy(store, sid);
    },
  },
  {
    name: 'all of them at the store, at the same time',
    onlyOn: 'Express',
    act: async ({ store }) => {
      await Promise.all((await sessionsOf(store, 'alice')).map((sid) => jobs.destroy(store, sid)));
    },
  },
];

function manyEnds(openStore: () => Promise<session.Store>, options: () => PluginOptions): void {
  const cases = platforms
    .flatMap((each) => logoutsEverywhere.map((logout) => ({ ...each, ...logout })))
    .filter(({ platform, onlyOn = platform }) => platform === onlyOn);
  it.each(cases)(
    'on $platform, a request that ends $name is reported once for its user',
    async ({ start, act }) => {
      const host = await start(await openStore(), act, options());
      const browsers: Browser[] = [];
      for (let n = 0; n < 3; n += 1) browsers.push(await logInTo(host, 'alice'));
      await browsers[0]?.post('/act');
      for (const browser of browsers) expect(await browser.get('/whoami')).toBe('nobody');
      expect(await scene.logouts()).toEqual(['alice']);
    },
  );

  it.each(platforms)(
    'on $platform, an administrator who ends all sessions of a user causes one report, before the answer',
    async ({ start }) => {
      const act: Act = async ({ store }) => {
        for (const sid of await sessionsOf(store, 'bob')) await jobs.destroy(store, sid);
      };
      const host = await start(await openStore(), act, options());
      const events = eventsOf(host.app);
      const admin = await logInTo(host, 'admin');
      for (let n = 0; n < 3; n += 1) await logInTo(host, 'bob');
      await admin.post('/act');
      expect(events.flatMap((event) => (event.type === 'session-ended' ? [event.uid] : []))).toEqual(['bob']);
      expect(await scene.logouts()).toEqual(['bob']);
    },
  );

  it.each(platforms)(
    'on $platform, a session that its browser has left by its cookie is not reported again when its row is removed',
    async ({ start }) => {
      const store = await openStore();
      const act: Act = async (handling) => {
        handling.clearCookie();
        return Promise.resolve();
      };
      const host = await start(store, act, options());
      const browser = await logInTo(host, 'alice');
      await browser.post('/act');
      expect(await browser.get('/whoami')).toBe('nobody');
      await scene.service.received.waitFor('logout');
      for (const sid of await sessionsOf(store, 'alice')) await jobs.destroy(store, sid);
      expect(await scene.logouts()).toEqual(['alice']);
    },
  );
}

describe('where sessions and storage are in memory', () => {
  manyEnds(
    () => Promise.resolve(slowStore(() => 0.2, 5)),
    () => ({ storage: memoryStorage() }),
  );
});

redisServer.describe('where sessions and storage are in a Redis', () => {
  let redis: Awaited<ReturnType<typeof startRedis>>;
  let database = 0;
  const open = async () => {
    const client = await redisClient(redis.url, (database += 1)).connect();
    scene.afterwards(() => client.close());
    return client;
  };
  let client: Awaited<ReturnType<typeof open>>;

  beforeAll(async () => {
    redis = await startRedis();
  });
  afterAll(async () => {
    await redis.stop();
  });
  manyEnds(
    async () => {
      client = await open();
      return new RedisStore({ client });
    },
    () => ({
      storage: redisStorage({ sendCommand: (...args) => client.sendCommand(args) }),
      storageKey: 'a storage key of a test',
    }),
  );
});
