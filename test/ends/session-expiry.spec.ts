import { beforeEach, describe, expect, it } from '@jest/globals';
import { setTimeout as pause } from 'node:timers/promises';
import type { Request } from 'express';
import session, { type SessionData, type Store } from 'express-session';
import {
  memoryStorage,
  type DebateSpaceModuleOptions,
  type SessionRecord,
  type StorageEngine,
} from 'nestjs-debate-space';
import { Browser, logInTo } from '#support/browser/browser.js';
import { eventsOf, firstEvent } from '#support/hosts/events.js';
import { FallibleStore } from '#support/stores/fallible-store.js';
import { FastifyHost } from '#support/hosts/fastify-host.js';
import { fastifyLogins } from '#support/hosts/fastify-logins.js';
import { replacing } from '#support/storages/flaky-storage.js';
import { Latch } from '#support/latch.js';
import { postgresServer, startPostgres } from '#support/servers/postgres.js';
import { redisServer, startRedis } from '#support/servers/redis.js';
import { scenario } from '#support/hosts/scenario.js';
import { storesInPostgres, storesInRedis } from '#support/stores/server-store-kinds.js';
import { using } from '#support/service/service.js';
import type { SessionHost } from '#support/hosts/session-host.js';
import { called, destroySession } from '#support/hosts/session-jobs.js';
import { sharedStores } from '#support/stores/shared-stores.js';
import { storesInMemory, type StoreKind } from '#support/stores/store-kinds.js';

/** Long enough for a busy machine to come back in time, and short enough to be waited for. */
const MAX_AGE_MS = 1_500;
const LONG_MS = 3_600_000;
const SWEEP_MS = 50;
const users = Array.from({ length: 20 }, (_, n) => `user-${String(n).padStart(2, '0')}`);
const scene = scenario();

type Act = (request: Request) => unknown;
const save = ({ session: own }: Request): Promise<void> => called((done) => own.save(done));
const received = (count: number): Promise<unknown> =>
  scene.service.received.waitFor('logout', { count, timeoutMs: 30_000 });

interface HostOptions extends Partial<NonNullable<DebateSpaceModuleOptions['session']>> {
  readonly act?: Act;
  readonly maxAge?: number;
}

function start(store: Store, storage: StorageEngine, options: HostOptions = {}): Promise<SessionHost> {
  const { act = destroySession, maxAge = MAX_AGE_MS, ...more } = options;
  const watched = { store, expiry: { sweepMs: SWEEP_MS }, ...more };
  const logout = { storageTimeoutMs: 10_000 }; // on a busy machine, too, nothing goes to memory
  return scene.start({ store, act, maxAge }, { session: watched, storage, logout });
}

describe('session.expiry, over two processes with one storage,', () => {
  let stores: Store[];
  let hosts: [SessionHost, SessionHost];

  /** @param acts what `POST /act?name=…` does */
  async function startTwo(acts: Readonly<Record<string, Act>> = {}, maxAge = MAX_AGE_MS): Promise<void> {
    stores = sharedStores(2);
    const act: Act = (request) => (acts[request.query.name as string] ?? destroySession)(request);
    const storage = await scene.sqlite();
    const [one, other] = await Promise.all(stores.map((store) => start(store, storage, { act, maxAge })));
    if (!one || !other) throw new Error('two processes are needed');
    hosts = [one, other];
  }
  const urlOf = (n: number): string => hosts[n % 2]?.url ?? '';
  const logIn = (uids: readonly string[]): Promise<Browser[]> =>
    Promise.all(uids.map((uid, n) => logInTo({ url: urlOf(n) }, uid)));

  it('each user whose session expires is reported once', async () => {
    await startTwo();
    await logIn(users);
    await received(users.length);
    await pause(4 * SWEEP_MS);
    expect((await scene.logouts()).toSorted()).toEqual(users);
  });

  it('a session that is used is not reported, whichever process it is used at', async () => {
    await startTwo();
    const [browser] = await logIn(['alice']);
    const end = Date.now() + 2 * MAX_AGE_MS;
    while (Date.now() < end) {
      for (const { url } of hosts) expect(await browser?.get(`${url}/whoami`)).toBe('alice');
      await pause(50);
    }
    expect(scene.service.received.logouts).toEqual([]);
    await received(1); // until it is used no more
  });

  it('a session whose cookie is shortened without being saved is reported when it has expired', async () => {
    await startTwo({
      shorten: ({ session: own }) => {
        own.cookie.maxAge = 300;
      },
      lengthen: ({ session: own }) => {
        own.cookie.maxAge = 3_600_000;
      },
    });
    const [browser] = await logIn(['alice']);
    for (const name of ['lengthen', 'shorten']) await browser?.post(`/act?name=${name}`);
    await received(1);
    expect(await scene.logouts()).toEqual(['alice']);
  });

  it.each([0, 20])(
    'a session that logs out at both of them, %d ms apart, is reported, at most once by each, and by no sweep',
    async (apartMs) => {
      await startTwo({
        logout: async (request) => {
          await pause(40); // as a handler that asks a database
          await destroySession(request);
        },
      });
      const events = hosts.map(({ app }) => eventsOf(app));
      const uids = users.slice(0, 5);
      for (const [n, uid] of uids.entries()) {
        const browser = await logInTo({ url: urlOf(n) }, uid);
        const first = browser.post(`${urlOf(0)}/act?name=logout`);
        await pause(apartMs);
        await Promise.all([first, browser.post(`${urlOf(1)}/act?name=logout`)]);
      }
      await pause(MAX_AGE_MS + 4 * SWEEP_MS); // the sweeps go on until the sessions would have expired
      expect(new Set(await scene.logouts())).toEqual(new Set(uids));
      for (const ofHost of events) {
        const ends = ofHost.flatMap((event) => (event.type === 'session-ended' ? [event] : []));
        expect(ends.filter(({ reason }) => reason === 'expired')).toEqual([]);
        expect(ends).toHaveLength(new Set(ends.map(({ uid }) => uid)).size);
      }
    },
  );

  it.each([
    ['who is replaced by bob after another request has removed her', 'enter', 'bob', LONG_MS],
    [
      'who is removed by a request that does not know that bob has replaced her',
      'leave',
      'nobody',
      MAX_AGE_MS,
    ],
  ] as const)('the end of alice, %s, is reported, and the end of bob', async (_what, last, who, maxAge) => {
    const bothIn = new Latch(2);
    const firstSaved = new Latch();
    const inTurn = (name: string, user: SessionData['user']) => async (request: Request) => {
      bothIn.open();
      await bothIn.passed;
      if (name === last) await firstSaved.passed;
      Object.assign(request.session, { user });
      await save(request);
      firstSaved.open();
    };
    await startTwo({ leave: inTurn('leave', undefined), enter: inTurn('enter', { uid: 'bob' }) }, maxAge);
    const [browser] = await logIn(['alice']);
    await Promise.all([browser?.post('/act?name=leave'), browser?.post(`${urlOf(1)}/act?name=enter`)]);
    expect(await browser?.get('/whoami')).toBe(who);
    await received(1);
    const { received: requests } = scene.service;
    if (who === 'bob') {
      expect(requests.logouts).not.toContain('bob');
      await browser?.post('/act');
    } else while (!requests.logouts.includes('bob')) await pause(20); // when his session would have expired
    expect(new Set(await scene.logouts())).toEqual(new Set(['alice', 'bob'])); // she may be reported by both
  });
});

