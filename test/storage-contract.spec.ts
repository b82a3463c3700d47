import { afterAll, beforeAll, it } from '@jest/globals';
import { storageContract } from '../libs/debate-space/src/storage/storage-contract.js';
import { storageKinds, type StoragePlaces } from './support/storage-engines.js';

for (const { name, describe, isShared, start } of storageKinds) {
  describe(`the ${name} storage`, () => {
    let places: StoragePlaces;
    beforeAll(async () => {
      places = await start();
    });
    afterAll(async () => {
      await places.stop();
    });

    for (const { name, run } of storageContract({ place: () => places.place(), isShared })) it(name, run);
  });
}
