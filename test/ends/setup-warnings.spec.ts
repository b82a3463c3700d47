// Which sessions are warned of: setup-warnings.spec.ts beside the source. Here, what an app with a wrong setup learns of it.
import { expect, it } from '@jest/globals';
import fastifyCookie from '@fastify/cookie';
import fastifySession from '@fastify/session';
import session, { type Store } from 'express-session';
import type { INestApplication, LoggerService } from '@nestjs/common';
import type { DebateSpaceModuleOptions } from 'nestjs-debate-space';
import { Browser } from '#support/browser/browser.js';
import { expressCookieLogins, fastifyCookieLogins } from '#support/hosts/cookie-logins.js';
import { eventsOf } from '#support/hosts/events.js';
import { wiringsInParents } from '#support/hosts/express-wirings.js';
import { FastifyHost, type FastifyLogin } from '#support/hosts/fastify-host.js';
import { scenario } from '#support/hosts/scenario.js';
import type { ExpressLogin, SessionHostOptions } from '#support/hosts/session-host.js';
import { destroySession, jobs } from '#support/hosts/session-jobs.js';
import { using } from '#support/service/service.js';

interface Host {
  readonly app: INestApplication;
  readonly url: string;
}

interface Case {
  readonly name: string;
  readonly start: () => Promise<Host>;
  /** How many browsers log in, and come back. Default: 3. */
  readonly logins?: number;
  /** The codes of all warnings. */
  readonly codes: readonly string[];
  /** What the first warning says, its hint included. */
  readonly says?: readonly string[];
  /** Default: nobody. */
  readonly reported?: readonly string[];
}

const scene = scenario();

/** A login that puts something into the session of express-session. */
const keeping = (put: (uid: string) => object): ExpressLogin => ({
  mount: (app) => {
    app.use(session({ secret: 'only for tests', resave: false, saveUninitialized: false }));
  },
  logIn: (request, _, uid) => Object.assign(request.session, put(uid)),
  uidIn: () => undefined,
});
const named = keeping((username) => ({ user: { username } }));
const token = `${Buffer.from('{"alg":"none"}').toString('base64url')}.YWxpY2U.c2ln`;
const withToken = keeping(() => ({ passport: { user: token } }));

const onExpress =
  (options: SessionHostOptions, plugin?: Partial<DebateSpaceModuleOptions>) => (): Promise<Host> =>
    scene.start(options, plugin);
const onFastify = (login: FastifyLogin) => (): Promise<Host> =>
  scene.add(FastifyHost.start({ login, act: () => undefined, debateSpace: using(scene.service) }));

const ofStaffOnFastify: FastifyLogin = {
  register: async (app) => {
    await app.register(fastifyCookie);
    const secret = 'only for tests, and long enough for it';
    await app.register(fastifySession, { secret, cookie: { secure: false } });
  },
  logIn: ({ request }, staffNumber) => Object.assign(request.session, { staffNumber }),
  uidIn: () => undefined,
};

const cookieLogin = expressCookieLogins.find(({ name }) => name.includes('cookie-session'));
const inCookie: ExpressLogin = {
  mount: (app) => void cookieLogin?.mount?.(app),
  logIn: (request, response, uid) => cookieLogin?.logIn({ request, response }, uid),
  uidIn: () => undefined,
};
const secureSession = fastifyCookieLogins.find(({ name }) => name.includes('secure-session'));
const inCookieOnFastify: FastifyLogin = {
  register: (app) => secureSession?.mount?.(app),
  logIn: (context, uid) => secureSession?.logIn(context, uid),
  uidIn: () => undefined,
};
class UnlistedStore extends session.MemoryStore {}
const clearing = (all: unknown): SessionHostOptions => {
  const store: Store = Object.assign(new UnlistedStore(), { all });
  return { store, act: () => jobs.clear(store) };
};
const listsRows = (done: (error: unknown, rows: unknown) => void): void => {
  done(null, [{ sid: 's1', sess: '{}' }]);
};

const cases: readonly Case[] = [
  {
    name: 'users in whom no uid is found',
    start: onExpress({ login: named }),
    codes: ['uid-not-found'],
    says: ['(session keys: cookie, user, user.username)', 'the option session.uid'],
  },
  {
    name: 'users whose uid is a token, and who are not reported',
    start: onExpress({ login: withToken, act: destroySession }),
    codes: ['uid-not-found'],
    says: ['a session has a user whose uid is a token'],
  },
  {
    name: 'a hundred sessions without a uid on Fastify, which loads one with each visitor',
    start: onFastify(ofStaffOnFastify),
    logins: 101,
    codes: ['uid-never-found'],
  },
  {
    name: 'sessions in a cookie on Express, without session.cookies',
    start: onExpress({ login: inCookie }),
    codes: ['session-without-store'],
    says: ['the option session.cookies'],
  },
  {
    name: 'sessions in a cookie on Fastify, without session.cookies',
    start: onFastify(inCookieOnFastify),
    codes: ['session-without-store'],
  },
  {
    name: 'Nest behind the session middleware of a parent app',
    start: onExpress({
      wiring: wiringsInParents['Nest in a parent app with the sessions'],
      act: destroySession,
    }),
    codes: ['session-of-parent-app'],
    reported: ['alice', 'bob', 'alice'],
  },
  {
    name: 'store.clear() on a store without all()',
    start: onExpress(clearing(undefined)),
    logins: 2,
    codes: ['clear-not-listed'],
    reported: ['alice', 'bob'],
  },
  {
    name: 'store.clear() on a store that lists rows',
    start: onExpress(clearing(listsRows)),
    logins: 2,
    codes: ['clear-not-listed'],
    reported: ['alice', 'bob'],
  },
];

it.each(cases)(
  '$name: the warnings are $codes',
  async ({ start, logins = 3, codes, says = [], reported = [] }) => {
    const host = await start();
    const events = eventsOf(host.app);
    for (let n = 0; n < logins; n += 1) {
      const browser = new Browser(host.url);
      await browser.post('/login', { uid: n % 2 ? 'bob' : 'alice' });
      await browser.post('/act');
    }
    const logouts = await scene.logouts();
    const warnings = events.filter((event) => event.type === 'setup-warning');
    expect(warnings.map(({ code }) => code)).toEqual(codes);
    const text = warnings.map(({ message, hint }) => `${message} ${hint}`).join();
    for (const part of says) expect(text).toContain(part);
    expect(text).not.toMatch(/alice|bob|YWxpY2U/); // keys, never values
    expect(logouts).toEqual(reported);
  },
);

it('a warning is one line in the log', async () => {
  const lines: unknown[] = [];
  const nothing = (): void => undefined;
  const logger: LoggerService = { log: nothing, error: nothing, warn: (line: unknown) => lines.push(line) };
  const host = await scene.start({ login: named, logger });
  for (let n = 0; n < 2; n += 1) await new Browser(host.url).post('/login', { uid: 'alice' });
  await scene.stop();
  expect(lines.map(String).filter((line) => line.includes('no uid was found'))).toHaveLength(1);
});
