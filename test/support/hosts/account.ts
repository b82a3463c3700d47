import cookie from '@fastify/cookie';
import fastifySession from '@fastify/session';
import {
  All,
  Controller,
  Module,
  Param,
  Req,
  type DynamicModule,
  type INestApplication,
  type MiddlewareConsumer,
  type NestModule,
  type Type,
} from '@nestjs/common';
import { NestFactory } from '@nestjs/core';
import { ExpressAdapter, type NestExpressApplication } from '@nestjs/platform-express';
import { FastifyAdapter, type NestFastifyApplication } from '@nestjs/platform-fastify';
import express, { Router, type RequestHandler } from 'express';
import { fastify, type FastifyInstance } from 'fastify';
import type { Browser } from '../browser/browser.js';
import { called } from './session-jobs.js';

export type Import = DynamicModule | Type;

type Done = (error?: unknown) => void;
/** As it is on both platforms. */
interface AccountRequest {
  readonly query: { readonly uid: string };
  /** Another one after `regenerate`. */
  readonly session: { user?: { uid: string }; destroy(done: Done): void; regenerate(done: Done): void };
}

/** What each account has a route for. */
const acts: Readonly<Record<string, (request: AccountRequest) => string | Promise<string>>> = {
  login: ({ session, query: { uid } }) => {
    session.user = { uid };
    return 'done';
  },
  whoami: ({ session }) => session.user?.uid ?? 'nobody',
  logout: async ({ session }) => {
    await called((done) => {
      session.destroy(done);
    });
    return 'done';
  },
  renew: async (request) => {
    const { user } = request.session;
    await called((done) => {
      request.session.regenerate(done);
    });
    if (user) request.session.user = user;
    return 'done';
  },
};

@Controller(['', 'admin'])
export class AccountController {
  @All(':act')
  act(@Param('act') name: string, @Req() request: AccountRequest): unknown {
    return acts[name]?.(request);
  }
}

/** The same on Express without Nest. */
export function routes(sessions: RequestHandler): Router {
  const router = Router().use(sessions);
  for (const [name, act] of Object.entries(acts))
    router.all(`/${name}`, async (request, response) => {
      response.end(await act(request as unknown as AccountRequest));
    });
  return router;
}

/** The same on Fastify without Nest. */
export function route(instance: FastifyInstance, at = ''): void {
  for (const [name, act] of Object.entries(acts))
    instance.all(`${at}/${name}`, async (request) => act(request as unknown as AccountRequest));
}

/** A module of the host, which mounts its session middleware if it has one. */
export function moduleOf(imports: Import[], sessions?: RequestHandler, controllers: Type[] = []): Type {
  @Module({ imports, controllers })
  class HostModule implements NestModule {
    configure(consumer: MiddlewareConsumer): void {
      if (sessions) consumer.apply(sessions).forRoutes('*path');
    }
  }
  return HostModule;
}

const settings = { logger: false, abortOnError: false } as const;

export async function expressApp(
  imports: Import[],
  mount: (app: NestExpressApplication) => void = () => undefined,
  root = moduleOf(imports, undefined, [AccountController]),
  instance = express(),
): Promise<INestApplication> {
  const app = await NestFactory.create<NestExpressApplication>(root, new ExpressAdapter(instance), settings);
  mount(app);
  return app;
}

export async function fastifyApp(
  imports: Import[],
  main: (instance: FastifyInstance) => unknown = () => undefined,
  given: FastifyInstance = fastify({ forceCloseConnections: true }),
  root = moduleOf(imports, undefined, [AccountController]),
): Promise<INestApplication> {
  const adapter = new FastifyAdapter(given as never);
  const app = await NestFactory.create<NestFastifyApplication>(root, adapter, settings);
  await main(app.getHttpAdapter().getInstance());
  return app;
}

/** What express-session needs beside its store. */
export const sessionSettings = { secret: 'only for tests', resave: false, saveUninitialized: false };

export type Plugin = (instance: FastifyInstance) => Promise<void>;

/** The session plugin as a host registers it. */
export const sessionsIn =
  (store: object, cookieName = 'sessionId'): Plugin =>
  async (instance) => {
    await instance.register(cookie);
    await instance.register(fastifySession, {
      secret: 'only for tests, and long enough for it',
      cookie: { secure: false },
      cookieName,
      store: store as never,
      saveUninitialized: false,
    });
  };

/** Without a body, which not each of the instances can read. */
export async function post(browser: Browser, path: string): Promise<string> {
  return (await browser.fetch(path, { method: 'POST' })).text();
}
