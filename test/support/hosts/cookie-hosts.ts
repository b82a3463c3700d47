import type { ServerResponse } from 'node:http';
import type { NestExpressApplication } from '@nestjs/platform-express';
import type { NestFastifyApplication } from '@nestjs/platform-fastify';
import type { DebateSpaceModuleOptions, SessionCookie } from 'nestjs-debate-space';
import { expressCookieLogins, fastifyCookieLogins, type CookieLogin } from './cookie-logins.js';
import type { EndingHost } from '../endings/endings.js';
import { FastifyHost } from './fastify-host.js';
import { SessionHost } from './session-host.js';

/** What a handler can do to the session of its request. */
export interface CookieContext {
  readonly logIn: (uid: string) => unknown;
  /** Drops the whole session. */
  readonly logOut: () => unknown;
  readonly removeUser: () => unknown;
  readonly change: () => unknown;
  readonly raw: ServerResponse;
  /** Takes the answer out of the platform's hands. */
  readonly hijack: () => void;
}

export interface CookieHostOptions {
  /** Default: a host without the plugin. */
  readonly debateSpace: DebateSpaceModuleOptions | undefined;
  /** Default: as the session library has it. */
  readonly cookie?: (own: SessionCookie) => SessionCookie;
  readonly act: (context: CookieContext) => unknown;
}

/** A host whose sessions live in a cookie. */
export interface CookieHost {
  readonly name: string;
  readonly login: Pick<CookieLogin<unknown, never>, 'removeUser' | 'change' | 'revives'>;
  readonly start: (options: CookieHostOptions) => Promise<EndingHost>;
}

type Act<Exchange> = (exchange: Exchange) => unknown;

function hostOf<App, Exchange>(
  login: CookieLogin<App, Exchange>,
  start: (
    act: Act<Exchange>,
    debateSpace: DebateSpaceModuleOptions | undefined,
    started: (app: App) => void,
  ) => Promise<EndingHost>,
  raw: (exchange: Exchange) => Pick<CookieContext, 'raw' | 'hijack'>,
): CookieHost {
  return {
    name: login.name,
    login,
    start: ({ act, debateSpace, cookie = (own) => own }) => {
      let app: App;
      const cookies = [cookie(login.cookie(() => app))];
      const acting: Act<Exchange> = (exchange) =>
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
  hostOf(
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
  hostOf(
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

export const cookieHosts: readonly CookieHost[] = [...onExpress, ...onFastify];
