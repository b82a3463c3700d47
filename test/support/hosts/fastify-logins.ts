import cookie from '@fastify/cookie';
import { Authenticator } from '@fastify/passport';
import fastifySession from '@fastify/session';
import type { NestFastifyApplication } from '@nestjs/platform-fastify';
import type { FastifyRequest } from 'fastify';
import type { FastifyLogin } from './fastify-host.js';

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

/** What logs in: @fastify/session alone, or @fastify/passport. */
export type LoginKind = 'session' | 'passport';

export const sessionOf = (request: FastifyRequest): FastifySession =>
  request.session as unknown as FastifySession;

type RegisterSession = (app: NestFastifyApplication, store: object, maxAge?: number) => Promise<void>;

const registerSession: RegisterSession = async (app, store, maxAge) => {
  await app.register(cookie as never);
  const settings = {
    secret: 'only for tests, and long enough for it',
    cookie: { secure: false, maxAge },
    store,
  };
  await app.register(fastifySession, { ...settings, saveUninitialized: false } as never);
};

/** How a host on Fastify logs in, to sessions that live for `maxAge` ms, or as long as the browser. */
export const fastifyLogins: Readonly<Record<LoginKind, (store: object, maxAge?: number) => FastifyLogin>> = {
  session: (store, maxAge) => ({
    register: (app) => registerSession(app, store, maxAge),
    logIn: ({ request }, uid) => {
      sessionOf(request).user = { uid };
    },
    uidIn: ({ request }) => sessionOf(request).user?.uid,
  }),
  passport: (store, maxAge) => {
    const authenticator = new Authenticator();
    authenticator.registerUserSerializer(async ({ uid }: { uid: string }) => Promise.resolve(uid));
    authenticator.registerUserDeserializer(async (uid) => Promise.resolve({ uid }));
    return {
      register: async (app) => {
        await registerSession(app, store, maxAge);
        await app.register(authenticator.initialize() as never);
        await app.register(authenticator.secureSession() as never);
      },
      logIn: ({ request }, uid) => request.logIn({ uid } as never),
      uidIn: ({ request }) => (request.user as { uid: string } | null | undefined)?.uid,
    };
  },
};
