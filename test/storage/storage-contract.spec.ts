import { afterAll, beforeAll, it } from '@jest/globals';
import { storageContract } from 'durable-jobs/contract';
import { moreRedisKinds, storageKinds, type StoragePlaces } from 'debate-space-fixtures/storage-engines.js';

for (const kind of [...storageKinds, ...moreRedisKinds]) {
  kind.describe(`the ${kind.name} storage`, () => {
    let places: StoragePlaces;
    beforeAll(async () => {
      places = await kind.start();
    });
    afterAll(async () => {
      await places.stop();
    });

    const subject = { place: () => places.place(), isShared: kind.isShared };
    for (const { name, run } of storageContract(subject)) it(name, run);
  });
}
