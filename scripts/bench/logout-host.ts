// One host process for the benchmark of the logout: sessions in a MemoryStore, and the plugin with one of its storages;
// or no plugin; or a handler that tells the service itself and waits for it.
import 'reflect-metadata';
import { Controller, HttpCode, Module, Post, Req, type DynamicModule } from '@nestjs/common';
import { NestFactory } from '@nestjs/core';
import type { INestApplication } from '@nestjs/common';
import session from 'express-session';
import { DebateSpaceModule } from 'nestjs-debate-space';
import type { EngineName } from '../test-crash/engines.js';
import { keys, sessionSecret as secret } from './bench-keys.js';
import { openEngine } from './engines.js';
import { HelloController } from './hello.controller.js';

const [kind = '', serviceUrl = '', applicationName = '', place = ''] = process.argv.slice(2);

interface SessionRequest {
  readonly session: { destroy(callback: () => void): void };
}

@Controller()
class LogoutController {
  @Post('logout')
  @HttpCode(200)
  async logout(@Req() request: SessionRequest): Promise<string> {
    await new Promise<void>((resolve) => {
      request.session.destroy(resolve);
    });
    if (kind === 'by hand') {
      const response = await fetch(serviceUrl, { method: 'POST', body: 'logout_token=abc' });
      await response.text();
    }
    return 'bye';
  }
}

async function plugin(): Promise<DynamicModule> {
  const { storage, storageKey } = await openEngine(kind as EngineName, place);
  const authUrl = new URL('/auth', serviceUrl).href;
  return DebateSpaceModule.forRoot({ ...keys, applicationName, authUrl, storage, storageKey });
}

const imports = ['no plugin', 'by hand'].includes(kind) ? [] : [await plugin()];

@Module({ imports, controllers: [HelloController, LogoutController] })
class HostModule {}

const app: INestApplication = await NestFactory.create(HostModule, { logger: false });
app.use(session({ secret, resave: false, saveUninitialized: false }));
await app.listen(0, '127.0.0.1');
process.once('disconnect', () => process.exit());
process.send?.({ url: await app.getUrl() });
