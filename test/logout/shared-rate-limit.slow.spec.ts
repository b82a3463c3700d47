import { afterAll, beforeAll, expect, it } from '@jest/globals';
import { DebateSpaceService } from 'nestjs-debate-space';
import { databases, type RunningDatabase } from '#support/servers/databases.js';
import { scenario } from '#support/hosts/scenario.js';

const LIMIT = { requests: 10, perMs: 500 };
const scene = scenario({ rateLimit: false });

for (const kind of databases) {
  kind.describe(`the rate limit of two apps on one storage in ${kind.name}`, () => {
    let database: RunningDatabase;
    beforeAll(async () => {
      database = await kind.start();
    });
    afterAll(() => database.stop());

    it('lets no more requests through than the limit in any window, over both of them', async () => {
      const { engine: storage } = await database.place();
      const options = { storage, storageKey: 'the storage key of a test', http: { rateLimit: LIMIT } };
      const apps = [await scene.app(options), await scene.app(options)];
      const calls = apps.flatMap((app) => Array.from({ length: 15 }, () => app.get(DebateSpaceService)));
      await Promise.all(calls.map((debateSpace) => debateSpace.listUsers()));
      const times = scene.service.received.of('list').map(({ at }) => at);
      expect(times).toHaveLength(30);
      for (const [n, at] of times.entries())
        expect((times[n + LIMIT.requests] ?? Infinity) - at).toBeGreaterThanOrEqual(LIMIT.perMs);
    });
  });
}
