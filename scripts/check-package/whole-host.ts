// A host with all parts of the plugin, of which bundlers make one file: sessions, a storage, erasures, health, telemetry.
import 'reflect-metadata';
import assert from 'node:assert/strict';
import { Controller, Get, Module } from '@nestjs/common';
import { NestFactory } from '@nestjs/core';
import {
  DebateSpaceErasures,
  DebateSpaceEvents,
  DebateSpaceHealth,
  DebateSpaceModule,
  DebateSpaceOutbox,
  memoryStorage,
  type StorageEngine,
} from 'nestjs-debate-space';
import { observeDebateSpace } from 'nestjs-debate-space/opentelemetry';
import { lastValueFrom } from 'rxjs';
import { SessionModule, subpaths } from './session.module.js';

const { PORT = '', DEBATE_SPACE_AUTH_URL: authUrl = '', SQLITE_FILE: path } = process.env;

async function openStorage(): Promise<StorageEngine> {
  if (path === undefined) return memoryStorage();
  return (await import('nestjs-debate-space/sqlite')).sqliteStorage({ path });
}

@Controller()
class HomeController {
  @Get()
  home(): string {
    return 'home';
  }
}

@Module({
  imports: [
    SessionModule,
    DebateSpaceModule.forRootAsync({
      useFactory: async () => ({
        apiKey: 'demo-api-key',
        secretKey: 'demo-secret-key-that-protects-nothing-at-all',
        applicationName: 'demo',
        authUrl,
        storage: await openStorage(),
      }),
    }),
  ],
  controllers: [HomeController],
})
class AppModule {}

async function main(): Promise<void> {
  assert.ok(subpaths.every((each) => typeof each === 'function'));
  const app = await NestFactory.create(AppModule, { logger: ['error', 'warn'], abortOnError: false });
  await app.init();
  observeDebateSpace({ events: app.get(DebateSpaceEvents), outbox: app.get(DebateSpaceOutbox) });
  const erasures = app.get(DebateSpaceErasures);
  const { reference } = await erasures.request({ uid: 'bob', mode: 'delete' });
  assert.equal((await lastValueFrom(erasures.progress(reference))).state, 'done');
  const { debateSpace } = await app.get(DebateSpaceHealth).indicator('debateSpace', { downAfterMs: -1 });
  assert.equal(debateSpace?.status, 'down'); // which asks for Terminus
  await app.listen(PORT, '127.0.0.1');
}

void main();
