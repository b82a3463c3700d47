import { strict as assert } from 'node:assert';
import { increment } from './competition-cases.js';
import {
  OpenedStorages,
  everything,
  put,
  rowsOf,
  values,
  withStorage,
  type ContractCases,
} from './contract-case.js';

export const sharedCases: ContractCases = {
  'a storage that is opened again has every row': withStorage(async (storage, place) => {
    await put(storage, { 'a:1': '1', 'b:1': '' });
    await storage.close();
    assert.deepEqual(await everything(await place.open()), { 'a:1': '1', 'b:1': '' });
  }),

  'the clock does not go back when a storage is opened again': withStorage(async (storage, place) => {
    await put(storage, { 'a:1': '1' });
    const before = storage.now();
    await storage.close();
    assert.ok((await place.open()).now() >= before - 5, 'but for the few ms of a measured server clock');
  }),

  'a family that is new in a version is empty, and the others are as they were': withStorage(
    async (storage, place) => {
      await put(storage, { 'a:1': '1' });
      await storage.close();
      const newer = await place.open({ families: ['a', 'ab', 'b', 'c', 'd'] });
      await put(newer, { 'd:1': '1' });
      assert.deepEqual(await newer.get(['a:1', 'd:1']), ['1', '1']);
    },
  ),

  'several storages that open a new place at the same time share it': async (subject) => {
    const place = new OpenedStorages(await subject.place(), subject.isShared);
    try {
      const all = await Promise.all([place.open(), place.open(), place.open()]);
      await Promise.all(all.map((storage) => increment(storage, 'a:count')));
      for (const storage of all) {
        assert.deepEqual(await storage.get(['a:count']), ['3']);
        assert.equal(storage.key, all[0].key);
      }
    } finally {
      await place.closeAll();
    }
  },

  'a place can be opened again while commits are under way': withStorage(async (storage, place) => {
    let isOpen = false;
    const commits = Array.from({ length: 4 }, async (_, n) => {
      while (!isOpen) await put(storage, { [`a:${n}`]: '1' });
    });
    const other = await place.open();
    isOpen = true;
    await Promise.all(commits);
    assert.equal((await rowsOf(other, 'a')).length, 4);
  }),

  'two storages of a place see the commits of each other': withStorage(async (storage, place) => {
    const other = await place.open();
    await put(storage, { 'a:1': '1' });
    assert.deepEqual(await other.get(['a:1']), ['1']);
    assert.deepEqual(await everything(other), { 'a:1': '1' });
    assert.equal(await other.commit(values({ 'a:1': '1' }), values({ 'a:1': '2' })), true);
    assert.equal(await storage.commit(values({ 'a:1': '1' }), values({ 'a:1': '3' })), false);
    assert.deepEqual(await storage.get(['a:1']), ['2']);
  }),

  'simultaneous increments by two storages of a place lose none': withStorage(async (storage, place) => {
    const other = await place.open();
    const work = async (mine: typeof storage): Promise<void> => {
      for (let n = 0; n < 50; n += 1) await increment(mine, 'a:count');
    };
    await Promise.all([work(storage), work(other)]);
    assert.deepEqual(await storage.get(['a:count']), ['100']);
    assert.deepEqual(await other.get(['a:count']), ['100']);
  }),

  'two storages of a place have one clock': withStorage(async (storage, place) => {
    const other = await place.open();
    const distance = other.now() - storage.now();
    assert.ok(Math.abs(distance) < 2_000, `${distance} ms`);
  }),

  'a storage that closes leaves another one of its place open': withStorage(async (storage, place) => {
    const other = await place.open();
    await put(storage, { 'a:1': '1' });
    await storage.close();
    await put(other, { 'a:2': '2' });
    assert.deepEqual(await everything(other), { 'a:1': '1', 'a:2': '2' });
  }),
};
