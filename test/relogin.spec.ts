import { afterEach, beforeEach, describe, expect, it } from '@jest/globals';
import session from 'express-session';
import { filter, firstValueFrom } from 'rxjs';
import type { DebateSpaceSimulator } from 'debate-space-simulator';
import { DebateSpaceEvents, type DebateSpaceEvent, type DebateSpaceModuleOptions } from 'nestjs-debate-space';
import { Browser } from 'debate-space-fixtures/browser.js';
import { cookieHosts } from 'debate-space-fixtures/cookie-hosts.js';
import type { EndingHost } from 'debate-space-fixtures/endings.js';
import { sessionsIn } from 'debate-space-fixtures/fastify-account.js';
import { FastifyHost } from 'debate-space-fixtures/fastify-host.js';
import { Gate } from 'debate-space-fixtures/gate.js';
import { startService, using } from 'debate-space-fixtures/service.js';
import { SessionHost, sessionStacks, type Act } from 'debate-space-fixtures/session-host.js';

interface Stack {
  readonly name: string;
  readonly start: (debateSpace: DebateSpaceModuleOptions) => Promise<EndingHost>;
}

const destroy: Act = (request) => new Promise((resolve) => request.session.destroy(resolve));
interface FastifySession {
  user?: { uid: string };
  destroy(): Promise<void>;
}
const stacks: readonly Stack[] = [
  ...sessionStacks.map((stack) => ({
    name: stack,
    start: (debateSpace: DebateSpaceModuleOptions) => SessionHost.start({ stack, act: destroy, debateSpace }),
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

let service: DebateSpaceSimulator;
let host: EndingHost | undefined;
beforeEach(async () => {
  service = await startService();
});
afterEach(async () => {
  await host?.stop();
  host = undefined;
  await service.stop();
});

/** @param atLeast how many will arrive, however busy this machine is */
async function loggedOut(atLeast = 0): Promise<readonly string[]> {
  await service.comeBack();
  if (atLeast > 0) await service.received.waitFor('logout', { count: atLeast, timeoutMs: 20_000 });
  await host?.stop(); // delivers what there is
  host = undefined;
  return service.received.logouts;
}

const firstEvent = ({ app }: EndingHost, type: DebateSpaceEvent['type']): Promise<DebateSpaceEvent> =>
  firstValueFrom(app.get(DebateSpaceEvents).events$.pipe(filter((event) => event.type === type)));

const policies = [
  { onRelogin: 'deliver', told: ['alice'] },
  { onRelogin: 'drop', told: [] },
] as const;
const cells = stacks.flatMap((stack) => policies.map((policy) => ({ ...stack, ...policy })));

describe('a user who logs in again while the logout still waits', () => {
  it.each(cells)('on $name, with $onRelogin: reported is $told', async ({ start, onRelogin, told }) => {
    host = await start(using(service, { logout: { onRelogin } }));
    await service.goDown();
    const browser = new Browser(host.url);
    await browser.post('/login', { uid: 'alice' });
    const waits = firstEvent(host, 'logout-retrying'); // an attempt under way could arrive after all
    await browser.post('/act');
    expect(await browser.get('/whoami')).toBe('nobody');
    await waits;
    await browser.post('/login', { uid: 'alice' });
    expect(await browser.get('/whoami')).toBe('alice');
    expect(await loggedOut(told.length)).toEqual(told);
  });

  it.each(stacks)('on $name: the login of somebody else cancels nothing', async ({ start }) => {
    host = await start(using(service, { logout: { onRelogin: 'drop' } }));
    await service.goDown();
    const browser = new Browser(host.url);
    await browser.post('/login', { uid: 'alice' });
    await browser.post('/act');
    await browser.post('/login', { uid: 'bob' });
    await browser.get('/whoami');
    expect(await loggedOut(1)).toEqual(['alice']);
  });

  const comings: readonly { name: string; come: Act }[] = [
    {
      name: 'whose session is renewed on another device',
      come: async (request) => {
        await new Promise((resolve) => request.session.regenerate(resolve));
        request.session.user = { uid: 'alice' };
      },
    },
    {
      name: 'whose session a job copies',
      come: (request, _, store) =>
        new Promise<void>((resolve) => {
          const copied = { cookie: request.session.cookie, user: { uid: 'alice' } };
          store.set('a copy', copied, () => {
            resolve();
          });
        }),
    },
  ];
  it.each(comings)('is not one $name', async ({ come }) => {
    const act: Act = (request, ...rest) =>
      request.query.come === undefined ? destroy(request, ...rest) : come(request, ...rest);
    host = await SessionHost.start({ act, debateSpace: using(service, { logout: { onRelogin: 'drop' } }) });
    await service.goDown();
    const [one, other] = [new Browser(host.url), new Browser(host.url)];
    for (const browser of [one, other]) await browser.post('/login', { uid: 'alice' });
    await one.post('/act');
    await other.post('/act?come=1');
    expect(await other.get('/whoami')).toBe('alice');
    expect(await loggedOut(1)).toEqual(['alice']);
  });

  it('is not one whose cookie was nobody’s any more and is renewed', async () => {
    const kind = cookieHosts.find(({ name }) => name === 'Express, cookie-session');
    host = await kind?.start({ debateSpace: using(service, { logout: { onRelogin: 'drop' } }) });
    await service.goDown();
    const url = host?.url ?? '';
    const browser = new Browser(url);
    await browser.post('/login', { uid: 'alice' });
    await browser.post('/act');
    const body = new URLSearchParams({ uid: 'alice' });
    await fetch(`${url}/login`, { method: 'POST', headers: { cookie: 'session=run-out' }, body });
    expect(await loggedOut(1)).toEqual(['alice']);
  });

  it('is reported even before the end is proven', async () => {
    const [left, answer] = [new Gate(), new Gate()];
    const act: Act = async (request, response, store) => {
      await destroy(request, response, store);
      left.open();
      await answer.passed;
    };
    const running = await SessionHost.start({
      act,
      debateSpace: using(service, { logout: { onRelogin: 'drop' } }),
    });
    host = running;
    const dropped = firstEvent(running, 'logout-superseded');
    await service.goDown();
    const browser = new Browser(host.url);
    await browser.post('/login', { uid: 'alice' });
    const leaving = browser.post('/act');
    await left.passed;
    await new Browser(host.url).post('/login', { uid: 'alice' });
    answer.open();
    await leaving;
    expect(await dropped).toEqual({ type: 'logout-superseded', uid: 'alice', count: 1 });
    expect(await loggedOut()).toEqual([]);
  });

  const orders = [
    { order: 'while the end is undecided', before: true },
    { order: 'when the end is told already', before: false },
  ];
  it.each(orders)('is not who saves an ended session back $order', async ({ before }) => {
    const [loaded, saveBack, left, answer] = [new Gate(), new Gate(), new Gate(), new Gate()];
    const act: Act = async (request, response, store) => {
      if (request.query.slow !== undefined) {
        loaded.open();
        await saveBack.passed;
        Object.assign(request.session, { basket: 1 });
        return;
      }
      await destroy(request, response, store);
      left.open();
      await answer.passed;
    };
    const debateSpace = using(service, { logout: { onRelogin: 'drop' }, session: { graceMs: 1 } });
    const running = await SessionHost.start({ act, debateSpace });
    host = running;
    const ended = firstEvent(running, 'session-ended');
    await service.goDown();
    const browser = new Browser(host.url);
    await browser.post('/login', { uid: 'alice' });
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
  });
});
