import { expect, it } from '@jest/globals';
import { tableStorages } from 'debate-space-fixtures/table-storages.js';

for (const kept of tableStorages)
  kept.describe(kept.name, () => {
    it('opens', async () => {
      const engine = await kept.engine();
      const { storage, place, warnings } = await engine.open('app');
      console.log(place, warnings);
      const logout = { id: '000000000000001-a', subject: 's', sealed: 'x', details: 'd' };
      await storage.addLogouts([logout, logout]);
      await storage.close();
      await kept.stop();
    });
  });
