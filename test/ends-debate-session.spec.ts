import { afterEach, beforeEach, describe, expect, it } from '@jest/globals';
import { Controller, Module, Post, Req, type INestApplication, type Type } from '@nestjs/common';
import { NestFactory } from '@nestjs/core';
import type { NestExpressApplication } from '@nestjs/platform-express';
import type { NextFunction, Request, Response } from 'express';
import session from 'express-session';
import type { DebateSpaceSimulator } from 'debate-space-simulator';
import { DebateSpaceModule, EndsDebateSession } from 'nestjs-debate-space';
import { startService, using } from './support/service.js';

@Controller()
class LogoutController {
  @Post('logout')
  @EndsDebateSession()
  logout(): string {
    return 'bye';
  }

  @Post('logout-fails')
  @EndsDebateSession()
  logoutFails(): never {
    throw new Error('still logged in');
  }

  @Post('logout-by-header')
  @EndsDebateSession({ uid: (request) => (request.headers as Record<string, string>)['x-user'] })
  logoutByHeader(): string {
    return 'bye';
  }

  @Post('logout-named')
  @EndsDebateSession({ name: 'youth' })
  logoutNamed(): string {
    return 'bye';
  }

  @Post('logout-session-too')
  @EndsDebateSession()
  async logoutSessionToo(@Req() request: Request): Promise<string> {
    request.session.user = { uid: 'alice' };
    await new Promise((resolve) => request.session.save(resolve));
    await new Promise((resolve) => request.session.destroy(resolve));
    return 'bye';
  }
}

let service: DebateSpaceSimulator;
let youth: DebateSpaceSimulator;
let app: INestApplication;
beforeEach(async () => {
  service = await startService();
  youth = await startService({ applicationName: 'youth' });
});
afterEach(async () => {
  await service.stop();
  await youth.stop();
});

async function start(imports: unknown[]): Promise<string> {
  @Module({ imports: imports as Type[], controllers: [LogoutController] })
  class App {}
  const express = await NestFactory.create<NestExpressApplication>(App, { logger: false });
  express.use(session({ secret: 'only for tests', resave: false, saveUninitialized: false }));
  // Stands for a JWT guard: the user is on the request, and in no session.
  express.use((request: Request, _: Response, next: NextFunction) => {
    if (request.query.as) Object.assign(request, { user: { sub: request.query.as } });
    next();
  });
  await express.listen(0, '127.0.0.1');
  app = express;
  return express.getUrl();
}

async function post(url: string, headers: Record<string, string> = {}): Promise<number> {
  const response = await fetch(url, { method: 'POST', headers });
  await response.text();
  return response.status;
}

describe('@EndsDebateSession()', () => {
  const cases = [
    { name: 'ends the session of request.user when the handler succeeds', path: '/logout?as=alice', status: 201, logouts: ['alice'] }, // prettier-ignore
    { name: 'stays silent when the handler fails', path: '/logout-fails?as=alice', status: 500, logouts: [] },
    { name: 'stays silent when nobody is logged in', path: '/logout', status: 201, logouts: [] },
    { name: 'takes the uid from where it is told', path: '/logout-by-header', status: 201, logouts: ['bob'] },
    { name: 'is one logout when the handler ends a session of the same user as well', path: '/logout-session-too?as=alice', status: 201, logouts: ['alice'] }, // prettier-ignore
  ];
  it.each(cases)('$name', async ({ path, status, logouts }) => {
    const url = await start([DebateSpaceModule.forRoot(using(service))]);
    expect(await post(url + path, { 'x-user': 'bob' })).toBe(status);
    await app.close();
    expect(service.received.logouts).toEqual(logouts);
  });

  it('tells the application of its name', async () => {
    const named = DebateSpaceModule.forRoot({ ...using(youth), name: 'youth' });
    const url = await start([DebateSpaceModule.forRoot(using(service)), named]);
    expect(await post(`${url}/logout-named?as=alice`)).toBe(201);
    await app.close();
    expect(youth.received.logouts).toEqual(['alice']);
    expect(service.received.logouts).toEqual([]);
  });

  it('leaves the handler alone when the module is missing', async () => {
    const url = await start([]);
    expect(await post(`${url}/logout?as=alice`)).toBe(201);
    await app.close();
  });
});
