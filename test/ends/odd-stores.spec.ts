import { describe, expect, it } from '@jest/globals';
import { once } from 'node:events';
import fastifySession from '@fastify/session';
import session, { type SessionData } from 'express-session';
import { logInTo } from 'debate-space-fixtures/browser.js';
import { Latch } from 'debate-space-fixtures/latch.js';
import { scenario } from 'debate-space-fixtures/scenario.js';
import { using } from 'debate-space-fixtures/service.js';
import type { Act } from 'debate-space-fixtures/session-host.js';
import { called, destroySession, jobs, onlySid } from 'debate-space-fixtures/session-jobs.js';
import { platforms, type Handle, type HostSession } from './transparency/platforms.js';

type Method = (this: unknown, ...args: unknown[]) => unknown;
type Wrap = (store: object) => object;

const scene = scenario();

/** How circuit breakers, caches and metrics stand in front of a store. */
const proxies: readonly { readonly name: string; readonly wrap: Wrap }[] = [
  {
    name: 'binds each method to its target',
    wrap: (store) =>
      new Proxy(store, {
        get: (target, key) => {
          const value: unknown = Reflect.get(target, key);
          return typeof value === 'function' ? (value.bind(target) as unknown) : value;
        },
      }),
  },
  {
    name: 'returns functions of its own',
    wrap: (store) =>
      new Proxy(store, {
        get: (target, key) => {
          const value: unknown = Reflect.get(target, key);
          if (typeof value !== 'function') return value;
          return (...args: unknown[]): unknown => Reflect.apply(value as Method, target, args);
        },
      }),
  },
  {
    name: 'passes its receiver on',
    wrap: (store) =>
      new Proxy(store, { get: (target, key, receiver): unknown => Reflect.get(target, key, receiver) }),
  },
];

const given: readonly { readonly how: string; readonly options: (inner: object, proxy: object) => object }[] =
  [
    { how: 'found by itself', options: () => ({}) },
    { how: 'given as session.store', options: (_, proxy) => ({ session: { store: proxy } }) },
    { how: 'with the store behind it given', options: (inner) => ({ session: { store: inner } }) },
  ];

const openStore = (express: boolean): object =>
  new (express ? session.MemoryStore : fastifySession.MemoryStore)();

const behindProxies = platforms
  .filter(({ unset }) => !unset)
  .flatMap((platform) =>
    proxies.flatMap((proxy) => given.map((way) => ({ platform, on: platform.name, ...proxy, ...way }))),
  );

const sessionOf = ({ request }: Parameters<Handle>[0]): HostSession => {
  if (!request.session) throw new Error('the request has no session');
  return request.session;
};

/** By user. */
const acts: Readonly<Record<string, Handle>> = {
  'destroys the session': (handling) =>
    called((done) => {
      sessionOf(handling).destroy(done);
    }),
  'renews it for nobody': (handling) =>
    called((done) => {
      sessionOf(handling).regenerate(done);
    }),
  'removes its user': (handling) => {
    delete sessionOf(handling).user;
  },
  'logs in again': async (handling) => {
    const { user } = sessionOf(handling);
    await called((done) => {
      sessionOf(handling).regenerate(done);
    });
    sessionOf(handling).user = user;
  },
  'does nothing': () => undefined,
};
const silent = ['logs in again', 'does nothing'];

describe('a store behind an ES Proxy', () => {
  it.each(behindProxies)(
    'has each end reported once, and nothing else, when the Proxy $name: $on, $how',
    async ({ platform, wrap, options }) => {
      const inner = openStore(platform.express);
      const store = wrap(inner);
      let sid: string | undefined;
      const act: Handle = (handling) => {
        sid = handling.sid();
        return acts[sessionOf(handling).user?.uid ?? '']?.(handling);
      };
      const plugin = using(scene.service, options(inner, store));
      const host = await scene.add(platform.start(store, act, plugin));
      for (const uid of Object.keys(acts)) await (await logInTo(host, uid)).post('/act');
      await (await logInTo(host, 'is killed by a job')).post('/act');
      await called((done) => {
        (Reflect.get(store, 'destroy') as Method).call(store, sid, done);
      });
      const ends = [...Object.keys(acts).filter((uid) => !silent.includes(uid)), 'is killed by a job'];
      expect((await scene.logouts()).toSorted()).toEqual(ends.toSorted());
    },
  );

  it.each(proxies)('has its name in the log when the Proxy $name', async ({ wrap }) => {
    const lines: unknown[] = [];
    const log = (line: unknown): unknown => lines.push(line);
    const store = wrap(new session.MemoryStore()) as session.MemoryStore;
    await logInTo(await scene.start({ store, logger: { log, error: log, warn: log } }), 'alice');
    expect(lines.filter((line) => String(line).startsWith('session store found')).join()).toContain(
      'MemoryStore',
    );
  });
});

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

  it('does not have a user reported who logs in again', async () => {
    const renew: Act = async ({ session }) => {
      await called((done) => session.regenerate(done));
    };
    const { starting } = start(async (request, response, store) => {
      await renew(request, response, store);
      request.session.user = { uid: 'alice' };
    });
    const browser = await logInTo(await starting, 'alice');
    await browser.post('/act');
    expect(await browser.get('/whoami')).toBe('alice');
    expect(await scene.logouts()).toEqual([]);
  });

  it.each(['destroy', 'removeUser'] as const)('has a session reported that a job ends: %s', async (job) => {
    const { store, starting } = start(() => undefined);
    const browser = await logInTo(await starting, 'alice');
    await jobs[job](store, await onlySid(store));
    expect(await browser.get('/whoami')).toBe('nobody');
    expect(await scene.logouts()).toEqual(['alice']);
  });

  it('has each session reported that a job clears', async () => {
    const { store, starting } = start(() => undefined);
    const host = await starting;
    for (const uid of ['alice', 'bob']) await logInTo(host, uid);
    await jobs.clear(store);
    expect((await scene.logouts()).toSorted()).toEqual(['alice', 'bob']);
  });
});

