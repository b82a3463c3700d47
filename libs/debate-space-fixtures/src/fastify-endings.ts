import { once } from 'node:events';
import { setImmediate as nextTurn } from 'node:timers/promises';
import cookie from '@fastify/cookie';
import { Authenticator } from '@fastify/passport';
import fastifySession from '@fastify/session';
import type { NestFastifyApplication } from '@nestjs/platform-fastify';
import type { FastifyReply, FastifyRequest } from 'fastify';
import type { Ending, EndingStack } from './endings.js';
import { FallibleStore } from './fallible-store.js';
import {
  FastifyHost,
  onHttp2,
  onLambda,
  type FastifyContext,
  type FastifyLogin,
  type FastifyServing,
} from './fastify-host.js';
import { onlySid } from './session-jobs.js';

/** The session of @fastify/session, under @fastify/passport or not. */
interface FastifySession {
  user?: { uid: string } | undefined;
  readonly sessionId: string;
  readonly cookie: { maxAge: number | null; expires: Date | null };
  destroy(): Promise<void>;
  destroy(callback: (error?: unknown) => void): void;
  regenerate(keys?: string[]): Promise<void>;
  save(): Promise<void>;
  reload(): Promise<void>;
  touch(): void;
}

interface Store {
  fail?(operation: 'destroy' | 'set', times: number): void;
  destroy(sid: string, callback: () => void): void;
  clear?(callback: () => void): void;
}

interface Context extends FastifyContext {
  readonly session: FastifySession;
  readonly store: Store;
  readonly logIn: (uid: string) => Promise<void>;
}

interface FastifyEnding extends Omit<Ending<Context>, 'act'> {
  readonly act?: (context: Context) => unknown;
  /** Default: all. */
  readonly logins?: readonly (keyof typeof logins)[];
  /** Whether the store has to fail. */
  readonly fails?: boolean;
  /** In place of the act: what happens without any request to the only session that there is. */
  readonly job?: (store: Store, sid: string) => unknown;
  /** The store of @fastify/session itself keeps what has run out. */
  readonly needs?: 'own store';
}

const sessionOf = (request: FastifyRequest): FastifySession => request.session as unknown as FastifySession;
const swallowed = (promise: Promise<void>): Promise<void> => promise.catch(() => undefined);
const closed = (reply: FastifyReply): Promise<unknown> => once(reply.raw, 'close');
const streamed = async (context: Context, act: (context: Context) => Promise<unknown>): Promise<void> => {
  context.reply.hijack();
  context.reply.raw.write('first ');
  await act(context);
  context.reply.raw.write('second ');
  await nextTurn();
  context.reply.raw.end('last');
};
const destroy = ({ session }: Context): Promise<void> => session.destroy();
const sidIn = async (store: Store): Promise<string> =>
  store instanceof FallibleStore ? onlySid(store) : [...ownRows(store).keys()].join();
const ownRows = (store: Store): Map<string, FastifySession> =>
  Reflect.get(store, 'store') as Map<string, FastifySession>;
/** As if its time had come: not by a method of the store. */
const runOut = (store: Store, sid: string): void => {
  const session = ownRows(store).get(sid);
  if (session) session.cookie.expires = new Date(Date.now() - 1_000);
};
const removeUser = ({ session }: Context): void => {
  delete session.user;
};

/** Before version 11, @fastify/session leaves the old session alive in `regenerate` – for a browser that gets no new cookie. */
const OLD_ONE_LIVES = { nest10: false } as const;

