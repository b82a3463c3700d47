// A host's own test, in the CommonJS mode of jest that `nest new` sets up, with the README's one line.
import { expect, test } from '@jest/globals';
import { Test } from '@nestjs/testing';
import { DebateSpaceSimulator } from 'debate-space-simulator';
import { DebateSpaceModule, DebateSpaceService } from 'nestjs-debate-space';

const keys = {
  apiKey: 'an-api-key',
  secretKey: 'a secret key that is long enough for HS256',
  applicationName: 'demo',
};

test('the host tells of a logout', async () => {
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
});
