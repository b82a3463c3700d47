import { describe, expect, it } from '@jest/globals';
import fastifyCookie from '@fastify/cookie';
import fastifySession from '@fastify/session';
import type { Request } from 'express';
import session, { type Store } from 'express-session';
import type { LoggerService } from '@nestjs/common';
import { type DebateSpaceEvent, type DebateSpaceModuleOptions, type SessionUid } from 'nestjs-debate-space';
import { SetupWarnings, UidCount } from '../../libs/debate-space/src/session-end/setup-warnings.js';
import { Browser, logInTo } from '#support/browser/browser.js';
import { expressCookieLogins, fastifyCookieLogins } from '#support/hosts/cookie-logins.js';
import { eventsOf } from '#support/hosts/events.js';
import { wiringsInParents } from '#support/hosts/express-wirings.js';
import { FastifyHost, type FastifyLogin } from '#support/hosts/fastify-host.js';
import { scenario } from '#support/hosts/scenario.js';
import { using } from '#support/service/service.js';
import { type ExpressLogin, type SessionHostOptions } from '#support/hosts/session-host.js';
import { destroySession, jobs } from '#support/hosts/session-jobs.js';

type Warning = Extract<DebateSpaceEvent, { type: 'setup-warning' }>;

const scene = scenario();

/** @param events of an app that has stopped */
function warningsIn(events: readonly DebateSpaceEvent[]): readonly Warning[] {
  return events.filter((event) => event.type === 'setup-warning');
}

/** An app whose login puts something into the session. */
function keeping(put: (request: Request, uid: string) => void): ExpressLogin {
  return {
    mount: (app) => {
      app.use(session({ secret: 'only for tests', resave: false, saveUninitialized: false }));
    },
    logIn: (request, _, uid) => {
      put(request, uid);
    },
    uidIn: () => undefined,
  };
}

async function warningsAfterLogins(
  options: SessionHostOptions,
  plugin?: Partial<DebateSpaceModuleOptions>,
): Promise<readonly Warning[]> {
  const host = await scene.start(options, plugin);
  const events = eventsOf(host.app);
  const browser = new Browser(host.url);
  for (const uid of ['alice', 'bob', 'alice']) await browser.post('/login', { uid });
  await browser.post('/act');
  await scene.stop();
  return warningsIn(events);
}

