// One process for the benchmark with three apps, each a trivial route behind a session library: without the plugin, without
// it once more – the control –, and with it.
import 'reflect-metadata';
import type { Server } from 'node:http';
import { Module, type INestApplication } from '@nestjs/common';
import { NestFactory } from '@nestjs/core';
import type { NestFastifyApplication } from '@nestjs/platform-fastify';
import { DebateSpaceModule } from 'nestjs-debate-space';
import { keys, sessionSecret as secret } from './bench-keys.js';
import { HelloController } from './hello.controller.js';

export type Platform = 'express' | 'fastify';

@Module({ controllers: [HelloController] })
class PlainModule {}

// Where nobody listens: what is measured is the host, not the service.
const plugin = DebateSpaceModule.forRoot({ ...keys, applicationName: 'demo', authUrl: 'http://127.0.0.1:9' });

@Module({ imports: [plugin], controllers: [HelloController] })
class HostModule {}

const start: Readonly<Record<Platform, (module: object) => Promise<INestApplication>>> = {
  express: async (module) => {
    const { default: session } = await import('express-session');
    const app = await NestFactory.create(module, { logger: false });
    app.use(session({ secret, resave: false, saveUninitialized: false }));
    return app;
  },
  fastify: async (module) => {
    const { FastifyAdapter } = await import('@nestjs/platform-fastify');
    const { default: cookie } = await import('@fastify/cookie');
    const { default: session } = await import('@fastify/session');
    const app = await NestFactory.create<NestFastifyApplication>(module, new FastifyAdapter(), {
      logger: false,
    });
    await app.register(cookie);
    await app.register(session, { secret, cookie: { secure: false }, saveUninitialized: false });
    return app;
  },
};
const urls: string[] = [];
for (const module of [PlainModule, PlainModule, HostModule]) {
  const app = await start[process.argv[2] as Platform](module);
  await app.listen(0, '127.0.0.1');
  // A busy machine may stall a browser for longer than Node.js keeps an idle connection.
  (app.getHttpServer() as Server).keepAliveTimeout = 60_000;
  urls.push(await app.getUrl());
}
/** The CPU time of this process, user and system, in µs. */
process.on('message', () => {
  const { user, system } = process.cpuUsage();
  process.send?.(user + system);
});
process.once('disconnect', () => process.exit());
process.send?.({ urls });