/** For each kind of store, also for those that keep sessions that have expired. */
function expiring(kind: StoreKind): void {
  it(`each of 20 sessions in ${kind.name} that expire is reported once`, async () => {
    const { store, close } = await kind.open();
    scene.afterwards(() => close?.());
    const options = { store: store as Store, expiry: { sweepMs: SWEEP_MS } };
    const login = fastifyLogins.session(store, MAX_AGE_MS);
    const debateSpace = using(scene.service, { session: options });
    const { url } = kind.name.includes('fastify')
      ? await scene.add(FastifyHost.start({ debateSpace, login, act: () => undefined }))
      : await start(store as Store, memoryStorage());
    await Promise.all(users.map((uid) => logInTo({ url }, uid)));
    await received(users.length);
    expect((await scene.logouts()).toSorted()).toEqual(users);
  });
}

describe('session.expiry', () => {
  for (const kind of storesInMemory) expiring(kind);

  it('a store that cannot be read has nothing reported before it answers', async () => {
    const store = new FallibleStore();
    const host = await start(store, memoryStorage());
    const fault = firstEvent(host.app, 'fault');
    await logInTo(host, 'alice');
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
    const host = await start(store, memoryStorage(), { uid });
    const fault = firstEvent(host.app, 'fault');
    await logInTo(host, 'alice');
    isFailing = true;
    await fault;
    expect(await scene.logouts()).toEqual([]);
  });

  it('a login stores its session although the app closes at the same time', async () => {
    const steps: string[] = [];
    const seen = new Latch();
    const storage = replacing(memoryStorage(), (memory) => ({
      registerSession: async (...args) => {
        seen.open();
        await pause(300);
        steps.push('stored');
        return memory.registerSession(...args);
      },
      close: () => {
        steps.push('closed');
        return memory.close();
      },
    }));
    const host = await start(new session.MemoryStore(), storage);
    await logInTo(host, 'alice');
    await seen.passed;
    await scene.stop();
    expect(steps).toEqual(['stored', 'closed']);
  });

  it('nothing is stored of a session without the option', async () => {
    const written: string[] = [];
    const storage = replacing(memoryStorage(), (memory) => ({
      registerSession: (...args) => memory.registerSession(...args).finally(() => written.push('seen')),
      endSession: (...args) => memory.endSession(...args).finally(() => written.push('gone')),
    }));
    const host = await start(new session.MemoryStore(), storage, { expiry: false });
    await (await logInTo(host, 'alice')).post('/act');
    expect(await scene.logouts()).toEqual(['alice']);
    expect(written).toEqual([]);
  });
});

let url = '';
postgresServer.describe('session.expiry, with Postgres,', () => {
  beforeEach(async () => {
    const postgres = await startPostgres();
    scene.afterwards(() => postgres.stop());
    url = postgres.connectionString;
  });
  for (const kind of storesInPostgres(() => url)) expiring(kind);
});
redisServer.describe('session.expiry, with Redis,', () => {
  beforeEach(async () => {
    const redis = await startRedis();
    scene.afterwards(() => redis.stop());
    ({ url } = redis);
  });
  for (const kind of storesInRedis(() => url)) expiring(kind);
});
