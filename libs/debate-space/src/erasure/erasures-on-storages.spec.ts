import { afterAll, afterEach, beforeEach, expect, it, jest } from '@jest/globals';
import { randomUUID } from 'node:crypto';
import { setTimeout as sleep } from 'node:timers/promises';
import { ErasureRoom } from '#support/service/erasure-room.js';
import { seeded } from '#support/seeded.js';
import { tableStorages } from '#support/storages/table-storages.js';
import { ErasureError, RefusedError, UnavailableError } from '../errors.js';
import { LEASE_MS, type Claim, type Storage } from '../storage/storage.js';

const details = { operation: 'deleteUser', retryable: true, attempts: 1 } as const;
const failing = (error: Error) => (): never => {
  throw error;
};
const ANSWERS = [
  () => 200,
  () => 404,
  failing(new UnavailableError('away', { ...details, outcome: 'unknown', status: 503 })),
  failing(new RefusedError('no', { ...details, outcome: 'refused', status: 422 })),
];
const REFERENCES = ['r0', 'r1', 'list-0', 'list-1'];

for (const kept of tableStorages.filter(({ name }) => !name.includes('ORM')))
  kept.describe(`the erasures of two processes in ${kept.name}`, () => {
    let storages: Storage[] = [];
    beforeEach(async () => {
      const engine = await kept.engine();
      const application = `erasures-${randomUUID()}`;
      const { storage } = await engine.open(application);
      storages = kept.isShared ? [storage, (await engine.open(application)).storage] : [storage];
      jest.spyOn(Math, 'random').mockReturnValue(0); // the shortest delay between two attempts
    });
    afterEach(async () => {
      jest.restoreAllMocks();
      await Promise.all(storages.map((storage) => storage.close()));
    });
    afterAll(() => kept.stop());

    const [seeds, stepCount] = kept.isShared ? [[1], 60] : [[1, 2, 3], 150];
    it.each(seeds)('count each user once, in whatever order they work (%d)', async (seed) => {
      const random = seeded(seed);
      const pick = <T>(items: readonly T[]): T => items[Math.floor(random() * items.length)] as T;
      const [first, second = first] = storages;
      if (!first || !second) throw new Error('no storage');
      const rooms = [new ErasureRoom(first), new ErasureRoom(second)];
      for (const room of rooms)
        room.beforeErase = ({ uid }) => (uid === 'user-3' ? { veto: 'legal hold' } : undefined);
      /** Takes longer than the shortest lease: another process may have the same user meanwhile. */
      const slow = async (): Promise<number> => {
        await sleep(2);
        await pick(rooms).work(1);
        return 200;
      };
      const held: { readonly room: ErasureRoom; readonly claim: Claim }[] = [];
      const steps: readonly ((room: ErasureRoom) => Promise<unknown>)[] = [
        (room) => room.ask(pick(['r0', 'r1']), [`user-${Math.floor(random() * 12)}`]),
        (room) => room.askList(pick(['list-0', 'list-1']), ['user-1', 'user-2', 'user-3', 'user-4']),
        (room) => {
          room.answers.push(pick([...ANSWERS, slow, slow]));
          return room.work(pick([1, 3]), pick([1, 1, LEASE_MS]));
        },
        async (room) => {
          for (const claim of (await room.storage.claim('erasure', 1)).claims) held.push({ room, claim });
        },
        () => Promise.all(held.splice(0).map(({ room, claim }) => room.worker.execute(claim))),
        (room) => room.erasures.pause(pick(REFERENCES)),
        (room) => room.erasures.resume(pick(REFERENCES)),
        (room) => room.erasures.retry(pick(REFERENCES)),
        (room) => (random() < 0.1 ? room.erasures.cancel(pick(REFERENCES)) : Promise.resolve()),
      ];
      /** A reference that is not there yet, that was canceled, or that has its list. */
      const refused = (error: unknown): void => {
        if (!(error instanceof ErasureError)) throw error;
      };
      for (let step = 0; step < stepCount; step += 1)
        await Promise.all(rooms.map((room) => pick(steps)(room).catch(refused)));

      for (const { room, claim } of held) await room.worker.execute(claim);
      const [room] = rooms;
      if (!room) throw new Error('no room');
      for (const reference of REFERENCES) await room.erasures.resume(reference).catch(refused);
      for (const one of rooms) one.answers.length = 0;
      for (;;) {
        const { claims, nextMs } = await room.storage.claim('erasure', 100);
        for (const claim of claims) await room.worker.execute(claim);
        if (nextMs === undefined) break;
        await sleep(Math.min(nextMs, 100));
      }

      const events = rooms.flatMap((one) => one.events);
      const announced = events.map((event) => event.type === 'erasure-finished' && event.reference);
      let receipts = 0;
      for await (const status of room.repository.list()) {
        const { reference, state, total, done, notFound, vetoed, canceled, waiting, failed } = status;
        expect([reference, waiting, failed]).toEqual([reference, 0, 0]);
        expect(['done', 'canceled']).toContain(state);
        expect(announced).toContain(reference);
        expect(done + notFound + vetoed + canceled).toBe(total);
        const kept = await room.receipts(reference);
        expect(kept.length).toBeGreaterThanOrEqual(total - canceled);
        receipts += kept.filter(({ outcome }) => outcome !== 'canceled').length;
      }
      const types = events.map(({ type }) => type);
      expect(types.filter((type) => type === 'erasure-done' || type === 'erasure-vetoed')).toHaveLength(
        receipts,
      );
      expect(types).not.toContain('fault');
      while (await room.storage.prune({ historyMs: -60_000, receiptsMs: -60_000 }));
      for await (const { reference } of room.repository.list()) expect(reference).toBe('no longer there');
      expect(await room.repository.receiptsOf('user-1').next()).toMatchObject({ done: true });
    });
  });
