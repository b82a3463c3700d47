import type { NestExpressApplication } from '@nestjs/platform-express';
import type { NestFastifyApplication } from '@nestjs/platform-fastify';
import type { DebateSpaceModuleOptions, SessionCookie } from 'nestjs-debate-space';
import { expressCookieLogins, fastifyCookieLogins } from './cookie-logins.js';
import type { EndingHost } from './endings.js';
import { FastifyHost } from './fastify-host.js';
import { SessionHost } from './session-host.js';

export interface CookieHostOptions {
  readonly debateSpace: DebateSpaceModuleOptions;
  /** Default: as the session library has it. */
  readonly cookie?: (own: SessionCookie) => SessionCookie;
  /** What the handler waits for before it logs the user out. */
  readonly before?: () => unknown;
}

/** A host whose `act` drops the session, which lives in a cookie. */
export interface CookieHost {
  readonly name: string;
  readonly start: (options: CookieHostOptions) => Promise<EndingHost>;
}

const same = (own: SessionCookie): SessionCookie => own;

const onExpress = expressCookieLogins.map((login): CookieHost => {
  const start: CookieHost['start'] = ({ debateSpace, before, cookie = same }) => {
    let app: NestExpressApplication;
    return SessionHost.start({
      debateSpace: { ...debateSpace, session: { cookies: [cookie(login.cookie(() => app))] } },
      act: async (request, response) => {
        await before?.();
        await login.logOut({ request, response });
      },
      login: {
        mount: (mounted) => {
          app = mounted;
          void login.mount?.(app);
        },
        logIn: (request, response, uid) => login.logIn({ request, response }, uid),
        uidIn: (request, response) => login.uidIn({ request, response }),
      },
    });
  };
  return { name: login.name, start };
});

const onFastify = fastifyCookieLogins.map((login): CookieHost => {
  const start: CookieHost['start'] = ({ debateSpace, before, cookie = same }) => {
    let app: NestFastifyApplication;
    return FastifyHost.start({
      debateSpace: { ...debateSpace, session: { cookies: [cookie(login.cookie(() => app))] } },
      act: async (context) => {
        await before?.();
        await login.logOut(context);
      },
      login: {
        register: async (registered) => {
          app = registered;
          await login.mount?.(app);
        },
        logIn: login.logIn,
        uidIn: login.uidIn,
      },
    });
  };
  return { name: login.name, start };
});

export const cookieHosts: readonly CookieHost[] = [...onExpress, ...onFastify];
