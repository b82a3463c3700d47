import { describe, expect, it, jest } from '@jest/globals';
import { Controller, Logger, Module, Post, Req, type Type } from '@nestjs/common';
import { NestFactory } from '@nestjs/core';
import type { NestExpressApplication } from '@nestjs/platform-express';
import type { NextFunction, Request, Response } from 'express';
import session from 'express-session';
import { DebateSpaceModule, EndsDebateSession } from 'nestjs-debate-space';
import { FlakyStorage } from '#support/storages/flaky-storage.js';
import { scenario } from '#support/hosts/scenario.js';
import { using } from '#support/service/service.js';

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

  @Post('logout-by-promise')
  @EndsDebateSession({ uid: (() => Promise.resolve('alice')) as never })
  logoutByPromise(): string {
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

const scene = scenario();

async function start(imports: unknown[]): Promise<string> {
  @Module({ imports: imports as Type[], controllers: [LogoutController] })
  class App {}
  const express = await scene.apps.add(NestFactory.create<NestExpressApplication>(App, { logger: false }));
  express.use(session({ secret: 'only for tests', resave: false, saveUninitialized: false }));
  // Stands for a JWT guard: the user is on the request, and in no session.
  express.use((request: Request, _: Response, next: NextFunction) => {
    if (request.query.as) Object.assign(request, { user: { sub: request.query.as } });
    if (request.query.is) Object.assign(request, { user: request.query.is });
    next();
  });
  await express.listen(0, '127.0.0.1');
  return express.getUrl();
}

async function post(url: string, headers: Record<string, string> = {}): Promise<number> {
  const response = await fetch(url, { method: 'POST', headers });
  await response.text();
  return response.status;
}

describe('@EndsDebateSession()', () => {
  const cases = [
    {
      name: 'ends the session of request.user when the handler succeeds',
      path: '/logout?as=alice',
      status: 201,
      logouts: ['alice'],
    },
    { name: 'stays silent when the handler fails', path: '/logout-fails?as=alice', status: 500, logouts: [] },
    { name: 'stays silent when nobody is logged in', path: '/logout', status: 201, logouts: [] },
    {
      name: 'stays silent when its uid function returns a promise, and the handler is left alone',
      path: '/logout-by-promise',
      status: 201,
      logouts: [],
    },
    { name: 'takes the uid from its uid function', path: '/logout-by-header', status: 201, logouts: ['bob'] },
    {
      name: 'is one logout when the handler ends a session of the same user as well',
      path: '/logout-session-too?as=alice',
      status: 201,
      logouts: ['alice'],
    },
  ];
  it.each(cases)('$name', async ({ path, status, logouts }) => {
    const url = await start([DebateSpaceModule.forRoot(using(scene.service))]);
    expect(await post(url + path, { 'x-user': 'bob' })).toBe(status);
    expect(await scene.logouts()).toEqual(logouts);
  });

  it.each([
    ['["alice"]', 'the uid of its user is the text of a JSON array'],
    ['{"username":"alice"}', 'its user has no uid, id, sub, userId or _id'],
    ['', undefined],
  ])('warns once, without a value, of the user %j, whose uid cannot be found: %s', async (user, problem) => {
    const url = await start([DebateSpaceModule.forRoot(using(scene.service))]);
    const warn = jest.fn();
    Logger.overrideLogger({ log: () => undefined, error: () => undefined, warn });
    for (let round = 0; round < 2; round += 1) expect(await post(`${url}/logout?is=${user}`)).toBe(201);
    Logger.overrideLogger(false);
    expect(await scene.logouts()).toEqual([]);
    const lines = warn.mock.calls.map(([line]) => String(line)).filter((line) => line.startsWith('@Ends'));
    const expected = `@EndsDebateSession() on LogoutController: ${problem ?? ''}; give { uid }`;
    expect(lines).toEqual(problem === undefined ? [] : [expected]);
  });

  it('does not wait for a storage that never answers', async () => {
    const flaky = new FlakyStorage();
    const storage = flaky.engineWith(await scene.sqlite());
    const url = await start([DebateSpaceModule.forRoot(using(scene.service, { storage }))]);
    flaky.state = 'silent';
    expect(await post(`${url}/logout?as=alice`)).toBe(201);
  });

  it('reports to the application of its name', async () => {
    const youth = await scene.startService({ applicationName: 'youth' });
    const named = DebateSpaceModule.forRoot({ ...using(youth), name: 'youth' });
    const url = await start([DebateSpaceModule.forRoot(using(scene.service)), named]);
    expect(await post(`${url}/logout-named?as=alice`)).toBe(201);
    expect(await scene.logouts()).toEqual([]);
    expect(youth.received.logouts).toEqual(['alice']);
  });

  it('leaves the handler alone when the module is missing, and says so in the log', async () => {
    const url = await start([]);
    const error = jest.fn();
    Logger.overrideLogger({ log: () => undefined, error, warn: () => undefined });
    expect(await post(`${url}/logout?as=alice`)).toBe(201);
    Logger.overrideLogger(false);
    const [[line] = []] = error.mock.calls;
    expect(line).toMatch(/^@EndsDebateSession\(\) could not report an end .*is DebateSpaceModule imported/);
  });
});
