import { expect, it } from '@jest/globals';
import { Controller, Get, Param, Post, Req, Res } from '@nestjs/common';
import session from 'express-session';
import { DebateSpaceModule, EndsDebateSession } from 'nestjs-debate-space';
import {
  expressApp,
  fastifyApp,
  moduleOf,
  post,
  sessionSettings,
  sessionsIn,
} from '#support/hosts/account.js';
import { Browser } from '#support/browser/browser.js';
import { scenario } from '#support/hosts/scenario.js';
import { using } from '#support/service/service.js';

/** As they are on both platforms. */
interface Request {
  readonly headers: { readonly cookie?: string };
  readonly session: { user?: { uid: string }; destroy(callback: () => void): void };
}
interface Response {
  header(name: string, value: string): unknown;
}

/** Two logins of alice: a session in a store, and a cookie that remembers her – not signed, for that is not tested here. */
@Controller()
class TwoLoginsController {
  @Post('login')
  login(@Req() request: Request, @Res({ passthrough: true }) response: Response): void {
    request.session.user = { uid: 'alice' };
    response.header('Set-Cookie', 'remember=alice; Path=/');
  }

  @Get('whoami')
  whoami(@Req() { session: own, headers }: Request): string {
    const isRemembered = headers.cookie?.includes('remember') === true;
    return [...(own.user ? ['by session'] : []), ...(isRemembered ? ['by cookie'] : [])].join();
  }

  @Post('leave/:what')
  async leave(
    @Param('what') what: string,
    @Req() request: Request,
    @Res({ passthrough: true }) response: Response,
  ): Promise<void> {
    if (what.includes('cookie')) response.header('Set-Cookie', 'remember=; Path=/; Max-Age=0');
    if (what.includes('session'))
      await new Promise<void>((resolve) => {
        request.session.destroy(resolve);
      });
  }

  @Post('explicitly/:what')
  @EndsDebateSession({ uid: () => 'alice' })
  leaveExplicitly(
    @Param('what') what: string,
    @Req() request: Request,
    @Res({ passthrough: true }) response: Response,
  ): Promise<void> {
    return this.leave(what, request, response);
  }
}

const platforms = {
  Express: (root: ReturnType<typeof moduleOf>) =>
    expressApp([], (app) => app.use(session(sessionSettings)), root),
  Fastify: (root: ReturnType<typeof moduleOf>) =>
    fastifyApp([], sessionsIn(new session.MemoryStore()), undefined, root),
};
const scene = scenario();

const requests = [
  { paths: ['/leave/session-cookie'], left: '', reported: 1 },
  { paths: ['/explicitly/session-cookie'], left: '', reported: 1 },
  { paths: ['/explicitly/session'], left: 'by cookie', reported: 1 },
  { paths: ['/explicitly/cookie'], left: 'by session', reported: 1 },
  { paths: ['/leave/session', '/leave/cookie'], left: '', reported: 2 },
];
const names = Object.keys(platforms) as (keyof typeof platforms)[];

it.each(names.flatMap((platform) => requests.map((request) => ({ platform, ...request }))))(
  'two logins of one user that $paths ends on $platform are reported $reported time(s)',
  async ({ platform, paths, left, reported }) => {
    const cookies = [{ name: 'remember', uid: (value: string) => value }];
    const ours = DebateSpaceModule.forRoot(using(scene.service, { session: { cookies } }));
    const root = moduleOf([ours], undefined, [TwoLoginsController]);
    const browser = new Browser(await scene.apps.listen(platforms[platform](root)));
    await post(browser, '/login');
    expect(await browser.get('/whoami')).toBe('by session,by cookie');
    for (const path of paths) await post(browser, path);
    expect(await browser.get('/whoami')).toBe(left);
    expect(await scene.logouts()).toEqual(Array(reported).fill('alice'));
  },
);
