import { describe, expect, it } from '@jest/globals';
import session from 'express-session';
import { type DebateSpaceModuleOptions } from 'nestjs-debate-space';
import { logInTo } from 'debate-space-fixtures/browser.js';
import { cookieHosts } from 'debate-space-fixtures/cookie-hosts.js';
import type { EndingHost } from 'debate-space-fixtures/endings.js';
import { firstEvent } from 'debate-space-fixtures/events.js';
import { sessionsIn } from 'debate-space-fixtures/fastify-account.js';
import { FastifyHost } from 'debate-space-fixtures/fastify-host.js';
import { Latch } from 'debate-space-fixtures/latch.js';
import { scenario } from 'debate-space-fixtures/scenario.js';
import { using } from 'debate-space-fixtures/service.js';
import { SessionHost, sessionStacks, type Act } from 'debate-space-fixtures/session-host.js';
import { destroySession } from 'debate-space-fixtures/session-jobs.js';

interface Stack {
  readonly name: string;
  readonly start: (debateSpace: DebateSpaceModuleOptions) => Promise<EndingHost>;
}

interface FastifySession {
  user?: { uid: string };
  destroy(): Promise<void>;
}
const stacks: readonly Stack[] = [
  ...sessionStacks.map((stack) => ({
    name: stack,
    start: (debateSpace: DebateSpaceModuleOptions) =>
      SessionHost.start({ stack, act: destroySession, debateSpace }),
  })),
  {
    name: '@fastify/session',
    start: (debateSpace) =>
      FastifyHost.start({
        debateSpace,
        act: ({ request }) => (request.session as FastifySession).destroy(),
        login: {
          register: (app) => sessionsIn(new session.MemoryStore())(app.getHttpAdapter().getInstance()),
          logIn: ({ request }, uid) => {
            (request.session as FastifySession).user = { uid };
          },
          uidIn: ({ request }) => (request.session as FastifySession).user?.uid,
        },
      }),
  },
  ...cookieHosts.map(({ name, start }) => ({
    name,
    start: (debateSpace: DebateSpaceModuleOptions) => start({ debateSpace }),
  })),
];

const scene = scenario();

/** @param atLeast how many will arrive, however busy this machine is */
async function loggedOut(atLeast = 0): Promise<readonly string[]> {
  await scene.service.comeBack();
  if (atLeast > 0) await scene.service.received.waitFor('logout', { count: atLeast, timeoutMs: 20_000 });
  return scene.logouts();
}

const policies = [
  { onRelogin: 'deliver', reported: ['alice'] },
  { onRelogin: 'drop', reported: [] },
] as const;
const cases = stacks.flatMap((stack) => policies.map((policy) => ({ ...stack, ...policy })));

type UidOf = () => Promise<string | number | undefined>;

/** @param answer is called each time that the plugin asks whose JWT it is, with what verifies it */
async function startJwtHost(answer: (uidOf: UidOf) => ReturnType<UidOf>): Promise<EndingHost> {
  const kind = cookieHosts.find(({ name }) => name === 'Fastify, a JWT in a cookie');
  if (!kind) throw new Error('no such host');
  return scene.add(
    kind.start({
      debateSpace: using(scene.service, { logout: { onRelogin: 'drop' } }),
      cookie: ({ name, uid }) => ({
        name,
        uid: (value, request) => answer(async () => uid(value, request)),
      }),
    }),
  );
}

