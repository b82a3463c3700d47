import { once } from 'node:events';
import type { ServerResponse } from 'node:http';
import type { NestExpressApplication } from '@nestjs/platform-express';
import type { NestFastifyApplication } from '@nestjs/platform-fastify';
import type { DebateSpaceModuleOptions } from 'nestjs-debate-space';
import { expressCookieLogins, fastifyCookieLogins, type CookieLogin } from './cookie-logins.js';
import type { Ending, EndingHost, EndingStack } from './endings.js';
import { FastifyHost } from './fastify-host.js';
import { SessionHost } from './session-host.js';

type Step = (uid: string) => unknown;

interface Context extends Readonly<Record<'logIn' | 'logOut' | 'removeUser' | 'change', Step>> {
  readonly raw: ServerResponse;
  /** Takes the answer out of the platform's hands. */
  readonly hijack: () => void;
}

interface CookieEnding extends Ending<Context> {
  readonly needs?: 'removeUser' | 'change' | 'revives';
}

const drop = ({ logOut }: Context): unknown => logOut('alice');
const swallowed = async (work: () => unknown): Promise<void> => {
  await Promise.resolve()
    .then(work)
    .catch(() => undefined);
};
const afterAbort =
  (act: (context: Context) => unknown) =>
  async (context: Context): Promise<void> => {
    await once(context.raw, 'close');
    await swallowed(() => act(context));
  };

const endings: readonly CookieEnding[] = [
  { name: 'the session is dropped', ends: true, act: drop },
  {
    name: 'the session is dropped, and then the handler throws',
    ends: true,
    act: async (context) => {
      await drop(context);
      throw new Error('after the end');
    },
  },
  {
    name: 'the user is taken out of it',
    ends: true,
    needs: 'removeUser',
    act: ({ removeUser }) => removeUser('alice'),
  },
  { name: 'another user logs in', ends: true, act: ({ logIn }) => logIn('bob') },
  { name: 'the same user logs in again', ends: false, act: ({ logIn }) => logIn('alice') },
  {
    name: 'the session is dropped, and the same user logs in',
    ends: false,
    needs: 'revives',
    act: async (context) => {
      await drop(context);
      await context.logIn('alice');
    },
  },
  { name: 'something else changes', ends: false, needs: 'change', act: ({ change }) => change('alice') },
  { name: 'nothing changes', ends: false, act: () => undefined },
  {
    name: 'a handler that throws',
    ends: false,
    act: () => {
      throw new Error('nothing to do with sessions');
    },
  },
  { name: 'dropped in a guard that refuses', ends: true, path: '/act-guarded', act: drop },
  { name: 'dropped on a route outside Nest', ends: true, path: '/outside', act: drop },
  {
    name: 'cleared through the raw response',
    ends: true,
    act: ({ raw, hijack }) => {
      hijack();
      raw
        .writeHead(204, {
          'Set-Cookie': ['session', 'session.0', 'session.1'].map((name) => `${name}=; Max-Age=0; Path=/`),
        })
        .end();
    },
  },
  {
    name: 'Clear-Site-Data clears the cookies',
    ends: true,
    act: ({ raw }) => raw.setHeader('Clear-Site-Data', '"cache", "cookies"'),
  },
  {
    name: 'Clear-Site-Data clears everything, by the raw response',
    ends: true,
    act: ({ raw, hijack }) => {
      hijack();
      raw.writeHead(204, { 'Clear-Site-Data': '"*"' }).end();
    },
  },
  {
    name: 'the same user logs in again, and Clear-Site-Data clears the cookies',
    ends: true,
    act: async ({ raw, logIn }) => {
      raw.setHeader('Clear-Site-Data', '"cookies"');
      await logIn('alice');
    },
  },
  {
    name: 'Clear-Site-Data clears something else',
    ends: false,
    act: ({ raw }) => raw.setHeader('Clear-Site-Data', '"cache", "storage"'),
  },
  {
    name: 'a cookie of something else is cleared',
    ends: false,
    act: ({ raw, hijack }) => {
      hijack();
      raw.writeHead(204, { 'Set-Cookie': 'session-theme=; Max-Age=0; Path=/' }).end();
    },
  },
  {
    name: 'dropped when the head has left',
    ends: false,
    act: async (context) => {
      context.hijack();
      context.raw.write('first ');
      await swallowed(() => drop(context));
      context.raw.end('last');
    },
  },
  { name: 'dropped after the client aborted', ends: false, aborts: true, act: afterAbort(drop) },
];

function stackOf<App, Exchange>(
  login: CookieLogin<App, Exchange>,
  start: (
    act: (exchange: Exchange) => unknown,
    debateSpace: DebateSpaceModuleOptions | undefined,
    started: (app: App) => void,
  ) => Promise<EndingHost>,
  raw: (exchange: Exchange) => Pick<Context, 'raw' | 'hijack'>,
): EndingStack<Context> {
  return {
    name: login.name,
    // The cookies have to leave first.
    endings: endings
      .filter(({ needs }) => !needs || login[needs])
      .map((ending) => ({ ...ending, later: true })),
    start: ({ act, debateSpace }) => {
      let app: App;
      const cookies = [login.cookie(() => app)];
      const acting = (exchange: Exchange): unknown =>
        act({
          ...raw(exchange),
          logIn: (uid) => login.logIn(exchange, uid),
          logOut: () => login.logOut(exchange),
          removeUser: () => login.removeUser?.(exchange),
          change: () => login.change?.(exchange),
        });
      return start(acting, debateSpace && { ...debateSpace, session: { cookies } }, (started) => {
        app = started;
      });
    },
  };
}

const onExpress = expressCookieLogins.map((login) =>
  stackOf(
    login,
    (act, debateSpace, started) =>
      SessionHost.start({
        debateSpace,
        act: (request, response) => act({ request, response }),
        login: {
          mount: (app: NestExpressApplication) => {
            started(app);
            void login.mount?.(app);
          },
          logIn: (request, response, uid) => login.logIn({ request, response }, uid),
          uidIn: (request, response) => login.uidIn({ request, response }),
        },
      }),
    ({ response }) => ({ raw: response, hijack: () => undefined }),
  ),
);

const onFastify = fastifyCookieLogins.map((login) =>
  stackOf(
    login,
    (act, debateSpace, started) =>
      FastifyHost.start({
        debateSpace,
        act,
        login: {
          register: async (app: NestFastifyApplication) => {
            started(app);
            await login.mount?.(app);
          },
          logIn: login.logIn,
          uidIn: login.uidIn,
        },
      }),
    ({ reply }) => ({
      raw: reply.raw,
      hijack: () => {
        reply.hijack();
      },
    }),
  ),
);

/** Sessions that live in a cookie. */
export const cookieStacks: readonly EndingStack<Context>[] = [...onExpress, ...onFastify];
