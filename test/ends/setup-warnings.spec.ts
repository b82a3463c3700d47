// Which sessions are warned of: setup-warnings.spec.ts beside the source. Here, what an app with a wrong setup learns of it.
import { describe, expect, it } from '@jest/globals';
import fastifyCookie from '@fastify/cookie';
import fastifySession from '@fastify/session';
import session, { type Store } from 'express-session';
import type { LoggerService } from '@nestjs/common';
import type { DebateSpaceEvent, DebateSpaceModuleOptions, SessionUid } from 'nestjs-debate-space';
import { Browser, logInTo } from '#support/browser/browser.js';
import { expressCookieLogins, fastifyCookieLogins } from '#support/hosts/cookie-logins.js';
import { eventsOf } from '#support/hosts/events.js';
import { wiringsInParents } from '#support/hosts/express-wirings.js';
import { FastifyHost, type FastifyLogin } from '#support/hosts/fastify-host.js';
import { scenario } from '#support/hosts/scenario.js';
import type { ExpressLogin, SessionHostOptions } from '#support/hosts/session-host.js';
import { destroySession, jobs } from '#support/hosts/session-jobs.js';
import { using } from '#support/service/service.js';

type Warning = Extract<DebateSpaceEvent, { type: 'setup-warning' }>;

const scene = scenario();

/** @param events of an app that has stopped */
function warningsIn(events: readonly DebateSpaceEvent[]): readonly Warning[] {
  const warnings = events.filter((event) => event.type === 'setup-warning');
  expect(JSON.stringify(warnings)).not.toMatch(/alice|bob/);
  return warnings;
}

/** A login that puts something into the session of express-session. */
function keeping(put: (uid: string) => object): ExpressLogin {
  return {
    mount: (app) => {
      app.use(session({ secret: 'only for tests', resave: false, saveUninitialized: false }));
    },
    logIn: (request, _, uid) => Object.assign(request.session, put(uid)),
    uidIn: () => undefined,
  };
}

/** The warnings of a host in which each of some browsers logs in, and comes back. */
async function warningsAfter(
  logins: number,
  options: SessionHostOptions,
  plugin?: Partial<DebateSpaceModuleOptions>,
): Promise<readonly Warning[]> {
  const host = await scene.start(options, plugin);
  const events = eventsOf(host.app);
  for (let n = 0; n < logins; n += 1) {
    const browser = new Browser(host.url);
    await browser.post('/login', { uid: n % 2 ? 'bob' : 'alice' });
    await browser.post('/act');
  }
  await scene.stop();
  return warningsIn(events);
}

describe('a user in whom no uid is found', () => {
  const named = keeping((username) => ({ user: { username } }));

  it('is one warning that names the keys and the option, and one line in the log', async () => {
    const lines: unknown[] = [];
    const nothing = (): void => undefined;
    const logger: LoggerService = { log: nothing, error: nothing, warn: (line: unknown) => lines.push(line) };
    const [warning, ...others] = await warningsAfter(3, { login: named, logger });
    expect(others).toEqual([]);
    expect(warning?.code).toBe('uid-not-found');
    expect(warning?.message).toContain('(session keys: cookie, user, user.username)');
    expect(warning?.hint).toContain('the option session.uid');
    expect(lines.map(String).filter((line) => line.includes('no uid was found'))).toHaveLength(1);
  });

  it('is one warning that names session.uid when the host’s own function finds no uid', async () => {
    const [warning, ...others] = await warningsAfter(
      3,
      { login: named },
      { session: { uid: () => undefined } },
    );
    expect(others).toEqual([]);
    expect(warning?.message).toContain('your own function returned no uid for it');
    expect(warning?.hint).toContain('make the option session.uid return the uid');
  });

  it('is no warning when the host’s own function finds each user, nor with { _id }', async () => {
    const uid: SessionUid = ({ user }) => (user as { username: string } | undefined)?.username;
    expect(await warningsAfter(3, { login: named }, { session: { uid } })).toEqual([]);
    expect(await warningsAfter(3, { login: keeping((_id) => ({ user: { _id } })) })).toEqual([]);
  });

  const own: SessionUid = ({ passport }) => (passport as { user: unknown } | undefined)?.user;
  it.each([
    ['found by the plugin', undefined],
    ['returned by the host', own],
  ])(
    'is one warning that says why when the uid is a token, %s, and nobody is reported',
    async (_what, uid) => {
      const token = `${Buffer.from('{"alg":"none"}').toString('base64url')}.YWxpY2U.c2ln`;
      const login = keeping(() => ({ passport: { user: token } }));
      const [warning, ...others] = await warningsAfter(
        2,
        { login, act: destroySession },
        { session: { uid } },
      );
      expect(others).toEqual([]);
      expect(warning?.code).toBe('uid-not-found');
      expect(warning?.message).toContain('a session has a user whose uid is a token');
      expect(warning?.message).not.toContain('YWxpY2U');
      expect(scene.service.received.all).toEqual([]);
    },
  );
});

