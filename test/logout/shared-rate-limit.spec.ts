import { afterAll, beforeAll, expect, it } from '@jest/globals';
import { setTimeout as sleep } from 'node:timers/promises';
import type { DebateSpaceStorage } from 'nestjs-debate-space';
import { tryAcquireSlot } from '../../libs/debate-space/src/service/rate-limiter.js';
import { storageContext } from 'debate-space-fixtures/outbox-engines.js';
import { storageKinds, type StoragePlaces } from 'debate-space-fixtures/storage-engines.js';

for (const kind of storageKinds.filter(({ isShared }) => isShared)) {
  kind.describe(`the rate limit that instances share on the ${kind.name} storage`, () => {
    let places: StoragePlaces;
    let storages: readonly DebateSpaceStorage[];
    beforeAll(async () => {
      places = await kind.start();
      const engine = places.place();
      storages = [await engine.open(storageContext), await engine.open(storageContext)];
    });
    afterAll(async () => {
      for (const storage of storages) await storage.close();
      await places.stop();
    });

    it('admits no more requests than the limit in any window, over all instances', async () => {
      const [most, perMs] = [5, 500];
      // A request was admitted between these two moments.
      const admitted: { readonly from: number; readonly to: number }[] = [];
      const caller = async (storage: DebateSpaceStorage): Promise<void> => {
        for (let call = 0; call < 3; call += 1) {
          for (;;) {
            const from = performance.now();
            const waitMs = await tryAcquireSlot(storage, most, perMs);
            if (waitMs === 0) {
              admitted.push({ from, to: performance.now() });
              break;
            }
            expect(waitMs).toBeLessThanOrEqual(2 * perMs);
            await sleep(waitMs);
          }
        }
      };
      await Promise.all([...storages, ...storages, ...storages].map(caller));
      admitted.sort((one, other) => one.to - other.to);
      expect(admitted).toHaveLength(18);
      for (const [n, { from }] of admitted.entries()) {
        const next = admitted[n + most];
        // The clock of a server is known to a few ms.
        if (next) expect(next.to - from).toBeGreaterThanOrEqual(perMs - 20);
      }
    });
  });
}
