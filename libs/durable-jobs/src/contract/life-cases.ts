import { strict as assert } from 'node:assert';
import { everything, put, values, withStorage, type ContractCases } from './contract-case.js';

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
