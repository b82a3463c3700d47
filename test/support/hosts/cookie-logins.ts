import fastifyCookie from '@fastify/cookie';
import { Authenticator } from '@fastify/passport';
import secureSession from '@fastify/secure-session';
import type { NestExpressApplication } from '@nestjs/platform-express';
import type { NestFastifyApplication } from '@nestjs/platform-fastify';
import cookieSession from 'cookie-session';
import type { Request, Response } from 'express';
import type { FastifyRequest } from 'fastify';
import { getIronSession, type IronSession } from 'iron-session';
import { jwtVerify, SignJWT } from 'jose';
import type { IncomingMessage, ServerResponse } from 'node:http';
import type { SessionCookie } from 'nestjs-debate-space';
import { SECRET } from './cookie-secret.js'; // before the recipes
import { sessionCookie as cookieSessionCookie } from '../../../docs/examples/recipes/cookie-session.js';
import { sessionCookie as secureSessionCookie } from '../../../docs/examples/recipes/fastify-secure-session.js';
import { sessionCookie as ironSessionCookie } from '../../../docs/examples/recipes/iron-session.js';
import { sessionCookie as jwtCookie } from '../../../docs/examples/recipes/jwt-cookie.js';
import type { FastifyContext } from './fastify-host.js';

/** A session that lives in a cookie, as a host uses it. */
export interface CookieLogin<App, Context> {
  readonly name: string;
  /** What main.ts does. */
  readonly mount?: (app: App) => unknown;
  readonly logIn: (context: Context, uid: string) => unknown;
  readonly uidIn: (context: Context) => string | undefined | Promise<string | undefined>;
  /** Drops the whole session. */
  readonly logOut: (context: Context) => unknown;
  /** Takes the user out, and keeps the session – where there is more in it. */
  readonly removeUser?: (context: Context) => unknown;
  readonly change?: (context: Context) => unknown;
  /** Whether a dropped session may be filled again. */
  readonly revives: boolean;
  /** For `session.cookies`. */
  readonly cookie: (app: () => App) => SessionCookie;
}

export interface ExpressExchange {
  readonly request: Request;
  readonly response: Response;
}

interface Session {
  user?: string | undefined;
  basket?: number;
}

const KEY = new TextEncoder().encode(SECRET);

const cookieSessionOf = (request: Request): Session => request.session as unknown as Session;

const withCookieSession: CookieLogin<NestExpressApplication, ExpressExchange> = {
  name: 'Express, cookie-session',
  mount: (app) => app.use(cookieSession({ name: 'session', keys: [SECRET] })),
  logIn: ({ request }, uid) => Object.assign(request, { session: { user: uid } }),
  uidIn: ({ request }) => cookieSessionOf(request).user,
  logOut: ({ request }) => Object.assign(request, { session: null }),
  revives: true,
  removeUser: ({ request }) => delete cookieSessionOf(request).user,
  change: ({ request }) => Object.assign(request.session, { basket: 3 }),
  cookie: () => cookieSessionCookie,
};

const iron = (request: IncomingMessage, response: ServerResponse): Promise<IronSession<Session>> =>
  getIronSession<Session>(request, response, {
    password: SECRET,
    cookieName: 'session',
    cookieOptions: { secure: false },
  });

/** iron-session works on Node's own request and response, so it is the same on both platforms. */
function withIronSession<App, Context>(
  name: string,
  exchange: (context: Context) => readonly [IncomingMessage, ServerResponse],
): CookieLogin<App, Context> {
  const changed = async (context: Context, change: Partial<Session>): Promise<void> => {
    const session = await iron(...exchange(context));
    await Object.assign(session, change).save();
  };
  return {
    name,
    logIn: (context, uid) => changed(context, { user: uid }),
    uidIn: async (context) => (await iron(...exchange(context))).user,
    logOut: async (context) => {
      (await iron(...exchange(context))).destroy();
    },
    revives: true,
    removeUser: (context) => changed(context, { user: undefined }),
    change: (context) => changed(context, { basket: 3 }),
    cookie: () => ironSessionCookie,
  };
}

async function subjectOf(token: string | undefined): Promise<string | undefined> {
  if (token === undefined) return undefined;
  const verified = await jwtVerify(token, KEY).catch(() => undefined);
  return verified?.payload.sub;
}