describe('a hundred sessions without a uid', () => {
  it('are one warning on Express, which names the host’s own function if there is one', async () => {
    const login = keeping((uid) => ({ staffNumber: uid }));
    const [plain, own] = [
      await warningsAfter(101, { login }),
      await warningsAfter(101, { login }, { session: { uid: ({ nobody }) => nobody } }),
    ];
    expect([...plain, ...own].map(({ code }) => code)).toEqual(['uid-never-found', 'uid-never-found']);
    expect(plain[0]?.message).toContain('(session keys: cookie, staffNumber)');
    expect(plain[0]?.hint).toContain('give the option session.uid');
    expect(own[0]?.hint).toContain('make the option session.uid return the uid of each user');
  });

  it('are one warning on Fastify, where a session without a user is loaded with each new visitor', async () => {
    const login: FastifyLogin = {
      register: async (app) => {
        await app.register(fastifyCookie);
        const secret = 'only for tests, and long enough for it';
        await app.register(fastifySession, { secret, cookie: { secure: false } });
      },
      logIn: ({ request }, staffNumber) => Object.assign(request.session, { staffNumber }),
      uidIn: () => undefined,
    };
    const debateSpace = using(scene.service);
    const host = await scene.add(FastifyHost.start({ login, act: () => undefined, debateSpace }));
    const events = eventsOf(host.app);
    for (let visitor = 0; visitor < 100; visitor += 1) {
      expect(warningsIn(events)).toEqual([]);
      await (await logInTo(host, 'alice')).post('/act');
    }
    await scene.stop();
    expect(warningsIn(events).map(({ code }) => code)).toEqual(['uid-never-found']);
  });
});

describe('sessions in a cookie', () => {
  const onExpress = expressCookieLogins.find(({ name }) => name.includes('cookie-session'));
  const onFastify = fastifyCookieLogins.find(({ name }) => name.includes('secure-session'));
  const login: ExpressLogin = {
    mount: (app) => void onExpress?.mount?.(app),
    logIn: (request, response, uid) => onExpress?.logIn({ request, response }, uid),
    uidIn: () => undefined,
  };

  it('are one warning on Express when the option session.cookies is not given', async () => {
    const [warning, ...others] = await warningsAfter(3, { login });
    expect(others).toEqual([]);
    expect(warning?.code).toBe('session-without-store');
    expect(warning?.hint).toContain('the option session.cookies');
  });

  it('are one warning on Fastify when the option session.cookies is not given', async () => {
    if (!onFastify) throw new Error('no login with @fastify/secure-session');
    const { mount, logIn, uidIn } = onFastify;
    const register = (app: Parameters<NonNullable<typeof mount>>[0]): unknown => mount?.(app);
    const debateSpace = using(scene.service);
    const options = { login: { register, logIn, uidIn }, act: () => undefined, debateSpace };
    const host = await scene.add(FastifyHost.start(options));
    const events = eventsOf(host.app);
    for (const uid of ['alice', 'bob']) await logInTo(host, uid);
    await scene.stop();
    expect(warningsIn(events).map(({ code }) => code)).toEqual(['session-without-store']);
  });

  it.each([
    [
      'one warning when the host’s function returned a uid for none of a hundred values',
      0,
      ['cookie-without-uid'],
    ],
    ['no warning when it returned one for one of them', 20, []],
  ])('are %s', async (_what, found, codes) => {
    let n = 0;
    const uid = (): string | undefined => ((n += 1) === found ? 'alice' : undefined);
    const host = await scene.start({ login }, { session: { cookies: [{ name: 'session', uid }] } });
    const events = eventsOf(host.app);
    const browser = new Browser(host.url);
    for (let time = 0; time <= 130; time += 1) await browser.post('/login', { uid: `user ${time}` });
    await scene.stop();
    expect(warningsIn(events).map(({ code }) => code)).toEqual(codes);
  });
});

it('Nest behind the session middleware of a parent app is one warning, and logouts are delivered', async () => {
  const wiring = wiringsInParents['Nest in a parent app with the sessions'];
  const warnings = await warningsAfter(3, { wiring, act: destroySession });
  expect(warnings.map(({ code }) => code)).toEqual(['session-of-parent-app']);
  expect(scene.service.received.logouts).toContain('alice');
});

describe('store.clear() on a store that does not list its sessions', () => {
  class UnlistedStore extends session.MemoryStore {}
  const rows = (done: (error: unknown, rows: unknown) => void): void => {
    done(null, [{ sid: 's1', sess: '{}' }]);
  };
  it.each<[string, unknown]>([
    ['has no all()', undefined],
    ['lists rows', rows],
  ])('is one warning when it %s, and users with a request under way are reported', async (_what, all) => {
    const store: Store = Object.assign(new UnlistedStore(), { all });
    const warnings = await warningsAfter(2, { store, act: () => jobs.clear(store) });
    expect(warnings.map(({ code }) => code)).toEqual(['clear-not-listed']);
    expect(scene.service.received.logouts).toEqual(['alice', 'bob']);
  });
});