const endings: readonly FastifyEnding[] = [
  { name: 'session.destroy', ends: true, act: destroy },
  {
    name: 'session.destroy with a callback',
    ends: true,
    act: ({ session }) =>
      new Promise((resolve) => {
        session.destroy(resolve);
      }),
  },
  {
    name: 'session.destroy, and then the handler throws',
    ends: true,
    act: async (context) => {
      await destroy(context);
      throw new Error('after the end');
    },
  },
  {
    name: 'session.destroy twice',
    ends: true,
    act: async ({ session }) => {
      await session.destroy();
      await session.destroy();
    },
  },
  {
    name: 'a destroy that fails in the store',
    ends: false,
    fails: true,
    act: ({ session, store }) => {
      store.fail?.('destroy', 1);
      return swallowed(session.destroy());
    },
  },
  { name: 'regenerate, and nobody logs in again', ends: true, act: ({ session }) => session.regenerate() },
  {
    name: 'regenerate, and another user logs in',
    ends: true,
    act: async ({ session, logIn }) => {
      await session.regenerate();
      await logIn('bob');
    },
  },
  {
    name: 'regenerate, and the same user logs in',
    ends: false,
    act: async ({ session, logIn }) => {
      await session.regenerate();
      await logIn('alice');
    },
  },
  {
    name: 'regenerate, and the same user logs in some time later',
    ends: false,
    act: async ({ session, logIn }) => {
      await session.regenerate();
      for (let turn = 0; turn < 20; turn += 1) await nextTurn();
      await logIn('alice');
    },
  },
  {
    name: 'regenerate that keeps the user',
    ends: false,
    logins: ['session'],
    act: async ({ session, request }) => {
      await session.regenerate(['user']);
      await sessionOf(request).save();
    },
  },
  { name: 'logging in again as the same user', ends: false, act: ({ logIn }) => logIn('alice') },
  {
    name: 'passport: logIn of another user',
    ends: true,
    logins: ['passport'],
    act: ({ logIn }) => logIn('bob'),
  },
  { name: 'passport: logout', ends: true, logins: ['passport'], act: ({ request }) => request.logOut() },
  {
    name: 'passport: logout, and the same user logs in',
    ends: false,
    logins: ['passport'],
    act: async ({ request, logIn }) => {
      await request.logOut();
      await logIn('alice');
    },
  },
  { name: 'delete session.user', ends: true, logins: ['session'], act: removeUser },
  {
    name: 'delete session.user, saved immediately',
    ends: true,
    logins: ['session'],
    act: (context) => {
      removeUser(context);
      return context.session.save();
    },
  },
  {
    name: 'delete session.user, and the save fails',
    ends: false,
    fails: true,
    logins: ['session'],
    act: (context) => {
      context.store.fail?.('set', 10);
      removeUser(context);
    },
  },
  {
    name: 'delete session.user, and the save fails, but not the one with the error page',
    ends: true,
    fails: true,
    logins: ['session'],
    act: (context) => {
      context.store.fail?.('set', 1);
      removeUser(context);
    },
  },
  {
    name: 'delete session.user, saved, and set again',
    ends: false,
    logins: ['session'],
    act: async (context) => {
      removeUser(context);
      await context.session.save();
      context.session.user = { uid: 'alice' };
    },
  },
  {
    name: 'session.user overwritten with another user',
    ends: true,
    logins: ['session'],
    act: ({ session }) => {
      session.user = { uid: 'bob' };
    },
  },
  {
    name: 'request.session = null',
    ends: false,
    act: ({ request }) => {
      Object.assign(request, { session: null });
    },
  },
  {
    name: 'the cookie is cleared, and the session left behind',
    ends: true,
    act: ({ request, reply }) => {
      Object.assign(request, { session: null });
      void reply.clearCookie('sessionId', { path: '/' });
    },
  },
  {
    name: 'a cookie of something else is cleared',
    ends: false,
    act: ({ reply }) => {
      void reply.clearCookie('theme');
    },
  },
  { name: 'destroyed in a guard that refuses', ends: true, path: '/act-guarded', act: destroy },
  { name: 'destroyed on a route outside Nest', ends: true, path: '/outside', act: destroy },
  { name: 'destroyed in a hook of a route that is not there', ends: true, path: '/missing', act: destroy },
  {
    name: 'destroyed, answered through the raw response',
    ends: true,
    act: async (context) => {
      await destroy(context);
      context.reply.hijack();
      context.reply.raw.writeHead(204).end();
    },
  },
  { name: 'destroyed while streaming', ends: true, act: (context) => streamed(context, destroy) },
  {
    name: 'regenerated for nobody while streaming',
    ends: true,
    endsOn: OLD_ONE_LIVES,
    act: (context) => streamed(context, ({ session }) => session.regenerate()),
  },
  {
    name: 'destroyed in a handler of server-sent events that stays open',
    ends: true,
    path: '/act-events',
    act: destroy,
  },
  {
    name: 'destroyed after the client aborted',
    ends: true,
    aborts: true,
    act: async (context) => {
      await closed(context.reply);
      await destroy(context);
    },
  },
  {
    name: 'saved after the client aborted',
    ends: false,
    aborts: true,
    act: async ({ reply, session }) => {
      await closed(reply);
      await session.save();
    },
  },
  {
    name: 'passport: logout after the client aborted',
    ends: true,
    endsOn: OLD_ONE_LIVES,
    aborts: true,
    logins: ['passport'],
    act: async ({ reply, request }) => {
      await closed(reply);
      await request.logOut();
    },
  },
  {
    name: 'delete session.user after the client aborted, saved',
    ends: true,
    aborts: true,
    logins: ['session'],
    act: async (context) => {
      await closed(context.reply);
      removeUser(context);
      await context.session.save();
    },
  },
  {
    name: 'destroyed after the response',
    ends: true,
    act: async (context) => {
      context.reply.hijack();
      context.reply.raw.end('done');
      await closed(context.reply);
      await destroy(context);
    },
  },
  {
    name: 'store.destroy with no request',
    ends: true,
    act: async ({ request, session, store }) => {
      const { sessionId } = session;
      Object.assign(request, { session: null });
      await new Promise<void>((resolve) => {
        setImmediate(() => {
          store.destroy(sessionId, resolve);
        });
      });
    },
  },
  {
    name: 'store.clear',
    ends: true,
    fails: true,
    act: ({ request, store }) =>
      new Promise<void>((resolve) => {
        Object.assign(request, { session: null });
        store.clear?.(resolve);
      }),
  },
  {
    name: 'store.destroy by a job',
    ends: true,
    path: 'job',
    job: (store, sid) =>
      new Promise<void>((resolve) => {
        store.destroy(sid, resolve);
      }),
  },
  {
    name: 'the session runs out and is found expired at the next request',
    ends: true,
    path: 'job',
    needs: 'own store',
    job: runOut,
  },
  {
    name: 'session.cookie.maxAge = 0, saved',
    ends: true,
    act: ({ session }) => {
      session.cookie.maxAge = 0;
      return session.save();
    },
  },
  {
    name: 'session.cookie.expires in the past, saved',
    ends: true,
    act: ({ session }) => {
      session.cookie.expires = new Date(0);
      return session.save();
    },
  },
  {
    name: 'a longer session.cookie.maxAge, saved',
    ends: false,
    act: ({ session }) => {
      session.cookie.maxAge = 60_000;
      return session.save();
    },
  },
  {
    name: 'touch',
    ends: false,
    act: ({ session }) => {
      session.touch();
    },
  },
  { name: 'reload', ends: false, act: ({ session }) => session.reload() },
  { name: 'an ordinary save', ends: false, act: ({ session }) => session.save() },
  {
    name: 'a change of something else',
    ends: false,
    act: ({ session }) => {
      Object.assign(session, { basket: 3 });
    },
  },
  {
    name: 'a handler that throws',
    ends: false,
    act: () => {
      throw new Error('nothing to do with sessions');
    },
  },
];

