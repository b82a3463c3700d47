// One host process for the benchmark: a trivial route behind express-session, with or without the plugin.
import 'reflect-metadata';
import { Controller, Get, Module, Post, Req } from '@nestjs/common';
import { NestFactory } from '@nestjs/core';
import session from 'express-session';
import { DebateSpaceModule } from 'nestjs-debate-space';

const withPlugin = process.argv[2] === 'with';

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
const route = (decorator, method) =>
  decorator(
    HostController.prototype,
    method,
    Object.getOwnPropertyDescriptor(HostController.prototype, method),
  );
Controller()(HostController);
route(Get('hello'), 'hello');
route(Post('login'), 'login');
Req()(HostController.prototype, 'login', 0);

class HostModule {}
const keys = {
  apiKey: 'an-api-key',
  secretKey: 'a secret key that is long enough for HS256',
  applicationName: 'demo',
};
const plugin = DebateSpaceModule.forRoot({ ...keys, authUrl: 'http://127.0.0.1:9' });
Module({ imports: withPlugin ? [plugin] : [], controllers: [HostController] })(HostModule);

const app = await NestFactory.create(HostModule, { logger: false });
app.use(session({ secret: 'only for benchmarks', resave: false, saveUninitialized: false }));
await app.listen(0, '127.0.0.1');
process.send({ url: await app.getUrl() });
