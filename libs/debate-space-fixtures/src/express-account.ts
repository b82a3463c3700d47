import {
  Controller,
  Get,
  Module,
  Post,
  Req,
  type DynamicModule,
  type INestApplication,
  type MiddlewareConsumer,
  type NestModule,
  type Type,
} from '@nestjs/common';
import { NestFactory } from '@nestjs/core';
import { ExpressAdapter, type NestExpressApplication } from '@nestjs/platform-express';
import express, { Router, type Request, type RequestHandler } from 'express';
import './session-host.js'; // says what a session of the tests holds

export type Import = DynamicModule | Type;

export const settings = { secret: 'only for tests', resave: false, saveUninitialized: false };

const act = {
  login: (request: Request): void => {
    request.session.user = { uid: request.query.uid as string };
  },
  whoami: (request: Request): string => request.session.user?.uid ?? 'nobody',
  logout: (request: Request): Promise<void> =>
    new Promise((resolve) =>
      request.session.destroy(() => {
        resolve();
      }),
    ),
};

@Controller(['', 'admin'])
export class AccountController {
  @Post('login')
  login(@Req() request: Request): void {
    act.login(request);
  }

  @Get('whoami')
  whoami(@Req() request: Request): string {
    return act.whoami(request);
  }

  @Post('logout')
  logout(@Req() request: Request): Promise<void> {
    return act.logout(request);
  }
}

/** The same without Nest. */
export const routes = (sessions: RequestHandler): Router =>
  Router()
    .use(sessions)
    .post('/login', (request, response) => {
      act.login(request);
      response.end();
    })
    .get('/whoami', (request, response) => {
      response.end(act.whoami(request));
    })
    .post('/logout', async (request, response) => {
      await act.logout(request);
      response.end();
    });

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

export async function appOf(
  imports: Import[],
  mount: (app: NestExpressApplication) => void = () => undefined,
  root = moduleOf(imports, undefined, [AccountController]),
  instance = express(),
): Promise<INestApplication> {
  const adapter = new ExpressAdapter(instance);
  const app = await NestFactory.create<NestExpressApplication>(root, adapter, {
    logger: false,
    abortOnError: false,
  });
  mount(app);
  return app;
}