/** From some time on it does not answer any read. */
class Unreadable extends session.MemoryStore {
  answers = true;

  override get(sid: string, callback: (error: unknown, data?: SessionData | null) => void): void {
    if (this.answers) super.get(sid, callback);
  }
}

/** Well below the five seconds for which a shutdown waits for a store. */
const SOON_MS = 2_000;

describe('a store that does not answer any read', () => {
  it('has sessions reported that are destroyed, for whom their requests knew, with one warning', async () => {
    const store = new Unreadable();
    const [in_, goOn] = [new Latch(2), new Latch()];
    const warnings: string[] = [];
    const quiet = (): void => undefined;
    const warn = (line: unknown): unknown => warnings.push(String(line));
    const act: Act = async (request) => {
      in_.open();
      await goOn.passed;
      await destroySession(request);
    };
    const host = await scene.start({ store, act, logger: { log: quiet, error: quiet, warn } });
    const browsers = [await logInTo(host, 'alice'), await logInTo(host, 'bob')];
    const leaving = browsers.map((browser) => browser.post('/act'));
    await in_.passed;
    store.answers = false;
    goOn.open();
    await Promise.all(leaving);
    await scene.service.received.waitFor('logout', { count: 2, timeoutMs: 20_000 });
    expect((await scene.logouts()).toSorted()).toEqual(['alice', 'bob']);
    expect(warnings.filter((line) => line.includes('store'))).toHaveLength(1);
    expect(warnings.join()).toContain('hint:');
  });

  it('has no session reported that its request renews', async () => {
    const store = new Unreadable();
    const act: Act = async (request) => {
      store.answers = false;
      await called((done) => request.session.regenerate(done));
      request.session.user = { uid: 'alice' };
    };
    const browser = await logInTo(await scene.start({ store, act }), 'alice');
    await browser.post('/act');
    expect(await scene.logouts()).toEqual([]);
  });

  it('has a session reported that is destroyed after the client has gone', async () => {
    const store = new Unreadable();
    const [inHandler, destroyed] = [new Latch(), new Latch()];
    const act: Act = async (request, response) => {
      const closed = once(response, 'close');
      inHandler.open();
      await closed;
      store.answers = false;
      await destroySession(request);
      destroyed.open();
    };
    const browser = await logInTo(await scene.start({ store, act }), 'alice');
    const leaving = new AbortController();
    const left = browser.fetch('/act', { method: 'POST', signal: leaving.signal }).catch(() => undefined);
    await inHandler.passed;
    leaving.abort();
    await Promise.all([left, destroyed.passed]);
    expect(await scene.logouts()).toEqual(['alice']);
  });

  it('does not keep a shutdown waiting, and the session is reported', async () => {
    const store = new Unreadable();
    const act: Act = async (request) => {
      store.answers = false;
      await destroySession(request);
    };
    const browser = await logInTo(await scene.start({ store, act }), 'alice');
    await browser.post('/act');
    const begun = performance.now();
    const logouts = await scene.logouts();
    expect(performance.now() - begun).toBeLessThan(SOON_MS);
    expect(logouts).toEqual(['alice']);
  });

  it('does what a job calls', async () => {
    const store = new Unreadable();
    await logInTo(await scene.start({ store }, { session: { store } }), 'alice');
    const sid = await onlySid(store);
    store.answers = false;
    await jobs.destroy(store, sid);
    expect(await onlySid(store)).toBe('');
  });
});
