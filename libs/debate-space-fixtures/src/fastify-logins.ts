import cookie from '@fastify/cookie';
import { Authenticator } from '@fastify/passport';
import fastifySession from '@fastify/session';
import type { NestFastifyApplication } from '@nestjs/platform-fastify';
import { sessionOf, type FastifyStore, type LoginKind } from './fastify-endings/ending.js';
import type { FastifyLogin } from './fastify-host.js';

async function registerSession(app: NestFastifyApplication, store: FastifyStore): Promise<void> {
  await app.register(cookie as never);
  const settings = { secret: 'only for tests, and long enough for it', cookie: { secure: false }, store };
  await app.register(fastifySession, { ...settings, saveUninitialized: false } as never);
}

/** How a host on Fastify logs in. */
export const fastifyLogins: Readonly<Record<LoginKind, (store: FastifyStore) => FastifyLogin>> = {
  session: (store) => ({
    register: (app) => registerSession(app, store),
    logIn: ({ request }, uid) => {
      sessionOf(request).user = { uid };
    },
    uidIn: ({ request }) => sessionOf(request).user?.uid,
  }),
  passport: (store) => {
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