describe('while the logout of a user still waits', () => {
  it.each(cases)(
    'on $name, with onRelogin $onRelogin: the service receives $reported',
    async ({ start, onRelogin, reported }) => {
      const host = await scene.add(start(using(scene.service, { logout: { onRelogin } })));
      await scene.service.goDown();
      const browser = await logInTo(host, 'alice');
      const waits = firstEvent(host.app, 'logout-retrying'); // an attempt under way could arrive after all
      await browser.post('/act');
      expect(await browser.get('/whoami')).toBe('nobody');
      await waits;
      await browser.post('/login', { uid: 'alice' });
      expect(await browser.get('/whoami')).toBe('alice');
      expect(await loggedOut(reported.length)).toEqual(reported);
    },
  );

  it.each(stacks)('on $name, the login of somebody else cancels nothing', async ({ start }) => {
    const host = await scene.add(start(using(scene.service, { logout: { onRelogin: 'drop' } })));
    await scene.service.goDown();
    const browser = await logInTo(host, 'alice');
    await browser.post('/act');
    await browser.post('/login', { uid: 'bob' });
    await browser.get('/whoami');
    expect(await loggedOut(1)).toEqual(['alice']);
  });

  const comings: readonly { name: string; come: Act }[] = [
    {
      name: 'the renewal of the session on another device',
      come: async (request) => {
        await new Promise((resolve) => request.session.regenerate(resolve));
        request.session.user = { uid: 'alice' };
      },
    },
    {
      name: 'a job that copies the session',
      come: (request, _, store) =>
        new Promise<void>((resolve) => {
          const copied = { cookie: request.session.cookie, user: { uid: 'alice' } };
          store.set('a copy', copied, () => {
            resolve();
          });
        }),
    },
  ];
  it.each(comings)('$name cancels nothing', async ({ come }) => {
    const act: Act = (request, ...rest) =>
      request.query.come === undefined ? destroySession(request) : come(request, ...rest);
    const host = await scene.start({ act }, { logout: { onRelogin: 'drop' } });
    await scene.service.goDown();
    const [one, other] = [await logInTo(host, 'alice'), await logInTo(host, 'alice')];
    await one.post('/act');
    await other.post('/act?come=1');
    expect(await other.get('/whoami')).toBe('alice');
    expect(await loggedOut(1)).toEqual(['alice']);
  });

  it('the renewal of a cookie that was nobody’s any more cancels nothing', async () => {
    const kind = cookieHosts.find(({ name }) => name === 'Express, cookie-session');
    if (!kind) throw new Error('no such host');
    const host = await scene.add(
      kind.start({ debateSpace: using(scene.service, { logout: { onRelogin: 'drop' } }) }),
    );
    await scene.service.goDown();
    const browser = await logInTo(host, 'alice');
    await browser.post('/act');
    const body = new URLSearchParams({ uid: 'alice' });
    await fetch(`${host.url}/login`, { method: 'POST', headers: { cookie: 'session=run-out' }, body });
    expect(await loggedOut(1)).toEqual(['alice']);
  });

  it('a login that is known late cancels no logout that came after it', async () => {
    const [asking, known] = [new Latch(), new Latch()];
    let asked = 0;
    const host = await startJwtHost(async (uidOf) => {
      asked += 1;
      if (asked > 1) return uidOf();
      await asking.passed;
      const uid = await uidOf();
      setImmediate(() => {
        known.open();
      });
      return uid;
    });
    const waits = firstEvent(host.app, 'logout-retrying');
    await scene.service.goDown();
    const browser = await logInTo(host, 'alice');
    await browser.post('/act');
    await waits;
    asking.open();
    await known.passed;
    expect(await loggedOut(1)).toEqual(['alice']);
  });

  it('a logout that is known late is superseded by a login that came after it', async () => {
    const asking = new Latch();
    let asked = 0;
    const host = await startJwtHost(async (uidOf) => {
      asked += 1;
      if (asked === 2) await asking.passed;
      return uidOf();
    });
    const superseded = firstEvent(host.app, 'logout-superseded');
    await scene.service.goDown();
    const browser = await logInTo(host, 'alice');
    await browser.post('/act');
    await browser.post('/login', { uid: 'alice' });
    asking.open();
    expect(await superseded).toEqual({ type: 'logout-superseded', uid: 'alice', count: 1 });
    expect(await loggedOut()).toEqual([]);
  });

  it('a login before the end is proven is reported as superseding it', async () => {
    const [left, answer] = [new Latch(), new Latch()];
    const act: Act = async (request) => {
      await destroySession(request);
      left.open();
      await answer.passed;
    };
    const host = await scene.start({ act }, { logout: { onRelogin: 'drop' } });
    const dropped = firstEvent(host.app, 'logout-superseded');
    await scene.service.goDown();
    const browser = await logInTo(host, 'alice');
    const leaving = browser.post('/act');
    await left.passed;
    await logInTo(host, 'alice');
    answer.open();
    await leaving;
    expect(await dropped).toEqual({ type: 'logout-superseded', uid: 'alice', count: 1 });
    expect(await loggedOut()).toEqual([]);
  });

  const orders = [
    { order: 'while the end is undecided', before: true },
    { order: 'when the end is reported already', before: false },
  ];
  it.each(orders)(
    'a request that saves the ended session back $order cancels nothing',
    async ({ before }) => {
      const [loaded, saveBack, left, answer] = [new Latch(), new Latch(), new Latch(), new Latch()];
      const act: Act = async (request) => {
        if (request.query.slow !== undefined) {
          loaded.open();
          await saveBack.passed;
          Object.assign(request.session, { basket: 1 });
          return;
        }
        await destroySession(request);
        left.open();
        await answer.passed;
      };
      const host = await scene.start({ act }, { logout: { onRelogin: 'drop' }, session: { graceMs: 1 } });
      const ended = firstEvent(host.app, 'session-ended');
      await scene.service.goDown();
      const browser = await logInTo(host, 'alice');
      const slow = browser.post('/act?slow=1');
      await loaded.passed;
      const leaving = browser.post('/act');
      await left.passed;
      if (!before) {
        answer.open();
        await leaving;
        await ended;
      }
      saveBack.open();
      await slow;
      answer.open();
      await leaving;
      await ended;
      expect(await loggedOut(1)).toEqual(['alice']);
    },
  );
});
