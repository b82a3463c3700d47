// An app with nestjs-session-end and nothing else of ours. Argument: express or fastify.
import 'reflect-metadata';
import assert from 'node:assert/strict';
import { setTimeout as pause } from 'node:timers/promises';
import { Module } from '@nestjs/common';
import { NestFactory } from '@nestjs/core';
import { SessionEndModule } from 'nestjs-session-end';

const [, , platform] = process.argv;
const called = (work) =>
  new Promise((resolve, reject) => work((error) => (error ? reject(error) : resolve())));

/** What each route does to the session of its request; either platform has its own way. */
const acts = {
  '/login': (session, user) => void Object.assign(session, { user }),
  '/renew': async (session, user, { regenerate }) => void Object.assign(await regenerate(), { user }),
  '/remove': (session) => void delete session.user,
  '/logout': (_, __, { destroy }) => destroy(),
};

async function start(onSessionEnd) {
  class AppModule {}
  Module({ imports: [SessionEndModule.forRoot({ onSessionEnd })] })(AppModule);
  return platform === 'express' ? startExpress(AppModule) : startFastify(AppModule);
}

async function startExpress(AppModule) {
  const { default: session } = await import('express-session');
  const app = await NestFactory.create(AppModule, { logger: false });
  const store = new session.MemoryStore();
  app.use(session({ secret: 'only for this check', resave: false, saveUninitialized: false, store }));
  app.use(async (request, response) => {
    const { pathname, searchParams } = new URL(request.url, 'http://host');
    const ways = {
      destroy: () => called((done) => request.session.destroy(done)),
      regenerate: async () => {
        await called((done) => request.session.regenerate(done));
        return request.session;
      },
    };
    await acts[pathname]?.(request.session, searchParams.get('uid'), ways);
    response.end(request.sessionID);
  });
  await app.listen(0, '127.0.0.1');
  return { app, kill: (sid) => called((done) => store.destroy(sid, done)) };
}

async function startFastify(AppModule) {
  const [{ FastifyAdapter }, { default: cookie }, { default: session }] = await Promise.all([
    import('@nestjs/platform-fastify'),
    import('@fastify/cookie'),
    import('@fastify/session'),
  ]);
  const app = await NestFactory.create(AppModule, new FastifyAdapter(), { logger: false });
  const store = new session.MemoryStore();
  await app.register(cookie);
  const secret = 'only for this check, and long enough';
  await app.register(session, { secret, cookie: { secure: false }, saveUninitialized: false, store });
  const fastify = app.getHttpAdapter().getInstance();
  fastify.get('/*', async (request) => {
    const ways = {
      destroy: () => request.session.destroy(),
      regenerate: async () => {
        await request.session.regenerate();
        return request.session;
      },
    };
    const { sessionId } = request.session;
    await acts[new URL(request.url, 'http://host').pathname]?.(request.session, request.query.uid, ways);
    return request.session?.sessionId ?? sessionId;
  });
  await app.listen(0, '127.0.0.1');
  return { app, kill: (sid) => called((done) => store.destroy(sid, done)) };
}

class Browser {
  #cookie = '';

  constructor(url) {
    this.url = url;
  }

  async get(path) {
    const response = await fetch(this.url + path, { headers: { cookie: this.#cookie } });
    assert.equal(response.status, 200);
    for (const set of response.headers.getSetCookie()) this.#cookie = set.split(';')[0];
    return response.text();
  }
}

const ends = [];
const { app, kill } = await start((end) => void ends.push(end));
const browser = new Browser(await app.getUrl());
/** Has the verdict of this step fall. */
async function expectEnds(step, ...expected) {
  for (let n = 0; n < 200 && ends.length < expected.length; n += 1) await pause(10);
  await pause(expected.length === 0 ? 700 : 50);
  const seen = ends.splice(0);
  assert.deepEqual(
    seen.map(({ uid, reason }) => `${uid}: ${reason}`),
    expected,
    step,
  );
  for (const { endedAt } of seen) assert.ok(Math.abs(Date.now() - endedAt.getTime()) < 60_000, step);
}
await browser.get('/login?uid=alice');
await expectEnds('login');
await browser.get('/renew?uid=alice');
await expectEnds('renewed session');
await browser.get('/renew?uid=bob');
await expectEnds('another user', 'alice: destroyed');
await browser.get('/remove');
await expectEnds('user removed', 'bob: user-removed');
await browser.get('/login?uid=carol');
await browser.get('/logout');
await expectEnds('logout', 'carol: destroyed');
await browser.get('/login?uid=dora');
await kill(await browser.get('/'));
await expectEnds("an administrator's kill", 'dora: destroyed');
await app.close();

for (const fail of [
  () => {
    throw new Error('of the app');
  },
  () => Promise.reject(new Error('of the app')),
]) {
  const failing = await start(fail);
  const other = new Browser(await failing.app.getUrl());
  await other.get('/login?uid=alice');
  await other.get('/logout'); // has status 200
  await failing.app.close();
}
process.stdout.write(
  `nestjs-session-end alone reports each end and no look-alike on ${platform}, and a listener that fails changes nothing\n`,
);