/** A JWT that is too long for one cookie, as some libraries cut it. */
const withChunkedJwt: CookieLogin<NestExpressApplication, ExpressExchange> = {
  name: 'Express, a JWT in two cookies',
  logIn: async ({ response }, uid) => {
    const token = await new SignJWT({ sub: uid }).setProtectedHeader({ alg: 'HS256' }).sign(KEY);
    response.cookie('session.0', token.slice(0, 40)).cookie('session.1', token.slice(40));
  },
  uidIn: ({ request }) => {
    const chunk = (name: string): string =>
      new RegExp(`${name}=([^;]*)`).exec(request.headers.cookie ?? '')?.[1] ?? '';
    return subjectOf(chunk('session.0') + chunk('session.1'));
  },
  logOut: ({ response }) => response.clearCookie('session.0').clearCookie('session.1'),
  revives: true,
  cookie: () => ({ ...jwtCookie, name: 'session' }),
};

interface SecureSession {
  get(key: string): unknown;
  set(key: string, value: unknown): void;
  delete(): void;
}

const secure = (request: FastifyRequest): SecureSession => request.session as unknown as SecureSession;
const registerSecureSession = (app: NestFastifyApplication): unknown => {
  const key = Buffer.alloc(32, SECRET);
  return app.register(secureSession, { key, cookieName: 'session', cookie: { path: '/' } });
};
const secureCookie = (app: () => NestFastifyApplication): SessionCookie =>
  secureSessionCookie(() => app().getHttpAdapter().getInstance());

const withSecureSession: CookieLogin<NestFastifyApplication, FastifyContext> = {
  name: 'Fastify, @fastify/secure-session',
  mount: registerSecureSession,
  logIn: ({ request }, uid) => {
    secure(request).set('user', uid);
  },
  uidIn: ({ request }) => secure(request).get('user') as string | undefined,
  logOut: ({ request }) => {
    secure(request).delete();
  },
  revives: false,
  removeUser: ({ request }) => {
    secure(request).set('user', undefined);
  },
  change: ({ request }) => {
    secure(request).set('basket', 3);
  },
  cookie: secureCookie,
};

const withSecurePassport = (): CookieLogin<NestFastifyApplication, FastifyContext> => {
  const authenticator = new Authenticator();
  authenticator.registerUserSerializer(async ({ uid }: { uid: string }) => Promise.resolve(uid));
  authenticator.registerUserDeserializer(async (uid: string) => Promise.resolve({ uid }));
  return {
    ...withSecureSession,
    name: 'Fastify, @fastify/passport on @fastify/secure-session',
    mount: async (app) => {
      await registerSecureSession(app);
      await app.register(authenticator.initialize() as never);
      await app.register(authenticator.secureSession() as never);
    },
    logIn: ({ request }, uid) => request.logIn({ uid } as never),
    uidIn: ({ request }) => (request.user as { uid: string } | null | undefined)?.uid,
    removeUser: ({ request }) => request.logOut(),
    cookie: secureCookie,
  };
};

const withFastifyJwt: CookieLogin<NestFastifyApplication, FastifyContext> = {
  name: 'Fastify, a JWT in a cookie',
  mount: (app) => app.register(fastifyCookie as never),
  logIn: async ({ reply }, uid) => {
    const token = await new SignJWT({ sub: uid }).setProtectedHeader({ alg: 'HS256' }).sign(KEY);
    void reply.setCookie('session', token, { path: '/' });
  },
  uidIn: ({ request }) => subjectOf(request.cookies.session),
  logOut: ({ reply }) => {
    void reply.clearCookie('session', { path: '/' }); // a reply is a promise of being sent
  },
  revives: true,
  cookie: () => ({ ...jwtCookie, name: 'session' }),
};

export const expressCookieLogins: readonly CookieLogin<NestExpressApplication, ExpressExchange>[] = [
  withCookieSession,
  withIronSession('Express, iron-session', ({ request, response }) => [request, response]),
  withChunkedJwt,
];

export const fastifyCookieLogins: readonly CookieLogin<NestFastifyApplication, FastifyContext>[] = [
  withSecureSession,
  withSecurePassport(),
  withIronSession('Fastify, iron-session', ({ request, reply }) => [request.raw, reply.raw]),
  withFastifyJwt,
];
