// One host process for the benchmark: a trivial route behind a session library, with or without the plugin.
import 'reflect-metadata';
import type { Server } from 'node:http';
import type { INestApplication } from '@nestjs/common';
import { Module } from '@nestjs/common';
import { NestFactory } from '@nestjs/core';
import type { NestFastifyApplication } from '@nestjs/platform-fastify';
import { DebateSpaceModule } from 'nestjs-debate-space';
import { keys, sessionSecret as secret } from './bench-keys.js';
import { HelloController } from './hello.controller.js';
import { startProfile, type OwnShare } from './own-frames.js';

const [kind, platform] = process.argv.slice(2);

export type Platform = 'express' | 'fastify';

// Where nobody listens: what is measured is the host, not the service.
const plugin = DebateSpaceModule.forRoot({ ...keys, applicationName: 'demo', authUrl: 'http://127.0.0.1:9' });

@Module({ imports: kind === 'with' ? [plugin] : [], controllers: [HelloController] })
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
