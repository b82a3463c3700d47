// One host process for the benchmark: a trivial route behind a session library, with or without the plugin.
import 'reflect-metadata';
import { Controller, Get, HttpCode, Module, Post, Req } from '@nestjs/common';
import { NestFactory } from '@nestjs/core';
import { DebateSpaceModule } from 'nestjs-debate-space';
import { startProfile } from './own-frames.mjs';

const [kind, platform] = process.argv.slice(2);
const secret = 'only for benchmarks, and long enough for it';

class HostController {
  hello() {
    return 'hello';
  }

  login(request) {
    request.session.user = 'alice';
    return 'hello alice';
  }
}
// Decorators by hand: this file runs as it stands, without a compiler.
const route = (method, ...decorators) => {
  const descriptor = Object.getOwnPropertyDescriptor(HostController.prototype, method);
  for (const decorator of decorators) decorator(HostController.prototype, method, descriptor);
};
Controller()(HostController);
route('hello', Get('hello'));
route('login', Post('login'), HttpCode(200));
Req()(HostController.prototype, 'login', 0);

class HostModule {}
const keys = {
  apiKey: 'an-api-key',
  secretKey: 'a secret key that is long enough for HS256',
  applicationName: 'demo',
};
// Where nobody listens: what is measured is the host, not the service.
const plugin = DebateSpaceModule.forRoot({ ...keys, authUrl: 'http://127.0.0.1:9' });
Module({ imports: kind === 'with' ? [plugin] : [], controllers: [HostController] })(HostModule);

const start = {
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
    const app = await NestFactory.create(HostModule, new FastifyAdapter(), { logger: false });
    await app.register(cookie);
    await app.register(session, { secret, cookie: { secure: false }, saveUninitialized: false });
    return app;
  },
};
const app = await start[platform]();
await app.listen(0, '127.0.0.1');
let stopProfile;
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
  profiled: () => stopProfile(),
};
process.on('message', async (question) => process.send(await answers[question]()));
process.once('disconnect', () => process.exit());
process.send({ url: await app.getUrl() });
