import { Controller, Module, Post, Res } from '@nestjs/common';
import { expect, it } from '@jest/globals';
import { NestFactory } from '@nestjs/core';
import { ExpressAdapter } from '@nestjs/platform-express';
import express, { type Response } from 'express';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { DebateSpaceModule } from 'nestjs-debate-space';
import { scenario } from 'debate-space-fixtures/scenario.js';
import { using } from 'debate-space-fixtures/service.js';

@Controller()
class LogoutController {
  @Post('logout')
  logout(@Res({ passthrough: true }) response: Response): string {
    response.clearCookie('session');
    return 'bye';
  }
}

const scene = scenario();

// As NestJS documents it for several servers at the same time; hosts without a server are like it.
it('a session cookie is seen on servers that are not Nest’s own', async () => {
  const cookies = [{ name: 'session', uid: (value: string) => value }];
  @Module({
    imports: [DebateSpaceModule.forRoot(using(scene.service, { session: { cookies } }))],
    controllers: [LogoutController],
  })
  class App {}
  const handler = express();
  const creating = NestFactory.create(App, new ExpressAdapter(handler), { logger: false });
  const app = await scene.apps.add(creating);
  await app.init();
  const server = createServer(handler);
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  const { port } = server.address() as AddressInfo;
  await fetch(`http://127.0.0.1:${port}/logout`, { method: 'POST', headers: { cookie: 'session=alice' } });
  server.closeAllConnections();
  server.close();
  expect(await scene.logouts()).toEqual(['alice']);
});