describe('a session with a user in which no uid is found', () => {
  const users: {
    readonly name: string;
    readonly put: (request: Request, uid: string) => void;
    readonly keys: string;
  }[] = [
    {
      name: 'passport keeps { username }',
      put: ({ session }, username) => Object.assign(session, { passport: { user: { username } } }),
      keys: 'cookie, passport, passport.user.username',
    },
    {
      name: 'the session keeps { email }',
      put: ({ session }, email) => Object.assign(session, { user: { email } }),
      keys: 'cookie, user, user.email',
    },
    {
      name: 'the session keeps an account',
      put: ({ session }, name) => Object.assign(session, { account: { name } }),
      keys: 'cookie, account, account.name',
    },
    {
      name: 'the session keeps isLoggedIn and an e-mail address',
      put: ({ session }, email) => Object.assign(session, { isLoggedIn: true, email }),
      keys: 'cookie, isLoggedIn, email',
    },
    {
      name: 'the session keeps { auth: { userId } }',
      put: ({ session }, userId) => Object.assign(session, { auth: { userId } }),
      keys: 'cookie, auth, auth.userId',
    },
    {
      name: 'grant has answered',
      put: ({ session }, token) =>
        Object.assign(session, { grant: { provider: 'x', state: 'y', response: { token } } }),
      keys: 'cookie, grant, grant.provider, grant.state, grant.response.token',
    },
    ...['adminId', 'employee', 'tokenSet', 'keycloak-token', 'profile', 'access_token'].map((key) => ({
      name: `the session keeps its user as ${key}`,
      put: ({ session }: Request, uid: string) => Object.assign(session, { [key]: uid }),
      keys: `cookie, ${key}`,
    })),
  ];

  it.each(users)(
    'is one warning with the keys of the session and no value when $name',
    async ({ put, keys }) => {
      const warnings = await warningsAfterLogins({ login: keeping(put) });
      expect(warnings.map(({ code }) => code)).toEqual(['uid-not-found']);
      expect(warnings[0]?.message).toContain(`(session keys: ${keys})`);
      expect(warnings[0]?.hint).toContain('the option session.uid');
      expect(JSON.stringify(warnings)).not.toMatch(/alice|bob/);
    },
  );

  it.each<[string, unknown, string]>([
    ['a JSON array', '["alice"]', 'is the text of a JSON array'],
    ['a token', `${Buffer.from('{"alg":"none"}').toString('base64url')}.YWxpY2U.c2ln`, 'is a token'],
    ['[object Object]', '[object Object]', 'is the text of a missing value'],
    ['a number that is rounded', 2 ** 53, 'is a number beyond 2^53 - 1'],
    ['a path with a dot segment', 'a/../b', 'has a dot segment'],
  ])('is one warning that says why when its uid is %s', async (_what, kept, problem) => {
    const put = ({ session: own }: Request): void => void Object.assign(own, { passport: { user: kept } });
    const own: SessionUid = (session) => (session.passport as { user: unknown } | undefined)?.user;
    for (const uid of [undefined, own]) {
      const warnings = await warningsAfterLogins(
        { login: keeping(put), act: destroySession },
        { session: { uid } },
      );
      expect(warnings.map(({ code }) => code)).toEqual(['uid-not-found']);
      expect(warnings[0]?.message).toContain(`a session has a user whose uid ${problem}`);
      expect(warnings[0]?.message).toContain('(session keys: cookie, passport, passport.user)');
      expect(warnings[0]?.hint).toContain('the option session.uid');
      expect(JSON.stringify(warnings)).not.toMatch(/alice|YWxpY2U/);
      expect(scene.service.received.all).toEqual([]);
    }
  });

  it('is one line in the log', async () => {
    const lines: unknown[] = [];
    const nothing = (): void => undefined;
    const logger: LoggerService = { log: nothing, error: nothing, warn: (line: unknown) => lines.push(line) };
    const login = keeping(({ session: own }, username) => Object.assign(own, { user: { username } }));
    await warningsAfterLogins({ login, logger });
    expect(lines.map(String).filter((line) => line.includes('no uid was found'))).toHaveLength(1);
  });

  const others: { readonly name: string; readonly put: (request: Request, uid: string) => void }[] = [
    {
      name: 'a user of { _id }',
      put: ({ session }, _id) => Object.assign(session, { user: { _id, email: 'a@example.org' } }),
    },
    { name: 'passport after a logout', put: ({ session }) => Object.assign(session, { passport: {} }) },
    { name: 'no user', put: ({ session }) => Object.assign(session, { basket: 1, user: null, userId: '' }) },
    {
      name: 'the state of a login under way',
      put: ({ session }) =>
        Object.assign(session, {
          'oauth2:example': { state: 'x' },
          auth: { state: 'x', nonce: 'y', returnTo: '/' },
          grant: { provider: 'example' },
          isLoggedIn: false,
        }),
    },
  ];
  it.each(others)('is no warning when the session has $name', async ({ put }) => {
    expect(await warningsAfterLogins({ login: keeping(put) })).toEqual([]);
  });

  it('is one warning that names session.uid when the host’s own function finds no uid', async () => {
    const login = keeping(({ session: own }, username) => Object.assign(own, { user: { username } }));
    const warnings = await warningsAfterLogins({ login }, { session: { uid: () => undefined } });
    expect(warnings.map(({ code }) => code)).toEqual(['uid-not-found']);
    expect(warnings[0]?.message).toContain('your own function returned no uid for it');
    expect(warnings[0]?.hint).toContain('make the option session.uid return the uid');
  });

  it('is no warning when the host’s own session.uid finds each user', async () => {
    const uid: SessionUid = ({ user }) => (user as { username: string } | undefined)?.username;
    const login = keeping(({ session: own }, username) => Object.assign(own, { user: { username } }));
    expect(await warningsAfterLogins({ login }, { session: { uid } })).toEqual([]);
  });

  it('is a warning although many sessions without a user came before', () => {
    const codes: string[] = [];
    const warnings = new SetupWarnings(({ code }) => codes.push(code), false);
    for (let n = 0; n < 10_000; n += 1) warnings.withoutUid({ cookie: {}, basket: [n] });
    warnings.withoutUid({ cookie: {}, passport: { user: { username: 'alice' } } });
    expect(codes).toEqual(['uid-not-found']);
  });
});

