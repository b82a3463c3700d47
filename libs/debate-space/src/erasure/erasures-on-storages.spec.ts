import { afterAll, afterEach, expect, it, jest } from '@jest/globals';
import { randomUUID } from 'node:crypto';
import { setTimeout as sleep } from 'node:timers/promises';
import { ErasureRoom } from '#support/service/erasure-room.js';
import { tableStorages } from '#support/storages/table-storages.js';
import { UnavailableError } from '../errors.js';
import type { Storage } from '../storage/storage.js';

const away = (): never => {
  const details = { operation: 'deleteUser', retryable: true, attempts: 1 } as const;
  throw new UnavailableError('away', { ...details, outcome: 'unknown', status: 503 });
};

for (const kept of tableStorages.filter(({ name }) => !name.includes('ORM')))
  kept.describe(`erasures in ${kept.name}`, () => {
    let storages: readonly Storage[] = [];
    afterEach(async () => {
      jest.restoreAllMocks();
      await Promise.all(storages.map((storage) => storage.close()));
    });
    afterAll(() => kept.stop());

    it('are counted once by two processes, from their requests until their receipts are removed', async () => {
      jest.spyOn(Math, 'random').mockReturnValue(0); // the shortest delay between two attempts
      const engine = await kept.engine();
      const application = `erasures-${randomUUID()}`;
      const { storage } = await engine.open(application);
      const shared = kept.isShared ? (await engine.open(application)).storage : storage;
      storages = [...new Set([storage, shared])];
      const [one, other] = [new ErasureRoom(storage), new ErasureRoom(shared)];
      for (const room of [one, other])
        room.beforeErase = ({ uid }) => (uid === 'held' ? { veto: 'legal hold' } : undefined);
      await one.request('r', ['alice', 'held']);
      await other.request('r', ['alice', 'bob']);
      await one.requestList('list', ['alice', 'bob', 'carol', 'dan', 'held']);
      await other.requestList('canceled', ['eve', 'frank']);
      await one.erasures.cancel('canceled');

      // One process hangs with a user, whom the other one erases; an answer is lost; both work on the list.
      const [hanging] = (await storage.claim('erasure', 1, 1)).claims;
      if (!hanging) throw new Error('nothing is due');
      await sleep(5);
      other.answers.push(away, () => 404);
      await other.work(2);
      await one.erasures.pause('list');
      await other.work();
      await other.erasures.resume('list');
      for (let nextMs: number | undefined = 0; nextMs !== undefined;) {
        await Promise.all([one.work(2), other.work(2)]);
        ({ nextMs } = await storage.claim('erasure', 0));
        if (nextMs !== undefined) await sleep(Math.min(nextMs, 100));
      }
      await one.worker.execute(hanging);

      for (const [reference, total] of [
        ['r', 3],
        ['list', 5],
      ] as const) {
        const status = await one.status(reference);
        expect(status).toMatchObject({ state: 'done', total, vetoed: 1, waiting: 0, failed: 0 });
        expect(status.done + status.notFound).toBe(total - 1);
      }
      expect(await one.status('canceled')).toMatchObject({ state: 'canceled', total: 2, canceled: 2 });
      const receipts = await Promise.all(['r', 'list', 'canceled'].map((each) => one.receipts(each)));
      expect(receipts.map(({ length }) => length)).toEqual([3, 5, 0]);
      const types = [...one.types(), ...other.types()];
      const counted = ['done', 'vetoed', 'finished'].map(
        (what) => types.filter((type) => type === `erasure-${what}`).length,
      );
      expect(counted).toEqual([6, 2, 3]);
      expect(types).not.toContain('fault');
      while (await storage.prune({ historyMs: -60_000, receiptsMs: -60_000 }));
      for await (const { reference } of other.erasures.list()) expect(reference).toBe('no longer there');
      expect(await other.repository.receiptsOf('alice').next()).toMatchObject({ done: true });
    });
  });
