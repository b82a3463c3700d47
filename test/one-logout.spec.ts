import { afterEach, beforeEach, describe, expect, it } from '@jest/globals';
import { Controller, Get, Header, Module, Post, Req, type INestApplication, type Type } from '@nestjs/common';
import { NestFactory } from '@nestjs/core';
import type { NestExpressApplication } from '@nestjs/platform-express';
import { FastifyAdapter, type NestFastifyApplication } from '@nestjs/platform-fastify';
import session from 'express-session';
import type { DebateSpaceSimulator } from 'debate-space-simulator';
import { DebateSpaceModule, EndsDebateSession } from 'nestjs-debate-space';
import { Browser } from 'debate-space-fixtures/browser.js';
import { settings } from 'debate-space-fixtures/express-account.js';
import { sessionsIn } from 'debate-space-fixtures/fastify-account.js';
import { RunningApps } from 'debate-space-fixtures/running-apps.js';
import { startService, using } from 'debate-space-fixtures/service.js';

/** As it is on both platforms. */
interface Request {
  readonly headers: { readonly cookie?: string };
  readonly session: { user?: { uid: string }; destroy(callback: () => void): void };
}
const destroy = (request: Request): Promise<void> =>
  new Promise((resolve) => {
    request.session.destroy(resolve);
  });

/** Two logins of one user: a session in a store, and a cookie that remembers them – not signed, for it is not tested here. */
@Controller()
class TwoLoginsController {
  @Post('login')
  @Header('Set-Cookie', 'remember=alice; Path=/')
  login(@Req() request: Request): void {
    request.session.user = { uid: 'alice' };
  }

  @Get('whoami')
  whoami(@Req() { session, headers }: Request): string {
    return [session.user && 'by session', headers.cookie?.includes('remember') && 'by cookie']
      .filter(Boolean)
      .join(', ');
  }

  @Post('session-and-cookie')
  @Header('Set-Cookie', 'remember=; Path=/; Max-Age=0')
  leaveBoth(@Req() request: Request): Promise<void> {
    return destroy(request);
  }

  @Post('session-and-cookie-and-decorator')
  @Header('Set-Cookie', 'remember=; Path=/; Max-Age=0')
  @EndsDebateSession({ uid: () => 'alice' })
  leaveExplicitly(@Req() request: Request): Promise<void> {
    return destroy(request);
  }

  @Post('session-and-decorator')
  @EndsDebateSession({ uid: () => 'alice' })
  leaveSessionExplicitly(@Req() request: Request): Promise<void> {
    return destroy(request);
  }

  @Post('cookie-and-decorator')
  @Header('Set-Cookie', 'remember=; Path=/; Max-Age=0')
  @EndsDebateSession({ uid: () => 'alice' })
  leaveCookieExplicitly(): void {
    // the header does it
  }

  @Post('session')
  leaveSession(@Req() request: Request): Promise<void> {
    return destroy(request);
  }

  @Post('cookie')
  @Header('Set-Cookie', 'remember=; Path=/; Max-Age=0')
  leaveCookie(): void {
    // the header does it
  }
}

const platforms: { readonly platform: string; readonly create: (root: Type) => Promise<INestApplication> }[] =
  [
    {
      platform: 'Express',
      create: async (root) => {
        const app = await NestFactory.create<NestExpressApplication>(root, { logger: false });
        return app.use(session(settings));
      },
    },
    {
      platform: 'Fastify',
      create: async (root) => {
        const app = await NestFactory.create<NestFastifyApplication>(root, new FastifyAdapter(), {
          logger: false,
        });
        await sessionsIn(new session.MemoryStore())(app.getHttpAdapter().getInstance());
        return app;
      },
    },
  ];

let service: DebateSpaceSimulator;
const apps = new RunningApps();
beforeEach(async () => {
  service = await startService();
});
afterEach(async () => {
  await apps.close();
  await service.stop();
});

const requests = [
  { paths: ['/session-and-cookie'], left: '', told: 1 },
  { paths: ['/session-and-cookie-and-decorator'], left: '', told: 1 },
  { paths: ['/session-and-decorator'], left: 'by cookie', told: 1 },
  { paths: ['/cookie-and-decorator'], left: 'by session', told: 1 },
  { paths: ['/session', '/cookie'], left: '', told: 2 },
];
const cells = platforms.flatMap((platform) => requests.map((request) => ({ ...platform, ...request })));

describe('two logins of one user', () => {
  it.each(cells)(
    'on $platform, ended by $paths, are reported $told time(s)',
    async ({ create, paths, left, told }) => {
      const cookies = [{ name: 'remember', uid: (value: string) => value }];
      @Module({
        imports: [DebateSpaceModule.forRoot(using(service, { session: { cookies } }))],
        controllers: [TwoLoginsController],
      })
      class App {}
      const browser = new Browser(await apps.listen(create(App)));
      await browser.post('/login');
      expect(await browser.get('/whoami')).toBe('by session, by cookie');
      for (const path of paths) await browser.post(path);
      expect(await browser.get('/whoami')).toBe(left);
      await apps.close();
      expect(service.received.logouts).toEqual(Array(told).fill('alice'));
    },
  );
});