describe('a hundred sessions without a uid', () => {
  const staff = (uid: string): object => ({ staffNumber: uid, theme: 'dark' });

  interface Visits {
    readonly keep?: (uid: string, n: number) => object;
    readonly sessions?: number;
    readonly uid?: SessionUid;
  }

  /** The warnings of an app in which so many browsers log in, and come back. */
  async function warningsAfterVisits({
    keep = staff,
    sessions = 100,
    uid,
  }: Visits): Promise<readonly Warning[]> {
    let n = 0;
    const login = keeping(({ session: own }, user) => Object.assign(own, keep(user, (n += 1))));
    const host = await scene.start({ login }, uid ? { session: { uid } } : {});
    const events = eventsOf(host.app);
    for (let visitor = 0; visitor < sessions; visitor += 1) {
      const browser = new Browser(host.url);
      await browser.post('/login', { uid: 'alice' });
      await browser.post('/act');
    }
    await scene.stop();
    return warningsIn(events);
  }

  it('are one warning with their keys and no value when the user is under an unknown name', async () => {
    const [warning, ...others] = await warningsAfterVisits({});
    expect(others).toEqual([]);
    expect(warning?.code).toBe('uid-never-found');
    expect(warning?.message).toContain(
      '100 sessions were saved, and no uid was found in any of them; if users',
    );
    expect(warning?.message).toContain('(session keys: cookie, staffNumber, theme)');
    expect(warning?.hint).toContain('give the option session.uid');
    expect(JSON.stringify(warning)).not.toMatch(/alice|dark/);
  });

  it('are one warning on Fastify, where a session without a user is loaded with each new visitor', async () => {
    const login: FastifyLogin = {
      register: async (app) => {
        await app.register(fastifyCookie);
        await app.register(fastifySession, {
          secret: 'only for tests, and long enough for it',
          cookie: { secure: false },
        });
      },
      logIn: ({ request }, uid) => Object.assign(request.session, staff(uid)),
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

  it('are one warning of the host’s own function when it finds none of them', async () => {
    const [warning, ...others] = await warningsAfterVisits({ uid: (session) => session.nobody });
    expect(others).toEqual([]);
    expect(warning?.code).toBe('uid-never-found');
    expect(warning?.message).toContain('your own function returned no uid for any of them');
    expect(warning?.hint).toContain('make the option session.uid return the uid of each user');
  });

  const silent: readonly (Visits & { readonly name: string })[] = [
    { name: 'they are ninety-nine', sessions: 99 },
    {
      name: 'one of them had a uid',
      sessions: 130,
      keep: (uid, n) => (n === 20 ? { user: uid } : staff(uid)),
    },
    {
      name: 'they are of visitors, with a CSRF secret, messages and a cart',
      keep: () => ({ csrfSecret: 'x', _csrf: 'y', flash: { info: ['hello'] }, cart: [1], returnTo: '/' }),
    },
  ];
  it.each(silent)('are no warning when $name', async (visits) => {
    expect(await warningsAfterVisits(visits)).toEqual([]);
  });

  it('are a warning of a second store although the sessions of the first have uids', () => {
    const keys: string[] = [];
    const [users, admins] = [1, 2].map(() => new UidCount((listed) => keys.push(listed)));
    users?.found();
    for (let n = 0; n < 300; n += 1) {
      users?.notFound(`session ${n}`, { cookie: {}, theme: 'dark' });
      admins?.notFound(`session ${n}`, { cookie: {}, [`key ${n % 40}`]: n });
    }
    expect(keys.map((listed) => listed.split(', ').length)).toEqual([20]);
  });

  it('are no warning when they are one session of many requests', () => {
    const keys: string[] = [];
    const count = new UidCount((listed) => keys.push(listed));
    for (let n = 0; n < 300; n += 1) count.notFound('the same', { cookie: {}, theme: 'dark' });
    expect(keys).toEqual([]);
  });
});

describe('a session cookie that has changed a hundred times', () => {
  const [login] = expressCookieLogins.filter(({ name }) => name.includes('cookie-session'));
  const visits = async (
    uid: (value: string, n: number) => string | undefined,
  ): Promise<readonly Warning[]> => {
    let n = 0;
    const host = await scene.start(
      {
        login: {
          mount: (app) => void login?.mount?.(app),
          logIn: (request, response, user) => login?.logIn({ request, response }, user),
          uidIn: () => undefined,
        },
      },
      { session: { cookies: [{ name: 'session', uid: (value) => uid(value, (n += 1)) }] } },
    );
    const events = eventsOf(host.app);
    const browser = new Browser(host.url);
    for (let time = 0; time <= 130; time += 1) await browser.post('/login', { uid: `user ${time}` });
    await scene.stop();
    return warningsIn(events);
  };

  it('is one warning when the host’s function returned a uid for none of its values', async () => {
    const [warning, ...others] = await visits(() => undefined);
    expect(others).toEqual([]);
    expect(warning?.code).toBe('cookie-without-uid');
    expect(warning?.message).toContain(
      'the cookie session had 100 values, and your function returned no uid',
    );
    expect(warning?.hint).toContain('the option session.cookies');
  });

  it('is no warning when it returned one for one of them', async () => {
    expect(await visits((_value, n) => (n === 20 ? 'alice' : undefined))).toEqual([]);
  });
});

describe('a request with a session but no session store', () => {
  const onExpress = expressCookieLogins.filter(({ name }) => name.includes('cookie-session'));
  const onFastify = fastifyCookieLogins.filter(({ name }) => name.includes('secure-session'));

  it.each(onExpress)('is one warning: $name', async ({ mount, logIn, uidIn }) => {
    const login: ExpressLogin = {
      mount: (app) => void mount?.(app),
      logIn: (request, response, uid) => logIn({ request, response }, uid),
      uidIn: (request, response) => uidIn({ request, response }),
    };
    const warnings = await warningsAfterLogins({ login });
    expect(warnings.map(({ code }) => code)).toEqual(['session-without-store']);
    expect(warnings[0]?.hint).toContain('the option session.cookies');
    expect(JSON.stringify(warnings)).not.toMatch(/alice|bob/);
  });

  it('is a warning when a hundred requests had one under an unknown name, and none for visitors', () => {
    const seen: string[] = [];
    const warnings = new SetupWarnings(({ code, message }) => seen.push(code, message), false);
    for (let n = 0; n < 1_000; n += 1) {
      warnings.withoutStore({});
      warnings.withoutStore({ csrfSecret: 'x', flash: {} });
    }
    for (let n = 0; n < 99; n += 1) warnings.withoutStore({ staffNumber: 7 });
    expect(seen).toEqual([]);
    for (let n = 0; n < 2; n += 1) warnings.withoutStore({ staffNumber: 7 });
    expect(seen).toEqual(['session-without-store', expect.stringContaining('(session keys: staffNumber)')]);
  });

  it.each(onFastify)('is one warning: $name', async ({ mount, logIn, uidIn }) => {
    const register = (app: Parameters<NonNullable<typeof mount>>[0]): unknown => mount?.(app);
    const login = { register, logIn, uidIn };
    const debateSpace = using(scene.service);
    const host = await scene.add(FastifyHost.start({ login, act: () => undefined, debateSpace }));
    const events = eventsOf(host.app);
    for (const uid of ['alice', 'bob']) await logInTo(host, uid);
    await scene.stop();
    expect(warningsIn(events).map(({ code }) => code)).toEqual(['session-without-store']);
  });
});

it('Nest behind the session middleware of a parent app is one warning, and logouts are delivered', async () => {
  const wiring = wiringsInParents['Nest in a parent app with the sessions'];
  const warnings = await warningsAfterLogins({ wiring, act: destroySession });
  expect(warnings.map(({ code }) => code)).toEqual(['session-of-parent-app']);
  expect(scene.service.received.logouts).toContain('alice');
});

describe('store.clear() on a store that does not list its sessions', () => {
  class UnlistedStore extends session.MemoryStore {}
  const unlisted: { readonly name: string; readonly store: () => Store }[] = [
    { name: 'has no all()', store: () => Object.assign(new UnlistedStore(), { all: undefined }) },
    {
      name: 'lists rows',
      store: () =>
        Object.assign(new UnlistedStore(), {
          all: (done: (error: unknown, rows: unknown) => void) => {
            done(null, [{ sid: 's1', sess: '{}' }]);
          },
        }),
    },
  ];
  it.each(unlisted)(
    'is one warning when it $name, and users with a request under way are reported',
    async ({ store: make }) => {
      const store = make();
      const host = await scene.start({ store, act: () => jobs.clear(store) });
      const events = eventsOf(host.app);
      const browser = new Browser(host.url);
      for (let round = 0; round < 2; round += 1) {
        await browser.post('/login', { uid: 'alice' });
        await browser.post('/act');
      }
      await scene.stop();
      expect(warningsIn(events).map(({ code }) => code)).toEqual(['clear-not-listed']);
      expect(scene.service.received.logouts).toEqual(['alice', 'alice']);
    },
  );
});
