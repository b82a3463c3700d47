import { strict as assert } from 'node:assert';
import {
  everything,
  put,
  values,
  withStorage,
  type ContractCases,
  numbered,
  OpenedStorages,
  rowsOf,
} from './contract-case.js';
import type { Storage } from '../storage.js';

const FOUR_YEARS = 4 * 365 * 24 * 60 * 60_000;

/** Moves the date of this process, which a storage must not follow. */
async function withDateMoved(ms: number, run: () => Promise<void>): Promise<void> {
  const real = Date.now;
  Date.now = () => real() + ms;
  try {
    await run();
  } finally {
    Date.now = real;
  }
}

export const lifeCases: ContractCases = {
  'an engine has a name and one sentence about its guarantee': async (subject) => {
    const engine = await subject.place();
    assert.match(engine.name, /\w/);
    assert.match(engine.guarantee, /\w/);
    assert.equal(typeof engine.durable, 'boolean');
  },

  'the clock has whole milliseconds and never goes back': withStorage(async (storage) => {
    let last = storage.now();
    assert.ok(last > Date.UTC(2020), 'milliseconds since 1970');
    for (let n = 0; n < 2_000; n += 1) {
      if (n % 100 === 0) await storage.get(['a:1']);
      const now = storage.now();
      assert.ok(Number.isInteger(now) && now >= last, `${now} after ${last}`);
      last = now;
    }
  }),

  'the clock runs at the pace of the machine': withStorage(async (storage) => {
    const [before, monotonic] = [storage.now(), performance.now()];
    await new Promise((done) => setTimeout(done, 200));
    const passed = storage.now() - before;
    const real = performance.now() - monotonic;
    assert.ok(passed > real / 2 - 20 && passed < real * 2 + 20, `${passed} ms while ${real} ms passed`);
  }),

  'the clock does not move when the date jumps by four years': withStorage(async (storage, place) => {
    for (const ms of [FOUR_YEARS, -FOUR_YEARS]) {
      const before = storage.now();
      await withDateMoved(ms, async () => {
        const now = storage.now();
        assert.ok(now >= before && now < before + 60_000, `${now - before} ms after ${before}`);
        await put(storage, { 'a:1': '1' });
        if (place.isShared) {
          const other = (await place.open()).now();
          assert.ok(Math.abs(other - storage.now()) < 60_000, 'a storage that is opened meanwhile agrees');
        }
      });
      assert.ok(
        storage.now() >= before && storage.now() < before + 60_000,
        'and when the date is right again',
      );
    }
  }),

  'calls after close reject with a StorageError, and close may be repeated': withStorage(async (storage) => {
    await put(storage, { 'a:1': '1' });
    await Promise.all([storage.close(), storage.close()]);
    const calls: readonly (() => unknown)[] = [
      () => storage.get(['a:1']),
      () => storage.range('a:', 'a;', { limit: 1 }),
      () => storage.count('a'),
      () => storage.commit(new Map(), values({ 'a:1': '2' })),
    ];
    for (const call of calls) {
      await assert.rejects(() => Promise.resolve().then(call), { name: 'StorageError' });
    }
    await storage.close();
  }),

  'close waits for open commits': withStorage(async (storage) => {
    const commits = Array.from({ length: 20 }, async (_, n) =>
      storage.commit(new Map(), values({ [`a:${n}`]: '1' })),
    );
    await storage.close();
    assert.deepEqual(new Set(await Promise.all(commits)), new Set([true]));
  }),

  'two namespaces of a place have no row in common': withStorage(async (storage, place) => {
    const other = await place.open({ namespace: 'another-Application_2' });
    await put(storage, { 'a:1': '1' });
    assert.deepEqual(await everything(other), {});
    assert.equal(await other.count('a'), 0);
    assert.equal(await other.commit(values({ 'a:1': undefined }), values({ 'a:1': '2' })), true);
    assert.deepEqual(await everything(storage), { 'a:1': '1' });
  }),
};

/** Adds one to a number, however many others do the same. */
async function increment(storage: Storage, key: string): Promise<void> {
  for (;;) {
    const [before] = await storage.get([key]);
    const after = String(Number(before ?? 0) + 1);
    if (await storage.commit(values({ [key]: before }), values({ [key]: after }))) return;
  }
}

export const competitionCases: ContractCases = {
  'only one of many commits that need an absent key is made': withStorage(async (storage) => {
    const names = numbered(20, 'name ');
    const made = await Promise.all(
      names.map(async (name) => storage.commit(values({ 'a:1': undefined }), values({ 'a:1': name }))),
    );
    const first = names.filter((_, n) => made[n]);
    assert.equal(first.length, 1);
    assert.deepEqual(await storage.get(['a:1']), first);
  }),

  'forty simultaneous increments of one number lose none': withStorage(async (storage) => {
    await Promise.all(numbered(40).map(() => increment(storage, 'a:count')));
    assert.deepEqual(await storage.get(['a:count']), ['40']);
  }),

  'simultaneous commits that take several keys in different orders all end': withStorage(async (storage) => {
    const keys = ['a:1', 'b:1', 'c:1'];
    const move = async (turn: number): Promise<void> => {
      const own = [...keys.slice(turn % 3), ...keys.slice(0, turn % 3)];
      for (;;) {
        const found = await storage.get(own);
        const checks = new Map(own.map((key, n) => [key, found[n]]));
        const changes = new Map(
          own.toReversed().map((key) => [key, String(Number(checks.get(key) ?? 0) + 1)]),
        );
        if (await storage.commit(checks, changes)) return;
      }
    };
    await Promise.all(Array.from({ length: 24 }, (_, turn) => move(turn)));
    assert.deepEqual(await everything(storage), { 'a:1': '24', 'b:1': '24', 'c:1': '24' });
  }),

  'simultaneous commits of different keys are all made': withStorage(async (storage) => {
    const keys = numbered(200);
    const commits = keys.map(async (key) =>
      storage.commit(values({ [key]: undefined }), values({ [key]: key })),
    );
    assert.deepEqual(new Set(await Promise.all(commits)), new Set([true]));
    assert.deepEqual(await everything(storage), Object.fromEntries(keys.map((key) => [key, key])));
  }),
};

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
