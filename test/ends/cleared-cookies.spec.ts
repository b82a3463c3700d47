import { describe, expect, it } from '@jest/globals';
import type { Request } from 'express';
import type { FastifyInstance } from 'fastify';
import session from 'express-session';
import { DebateSpaceModule } from 'nestjs-debate-space';
import { Browser, logInTo } from 'debate-space-fixtures/browser.js';
import { onNestsServer, type ExpressWiring } from 'debate-space-fixtures/express-wirings.js';
import { appOf, post, route, sessionsIn } from 'debate-space-fixtures/fastify-account.js';
import { scenario } from 'debate-space-fixtures/scenario.js';
import { using } from 'debate-space-fixtures/service.js';
import { logIn, type SessionHost } from 'debate-space-fixtures/session-host.js';
import { called, jobs } from 'debate-space-fixtures/session-jobs.js';

const scene = scenario();
const CLEARED = 'connect.sid=; Max-Age=0; Path=/';

/** A store that counts its reads. */
class CountingStore extends session.MemoryStore {
  reads = 0;

  override get(...args: Parameters<session.MemoryStore['get']>): void {
    this.reads += 1;
    super.get(...args);
  }
}

/** Logs in, and has one request load the session. */
async function usedBrowser(host: SessionHost, uid = 'alice'): Promise<Browser> {
  const browser = await logInTo(host, uid);
  expect(await browser.get('/whoami')).toBe(uid);
  return browser;
}

/** A request with these cookies that no browser keeps the answer of. */
async function send(host: { url: string }, path: string, cookie: string): Promise<void> {
  await (await fetch(`${host.url}${path}`, { method: 'POST', headers: { cookie } })).text();
}

describe('a session whose id rotates with a grace', () => {
  it.each([
    { who: 'a job', path: undefined },
    { who: 'the next request', path: '/act' },
  ])('is no end when $who destroys the old session', async ({ path }) => {
    const store = new session.MemoryStore();
    let old: string | undefined;
    const act = async (request: Request): Promise<void> => {
      if (old !== undefined) return jobs.destroy(store, old);
      old = request.sessionID;
      request.sessionStore.generate(request);
      await logIn(request, 'alice');
    };
    const browser = await usedBrowser(await scene.start({ store, act }));
    await browser.post('/act');
    if (path === undefined) await jobs.destroy(store, old ?? '');
    else await browser.post(path);
    expect(await browser.get('/whoami')).toBe('alice');
    expect(await scene.logouts()).toEqual([]);
  });
});

describe('a route before the session middleware', () => {
  it('that clears the same cookie again and again ends its session once', async () => {
    const host = await scene.start({ act: (_, response) => response.setHeader('Set-Cookie', CLEARED) });
    const cookie = await (await usedBrowser(host)).cookies();
    for (let click = 0; click < 3; click += 1) await send(host, '/before-sessions', cookie);
    await Promise.all([1, 2].map(() => send(host, '/before-sessions', cookie)));
    expect(await scene.logouts()).toEqual(['alice']);
  });

  it('that clears the cookie of a session after a route behind the middleware did ends it no second time', async () => {
    const host = await scene.start({ act: (_, response) => response.setHeader('Set-Cookie', CLEARED) });
    const cookie = await (await usedBrowser(host)).cookies();
    await send(host, '/act', cookie);
    await send(host, '/before-sessions', cookie);
    expect(await scene.logouts()).toEqual(['alice']);
  });

  it.each([
    { whose: 'another user', uid: 'bob', reported: ['alice'] },
    { whose: 'the same user', uid: 'alice', reported: [] },
  ])('that gives a browser the session of $whose reports $reported', async ({ uid, reported }) => {
    let given = '';
    const host = await scene.start({ act: (_, response) => response.setHeader('Set-Cookie', given) });
    const browser = await usedBrowser(host);
    given = `${await (await usedBrowser(host, uid)).cookies()}; Path=/`;
    await browser.post('/before-sessions');
    expect(await browser.get('/whoami')).toBe(uid);
    expect(await scene.logouts()).toEqual(reported);
  });

  it('that clears a cookie of the same name and another path leaves the session alone', async () => {
    const elsewhere = 'connect.sid=; Max-Age=0; Path=/before-sessions';
    const host = await scene.start({ act: (_, response) => response.setHeader('Set-Cookie', elsewhere) });
    const browser = await usedBrowser(host);
    await browser.post('/before-sessions');
    expect(await browser.get('/whoami')).toBe('alice');
    expect(await scene.logouts()).toEqual([]);
  });

  it('has the store asked only when it changes the cookie of a session', async () => {
    const store = new CountingStore();
    let set = 'theme=dark';
    const host = await scene.start({ store, act: (_, response) => response.setHeader('Set-Cookie', set) });
    const browser = await usedBrowser(host);
    const { reads } = store;
    await browser.post('/before-sessions');
    expect(store.reads).toBe(reads);
    set = CLEARED;
    await browser.post('/before-sessions');
    expect(await scene.logouts()).toEqual(['alice']);
    expect(store.reads).toBeGreaterThan(reads);
  });
});

it.each(['/act', '/before-sessions'])(
  'headers that are given to writeHead alone clear the cookie of a session: %s',
  async (path) => {
    // Without a header of its own, Node.js keeps what writeHead gets out of getHeader.
    const wiring: ExpressWiring = (parts) =>
      onNestsServer({
        ...parts,
        create: async () => {
          const app = await parts.create();
          app.disable('x-powered-by');
          return app;
        },
      });
    const host = await scene.start({
      wiring,
      act: (_, response) => response.writeHead(200, { 'Set-Cookie': CLEARED }),
    });
    const browser = await usedBrowser(host);
    await browser.post(path);
    expect(await browser.get('/whoami')).toBe('nobody');
    expect(await scene.logouts()).toEqual(['alice']);
  },
);

it.each(['/act', '/before-sessions'])(
  'a request that came with the id of a session that another one has renewed, and clears the cookie, ends the new session: %s',
  async (path) => {
    const host = await scene.start({
      act: async (request, response) => {
        if (!request.originalUrl.includes('renew')) return response.setHeader('Set-Cookie', CLEARED);
        await called((done) => request.session.regenerate(done));
        return logIn(request, 'alice');
      },
    });
    const browser = await usedBrowser(host);
    const cookie = await browser.cookies();
    await browser.post('/act?renew');
    await send(host, path, cookie);
    expect(await scene.logouts()).toEqual(['alice']);
  },
);

it('a Fastify route outside the context of the session plugin that clears its cookie ends the session', async () => {
  const main = async (instance: FastifyInstance): Promise<void> => {
    instance.post('/leave', async (_, reply) =>
      reply.header('Set-Cookie', 'sessionId=; Max-Age=0; Path=/').send('done'),
    );
    await instance.register(async (inner) => {
      await sessionsIn(new session.MemoryStore())(inner);
      route(inner, '/inner');
    });
  };
  const ours = DebateSpaceModule.forRoot(using(scene.service));
  const browser = new Browser(await scene.apps.listen(appOf(ours, main)));
  await post(browser, '/inner/login?uid=alice');
  expect(await browser.get('/inner/whoami')).toBe('alice');
  await post(browser, '/leave');
  expect(await browser.get('/inner/whoami')).toBe('nobody');
  expect(await scene.logouts()).toEqual(['alice']);
});