async function registerSession(app: NestFastifyApplication, store: Store | undefined): Promise<void> {
  await app.register(cookie as never);
  const settings = { secret: 'only for tests, and long enough for it', cookie: { secure: false }, store };
  await app.register(fastifySession, { ...settings, saveUninitialized: false } as never);
}

const logins = {
  session: (store: Store | undefined): FastifyLogin => ({
    register: (app) => registerSession(app, store),
    logIn: ({ request }, uid) => {
      sessionOf(request).user = { uid };
    },
    uidIn: ({ request }) => sessionOf(request).user?.uid,
  }),
  passport: (store: Store | undefined): FastifyLogin => {
    const authenticator = new Authenticator();
    authenticator.registerUserSerializer(async ({ uid }: { uid: string }) => Promise.resolve(uid));
    authenticator.registerUserDeserializer(async (uid: string) => Promise.resolve({ uid }));
    return {
      register: async (app) => {
        await registerSession(app, store);
        await app.register(authenticator.initialize() as never);
        await app.register(authenticator.secureSession() as never);
      },
      logIn: ({ request }, uid) => request.logIn({ uid } as never),
      uidIn: ({ request }) => (request.user as { uid: string } | null | undefined)?.uid,
    };
  },
};

interface FastifyVariant {
  readonly name: string;
  readonly kind: keyof typeof logins;
  readonly ownStore: boolean;
  /** Default: Nest listens. */
  readonly serving?: FastifyServing;
}

/** An event of a lambda has nobody who goes away before the answer, which comes as a whole. */
const fitsLambda = ({ path, aborts = false, name }: FastifyEnding): boolean =>
  !aborts && path !== '/act-events' && !/raw response|streaming|after the response/.test(name);

const variants: readonly FastifyVariant[] = [
  { name: 'Fastify, @fastify/session', kind: 'session', ownStore: false },
  { name: 'Fastify, @fastify/session and its own store', kind: 'session', ownStore: true },
  { name: 'Fastify, @fastify/passport', kind: 'passport', ownStore: false },
  { name: 'Fastify over HTTP/2, @fastify/session', kind: 'session', ownStore: false, serving: onHttp2 },
  { name: 'Fastify on AWS Lambda, @fastify/aws-lambda', kind: 'session', ownStore: false, serving: onLambda },
];

/** @fastify/session, alone and under @fastify/passport. */
export const fastifyStacks: readonly EndingStack<Context>[] = variants.map(
  ({ name, kind, ownStore, serving }) => ({
    name,
    endings: endings
      .map(({ act = () => undefined, ...ending }) => ({ ...ending, act }))
      .filter(
        (ending) =>
          (ending.logins?.includes(kind) ?? true) &&
          !(ending.fails && ownStore) &&
          !(ending.needs === 'own store' && !ownStore) &&
          (serving !== onLambda || fitsLambda(ending)),
      ),
    start: async (act, { name: row }, debateSpace) => {
      const store = new (ownStore ? fastifySession.MemoryStore : FallibleStore)() as Store;
      const login = logins[kind](store);
      const acting = (context: FastifyContext): unknown =>
        act({
          ...context,
          session: sessionOf(context.request),
          store,
          logIn: async (uid) => {
            await login.logIn(context, uid);
          },
        });
      const host = await FastifyHost.start({ login, act: acting, debateSpace, serving });
      return Object.assign(host, {
        recover: () => store.fail?.('set', 0),
        job: async () => endings.find((ending) => ending.name === row)?.job?.(store, await sidIn(store)),
      });
    },
  }),
);
