// One host process for the benchmark: a trivial route behind a session library, with or without the plugin.
import 'reflect-metadata';
import type { Server } from 'node:http';
import type { INestApplication } from '@nestjs/common';
import { Controller, Get, HttpCode, Module, Post, Req } from '@nestjs/common';
import { NestFactory } from '@nestjs/core';
import type { NestFastifyApplication } from '@nestjs/platform-fastify';
import { DebateSpaceModule } from 'nestjs-debate-space';
import { startProfile, type OwnShare } from './own-frames.js';

const [kind, platform] = process.argv.slice(2);
const secret = 'only for benchmarks, and long enough for it';

export type Platform = 'express' | 'fastify';

@Controller()
class HostController {
  @Get('hello')
  hello(): string {
    return 'hello';
  }

  @Post('login')
  @HttpCode(200)
  login(@Req() request: { readonly session: { user?: string } }): string {
    request.session.user = 'alice';
    return 'hello alice';
  }
}

const keys = {
  apiKey: 'an-api-key',
  secretKey: 'a secret key that is long enough for HS256',
  applicationName: 'demo',
};
// Where nobody listens: what is measured is the host, not the service.
const plugin = DebateSpaceModule.forRoot({ ...keys, authUrl: 'http://127.0.0.1:9' });

@Module({ imports: kind === 'with' ? [plugin] : [], controllers: [HostController] })
class HostModule {}

const start: Readonly<Record<Platform, () => Promise<INestApplication>>> = {
  express: async () => {
    const { default: session } = await import('express-session');
    const app = await NestFactory.create(HostModule, { logger: false });
    app.use(session({ secret, resave: false, saveUninitialized: false }));
    return app;
  },
  fastify: async () => {
    const { FastifyAdapter } = await import('@nestjs/platform-fastify');
    const { default: cookie } = await import('@fastify/cookie');
    const { default: session } = await import('@fastify/session');
    const adapter = new FastifyAdapter();
    const app = await NestFactory.create<NestFastifyApplication>(HostModule, adapter, { logger: false });
    await app.register(cookie);
    await app.register(session, { secret, cookie: { secure: false }, saveUninitialized: false });
    return app;
  },
};
const app = await start[platform as Platform]();
await app.listen(0, '127.0.0.1');
// A busy machine may stall a browser for longer than Node.js keeps an idle connection.
(app.getHttpServer() as Server).keepAliveTimeout = 60_000;
let stopProfile: (() => Promise<OwnShare>) | undefined;
const answers = {
  /** In µs, of this process in user and system. */
  cpu: () => {
    const { user, system } = process.cpuUsage();
    return user + system;
  },
  profile: async () => {
    stopProfile = await startProfile();
    return true;
  },
  profiled: () => stopProfile?.(),
};
process.on('message', (question: keyof typeof answers) => {
  void Promise.resolve(answers[question]()).then((answer) => process.send?.(answer));
});
process.once('disconnect', () => process.exit());
process.send?.({ url: await app.getUrl() });
