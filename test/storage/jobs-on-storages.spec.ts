import { afterAll, beforeAll, expect, it } from '@jest/globals';
import { openJobs, type Jobs, type StorageEngine } from 'durable-jobs';
import { storageKinds, type StoragePlaces } from 'debate-space-fixtures/storage-engines.js';

const JOBS = 60;

for (const kind of storageKinds) {
  kind.describe(`jobs on the ${kind.name} storage`, () => {
    let places: StoragePlaces;
    beforeAll(async () => {
      places = await kind.start();
    });
    afterAll(() => places.stop());

    const open = (engine: StorageEngine): Promise<Jobs> =>
      openJobs(engine, { namespace: 'mail', storageKey: 'a key of a test', onFault: () => undefined });

    it('are each worked once by the processes that share it', async () => {
      const engine = places.place();
      const first = await open(engine);
      const processes = [first, ...(kind.isShared ? [await open(engine), await open(engine)] : [])];
      const payloads = Array.from({ length: JOBS }, (_, n) => String(n));
      // Before they are worked: one that is done would be added again.
      await Promise.all([
        first.add(payloads.map((payload) => ({ kind: 'mail', payload, id: payload }))),
        processes.at(-1)?.add(payloads.map((payload) => ({ kind: 'mail', payload, id: payload }))),
      ]);
      const worked: string[] = [];
      let isDone = (): void => undefined;
      const done = new Promise<void>((resolve) => (isDone = resolve));
      for (const jobs of processes)
        jobs.work('mail', async ({ payload, attempts }) => {
          await new Promise((resolve) => setTimeout(resolve, 5));
          if (attempts === 0 && Number(payload) % 3 === 0) throw new Error('not the first time');
          worked.push(payload);
          if (worked.length === JOBS) isDone();
        });
      await done;
      await Promise.all(processes.slice(1).map((jobs) => jobs.close()));
      expect(worked.toSorted()).toEqual(payloads.toSorted());
      await first.close();
    });

    it('wait in their group while it is paused, and can be found, parked, retried and canceled', async () => {
      const jobs = await open(places.place());
      const named = await jobs.add(
        ['1', '2', '3'].map((id) => ({ kind: 'mail', payload: id, id, group: 'list', key: 'ann' })),
      );
      await jobs.pause('mail', 'list');
      let isRetried = false;
      const worked: string[] = [];
      jobs.work('mail', ({ payload }) => {
        worked.push(payload);
        return payload === '2' && !isRetried ? { park: 'a hint' } : undefined;
      });
      await new Promise((resolve) => setTimeout(resolve, 200));
      expect(worked).toEqual([]);
      expect(await jobs.find({ kind: 'mail', key: 'ann' })).toHaveLength(3);
      expect(await jobs.cancel(named[0] ?? { kind: '', id: '' })).toBe(true);
      await jobs.resume('mail', 'list');
      for (;;) {
        const [parked] = await jobs.parked('mail');
        if (parked) {
          expect(parked).toMatchObject({ payload: '2', hint: 'a hint', attempts: 1, group: 'list' });
          isRetried = true;
          expect(await jobs.retry(parked)).toBe(true);
          break;
        }
        await new Promise((resolve) => setTimeout(resolve, 20));
      }
      while ((await jobs.find({ kind: 'mail', key: 'ann' })).length > 0)
        await new Promise((resolve) => setTimeout(resolve, 20));
      expect(worked.toSorted()).toEqual(['2', '2', '3']);
      await jobs.close();
    });
  });
}
