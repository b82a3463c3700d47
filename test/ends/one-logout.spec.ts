import { describe, expect, it } from '@jest/globals';
import { Controller, Get, Header, Module, Post, Req, type INestApplication, type Type } from '@nestjs/common';
import { NestFactory } from '@nestjs/core';
import type { NestExpressApplication } from '@nestjs/platform-express';
import { FastifyAdapter, type NestFastifyApplication } from '@nestjs/platform-fastify';
import session from 'express-session';
import { DebateSpaceModule, EndsDebateSession } from 'nestjs-debate-space';
import { sessionSettings, sessionsIn } from '#support/hosts/account.js';
import { Browser } from '#support/browser/browser.js';
import { scenario } from '#support/hosts/scenario.js';
import { using } from '#support/service/service.js';

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
        return app.use(session(sessionSettings));
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

const scene = scenario();

const requests = [
  { paths: ['/session-and-cookie'], left: '', reported: 1 },
  { paths: ['/session-and-cookie-and-decorator'], left: '', reported: 1 },
  { paths: ['/session-and-decorator'], left: 'by cookie', reported: 1 },
  { paths: ['/cookie-and-decorator'], left: 'by session', reported: 1 },
  { paths: ['/session', '/cookie'], left: '', reported: 2 },
];
const cases = platforms.flatMap((platform) => requests.map((request) => ({ ...platform, ...request })));

describe('two logins of one user', () => {
  it.each(cases)(
    'on $platform, ended by $paths, are reported $reported time(s)',
    async ({ create, paths, left, reported }) => {
      const cookies = [{ name: 'remember', uid: (value: string) => value }];
      @Module({
        imports: [DebateSpaceModule.forRoot(using(scene.service, { session: { cookies } }))],
        controllers: [TwoLoginsController],
      })
      class App {}
      const browser = new Browser(await scene.apps.listen(create(App)));
      await browser.post('/login');
      expect(await browser.get('/whoami')).toBe('by session, by cookie');
      for (const path of paths) await browser.post(path);
      expect(await browser.get('/whoami')).toBe(left);
      expect(await scene.logouts()).toEqual(Array(reported).fill('alice'));
    },
  );
});
