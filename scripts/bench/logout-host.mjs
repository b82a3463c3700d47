// One host process for the benchmark of the logout: sessions in a MemoryStore, and the plugin with one of its storages;
// or no plugin; or a handler that tells the service itself and waits for it.
import 'reflect-metadata';
import { Controller, Get, HttpCode, Module, Post, Req } from '@nestjs/common';
import { NestFactory } from '@nestjs/core';
import session from 'express-session';
import { DebateSpaceModule } from 'nestjs-debate-space';
import { storageOptions } from '../test-crash/engines.mjs';

const [kind, serviceUrl, applicationName, place] = process.argv.slice(2);

class HostController {
  hello() {
    return 'hello';
  }

  login(request) {
    request.session.user = 'alice';
    return 'hello alice';
  }

  async logout(request) {
    await new Promise((resolve) => request.session.destroy(resolve));
    if (kind === 'by hand') {
      const response = await fetch(serviceUrl, { method: 'POST', body: 'logout_token=abc' });
      await response.text();
    }
    return 'bye';
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
route('logout', Post('logout'), HttpCode(200));
for (const method of ['login', 'logout']) Req()(HostController.prototype, method, 0);

const plugin = async () =>
  DebateSpaceModule.forRoot({
    apiKey: 'an-api-key',
    secretKey: 'a secret key that is long enough for HS256',
    applicationName,
    authUrl: new URL('/auth', serviceUrl).href,
    ...(await storageOptions({ engine: kind, place })),
  });
class HostModule {}
const imports = ['no plugin', 'by hand'].includes(kind) ? [] : [await plugin()];
Module({ imports, controllers: [HostController] })(HostModule);

const app = await NestFactory.create(HostModule, { logger: false });
const secret = 'only for benchmarks, and long enough for it';
app.use(session({ secret, resave: false, saveUninitialized: false }));
await app.listen(0, '127.0.0.1');
process.once('disconnect', () => process.exit());
process.send({ url: await app.getUrl() });
