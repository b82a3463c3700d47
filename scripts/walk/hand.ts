// The hosts of the walk, and what their handlers can do to a session: on either platform alike.
import cookie from '@fastify/cookie';
import fastifySession from '@fastify/session';
import type { FastifyReply, FastifyRequest } from 'fastify';
import type { Request, Response } from 'express';
import session, { type Store } from 'express-session';
import type { DebateSpaceModuleOptions } from 'nestjs-debate-space';
import { sessionOf } from '#support/hosts/fastify-logins.js';
import { FastifyHost } from '#support/hosts/fastify-host.js';
import { called } from '#support/hosts/session-jobs.js';
import { logIn, SessionHost, uidIn } from '#support/hosts/session-host.js';
import { bareUid, passportHandlers } from '#support/hosts/user-shape.js';
import type { Platform } from './configurations.js';
import { SHORT_MS } from './oracle.js';
import type { Act } from './steps.js';

/** The session of one request, in the hands of its handler. */
export interface Hand extends Readonly<
  Record<Exclude<Act, 'log in' | 'end all' | 'end others' | 'end target'>, () => unknown>
> {
  readonly 'log in': (uid: string) => unknown;
  readonly sid: string;
  readonly user: string | undefined;
  /** Resolves when the response is closed. */
  readonly closed: Promise<void>;
}

export interface WalkHost {
  readonly app: SessionHost['app'] | FastifyHost['app'];
  readonly url: string;
  stop(): Promise<void>;
}

export interface WalkHostOptions {
  readonly platform: Platform;
  readonly store: object;
  readonly debateSpace: DebateSpaceModuleOptions;
  /** Awaited before the session of a request is loaded. */
  readonly arrived: (url: string) => Promise<void>;
  readonly act: (url: string, hand: Hand) => unknown;
}

const SECRET = 'only for tests, and long enough for it';
const closing = (response: { once(event: 'close', listener: () => void): unknown }): Promise<void> =>
  new Promise((resolve) => response.once('close', resolve));
const whoami = (uid: string | undefined, sid: string): string => `${uid ?? ''} ${sid}`;

export function startHost(options: WalkHostOptions): Promise<WalkHost> {
  return options.platform === 'Fastify' ? startFastify(options) : startExpress(options);
}

function startExpress(options: WalkHostOptions): Promise<SessionHost> {
  const { platform, store, debateSpace, arrived, act } = options;
  const rolling = platform === 'Express, rolling';
  return SessionHost.start({
    debateSpace,
    act: (request, response) => act(request.originalUrl, expressHand(request, response)),
    login: {
      mount: (app) => {
        app.use((request: Request, _: Response, next: (error?: unknown) => void) => {
          arrived(request.originalUrl).then(() => {
            next();
          }, next);
        });
        const settings = { secret: SECRET, resave: false, saveUninitialized: rolling, rolling };
        app.use(session({ ...settings, store: store as Store }));
        if (platform === 'Express, passport') for (const each of passportHandlers(bareUid)) app.use(each);
      },
      logIn: () => undefined,
      uidIn: (request) => whoami(uidIn(request), request.sessionID),
    },
  });
}

function expressHand(request: Request, response: Response): Hand {
  return {
    closed: closing(response),
    get sid() {
      return request.sessionID;
    },
    user: uidIn(request),
    destroy: () => called((done) => request.session.destroy(done)),
    'destroy without waiting': () => void request.session.destroy(undefined as never),
    regenerate: () => called((done) => request.session.regenerate(done)),
    'log in': (uid) => logIn(request, uid),
    'remove user': () => {
      if (typeof request.logout !== 'function') return delete request.session.user;
      return called((done) => {
        request.logout(done);
      });
    },
    'clear cookie': () => void response.clearCookie('connect.sid'),
    shorten: () => (request.session.cookie.maxAge = SHORT_MS),
    change: () => Object.assign(request.session, { basket: Math.random() }),
  };
}

/** With the defaults of @fastify/session: `saveUninitialized` and `rolling`. */
function startFastify({ store, debateSpace, arrived, act }: WalkHostOptions): Promise<FastifyHost> {
  return FastifyHost.start({
    debateSpace,
    act: ({ request, reply }) => act(request.url, fastifyHand(request, reply)),
    login: {
      register: async (app) => {
        const fastify = app.getHttpAdapter().getInstance();
        fastify.addHook('onRequest', (request) => arrived(request.url));
        await app.register(cookie as never);
        const settings = { secret: SECRET, cookie: { secure: false }, store };
        await app.register(fastifySession, settings as never);
      },
      logIn: () => undefined,
      uidIn: ({ request }) => whoami(sessionOf(request).user?.uid, sessionOf(request).sessionId),
    },
  });
}

function fastifyHand(request: FastifyRequest, reply: FastifyReply): Hand {
  const current = (): ReturnType<typeof sessionOf> => sessionOf(request);
  return {
    closed: closing(reply.raw),
    get sid() {
      return current().sessionId;
    },
    user: current().user?.uid,
    destroy: () => current().destroy(),
    'destroy without waiting': () => void current().destroy(),
    regenerate: () => current().regenerate(),
    'log in': (uid) => (current().user = { uid }),
    'remove user': () => delete current().user,
    'clear cookie': () => void reply.clearCookie('sessionId', { path: '/' }),
    shorten: () => (current().cookie.maxAge = SHORT_MS),
    change: () => Object.assign(current(), { basket: Math.random() }),
  };
}
