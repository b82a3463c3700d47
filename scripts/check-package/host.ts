// A host as its team would write it: three values, express-session, and no further line for the debate space.
import 'reflect-metadata';
import { Controller, Get, Module, Post, Req } from '@nestjs/common';
import { NestFactory } from '@nestjs/core';
import { DebateSpaceSimulator } from 'debate-space-simulator';
import session from 'express-session';
import { DebateSpaceModule, DebateSpaceService, type UserPage } from 'nestjs-debate-space';

const keys = {
  apiKey: 'an-api-key',
  secretKey: 'a secret key that is long enough for HS256',
  applicationName: 'demo',
};

interface SessionRequest {
  session: { user?: string; destroy(callback: () => void): void };
}

@Controller()
class HostController {
  constructor(private readonly debateSpace: DebateSpaceService) {}

  @Post('login')
  login(@Req() request: SessionRequest): string {
    request.session.user = 'alice';
    return 'hello';
  }

  @Post('logout')
  async logout(@Req() request: SessionRequest): Promise<string> {
    await new Promise<void>((resolve) => {
      request.session.destroy(resolve);
    });
    return 'bye';
  }

  @Get('users')
  async users(): Promise<UserPage> {
    return this.debateSpace.listUsers({ perPage: 10 });
  }
}

@Module({ imports: [DebateSpaceModule.forRoot(keys)], controllers: [HostController] })
class HostModule {}

async function main(): Promise<void> {
  const service = await DebateSpaceSimulator.start({ ...keys, users: [{ uid: 'alice' }] });
  process.env.DEBATE_SPACE_AUTH_URL = service.url;
  service.debate.signIn('alice');
  const app = await NestFactory.create(HostModule, { logger: ['error', 'warn'] });
  app.use(session({ secret: 'only for tests', resave: false, saveUninitialized: false }));
  await app.listen(0, '127.0.0.1');
  const url = await app.getUrl();

  const login = await fetch(`${url}/login`, { method: 'POST' });
  const cookie = login.headers.getSetCookie().join('; ').split(';')[0] ?? '';
  await fetch(`${url}/logout`, { method: 'POST', headers: { cookie } });
  await service.received.waitFor('logout');
  const page = (await (await fetch(`${url}/users`)).json()) as UserPage;
  await app.close();
  await service.stop();

  const logouts = service.received.logouts.join();
  if (logouts !== 'alice' || service.debate.isSignedIn('alice'))
    throw new Error(`logged out were: ${logouts}`);
  if (page.users.length !== 1) throw new Error(`${page.users.length} users were listed`);
}

void main().catch((error: unknown) => {
  console.error(error);
  process.exitCode = 1;
});
