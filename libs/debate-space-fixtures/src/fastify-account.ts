import cookie from '@fastify/cookie';
import fastifySession from '@fastify/session';
import { Controller, Get, Module, Post, Req, type DynamicModule, type Type } from '@nestjs/common';
import { NestFactory } from '@nestjs/core';
import { FastifyAdapter, type NestFastifyApplication } from '@nestjs/platform-fastify';
import { fastify, type FastifyInstance, type FastifyRequest } from 'fastify';
import type { Browser } from './browser.js';

interface Session {
  user?: { uid: string };
  destroy(): Promise<void>;
  regenerate(): Promise<void>;
}
/** What `request.session` is now; another one after `regenerate`. */
const sessionOf = (request: FastifyRequest): Session => request.session;

export const act = {
  login: (request: FastifyRequest): string => {
    sessionOf(request).user = { uid: (request.query as { uid: string }).uid };
    return 'done';
  },
  whoami: (request: FastifyRequest): string => sessionOf(request).user?.uid ?? 'nobody',
  logout: async (request: FastifyRequest): Promise<string> => {
    await sessionOf(request).destroy();
    return 'done';
  },
  renew: async (request: FastifyRequest): Promise<string> => {
    const { user } = sessionOf(request);
    await sessionOf(request).regenerate();
    if (user) sessionOf(request).user = user;
    return 'done';
  },
};

@Controller()
class AccountController {
  @Post('login')
  login(@Req() request: FastifyRequest): string {
    return act.login(request);
  }

  @Get('whoami')
  whoami(@Req() request: FastifyRequest): string {
    return act.whoami(request);
  }

  @Post('logout')
  logout(@Req() request: FastifyRequest): Promise<string> {
    return act.logout(request);
  }

  @Post('renew')
  renew(@Req() request: FastifyRequest): Promise<string> {
    return act.renew(request);
  }
}

/** The same without Nest. */
export function route(instance: FastifyInstance, at = ''): void {
  instance.post(`${at}/login`, async (request) => Promise.resolve(act.login(request)));
  instance.get(`${at}/whoami`, async (request) => Promise.resolve(act.whoami(request)));
  instance.post(`${at}/logout`, act.logout);
  instance.post(`${at}/renew`, act.renew);
}

export type Plugin = (instance: FastifyInstance) => Promise<void>;

/** The session plugin as a host registers it. */
export const sessionsIn =
  (store: object, cookieName = 'sessionId'): Plugin =>
  async (instance) => {
    await instance.register(cookie);
    const settings = { secret: 'only for tests, and long enough for it', cookie: { secure: false } };
    await instance.register(fastifySession, {
      ...settings,
      cookieName,
      store: store as never,
      saveUninitialized: false,
    });
  };

export const moduleOf = (ours: DynamicModule): Type => {
  @Module({ imports: [ours], controllers: [AccountController] })
  class App {}
  return App;
};

export async function appOf(
  ours: DynamicModule,
  main: (instance: FastifyInstance) => unknown = () => undefined,
  given: FastifyInstance = fastify({ forceCloseConnections: true }),
): Promise<NestFastifyApplication> {
  const adapter = new FastifyAdapter(given as never);
  const app = await NestFactory.create<NestFastifyApplication>(moduleOf(ours), adapter, {
    logger: false,
    abortOnError: false,
  });
  await main(app.getHttpAdapter().getInstance());
  return app;
}

/** Without a body, which not each of the instances can read. */
export async function post(browser: Browser, path: string): Promise<string> {
  return (await browser.fetch(path, { method: 'POST' })).text();
}
