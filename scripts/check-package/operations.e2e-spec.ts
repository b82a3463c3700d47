// A host's own test of the user operations, under the test runner that `nest new` sets up.
import { expect, it } from '@jest/globals'; // left out in the app, where the test runner gives them
import { Test } from '@nestjs/testing';
import { DebateSpaceSimulator } from 'debate-space-simulator';
import { DebateSpaceModule, DebateSpaceService } from 'nestjs-debate-space';
import { LogoutRoute } from 'nestjs-debate-space/internal';
import { mysqlStorage } from 'nestjs-debate-space/mysql';
import { observeDebateSpace } from 'nestjs-debate-space/opentelemetry';
import { postgresStorage } from 'nestjs-debate-space/postgres';
import { sqliteStorage } from 'nestjs-debate-space/sqlite';

const keys = {
  apiKey: 'an-api-key',
  secretKey: 'a secret key that is long enough for HS256',
  applicationName: 'demo',
};

it('lists, logs out and deletes users', async () => {
  const service = await DebateSpaceSimulator.start({ ...keys, users: [{ uid: 'alice' }] });
  const imports = [DebateSpaceModule.forRoot({ ...keys, authUrl: service.url })];
  const app = await Test.createTestingModule({ imports }).compile();
  await app.init();
  const debateSpace = app.get(DebateSpaceService);
  expect((await debateSpace.listUsers()).users).toHaveLength(1);
  await debateSpace.logoutUser('alice');
  await service.received.waitFor('logout');
  await debateSpace.deleteUser('alice');
  await app.close();
  await service.stop();
  expect(service.received.logouts).toEqual(['alice']);
}, 30_000);

it('loads every entry of the plugin', () => {
  for (const part of [LogoutRoute, mysqlStorage, observeDebateSpace, postgresStorage, sqliteStorage])
    expect(typeof part).toBe('function');
});
