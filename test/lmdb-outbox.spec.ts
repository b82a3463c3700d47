import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, it, jest } from '@jest/globals';
import { mkdtemp, rm, stat, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { open, type RootDatabase } from 'lmdb';
import { OutboxError, type Outbox, type OutboxContext, type OutboxEntry } from 'nestjs-debate-space';
import { lmdbOutbox } from 'nestjs-debate-space/lmdb';
import { outboxContext } from './support/outbox-context.js';

const context = outboxContext();
const LONG = 60_000;
const DAY = 24 * 60 * 60_000;
const none = { attempts: 0, rejections: 0 };
const entry = (id: string): OutboxEntry => ({ id, uid: `user of ${id}`, reason: 'destroyed', endedAt: 1 });
const numbered = (prefix: string, count: number): string[] =>
  Array.from({ length: count }, (_, n) => `${prefix}-${n}`);

describe('the outbox in an LMDB file', () => {
  let root: string;
  let path: string;
  const opened: Outbox[] = [];
  beforeAll(async () => {
    root = await mkdtemp(join(tmpdir(), 'lmdb-outbox-'));
  });
  beforeEach(async () => {
    path = await mkdtemp(join(root, 'place-'));
  });
  afterEach(async () => {
    jest.restoreAllMocks();
    jest.useRealTimers();
    await Promise.all(opened.splice(0).map(async (outbox) => outbox.close()));
  });
  afterAll(async () => {
    await rm(root, { recursive: true });
  });

  async function start(more: Partial<OutboxContext> = {}): Promise<Outbox> {
    const outbox = await lmdbOutbox({ path }).open({ ...context, ...more });
    opened.push(outbox);
    return outbox;
  }

  async function pend(outbox: Outbox, names: readonly string[]): Promise<void> {
    await Promise.all(names.map(async (name) => outbox.hold(entry(name), LONG)));
    await Promise.all(names.map(async (name) => outbox.release(name)));
  }

  async function deliverAll(outbox: Outbox): Promise<number> {
    let count = 0;
    for (;;) {
      const jobs = await outbox.claim(500, LONG);
      if (jobs.length === 0) return count;
      await Promise.all(jobs.map(async (job) => outbox.finish(job.entry.id, 1)));
      count += jobs.length;
    }
  }

  /** Looks into the file past the outbox. */
  async function inside<T>(look: (file: RootDatabase) => T | Promise<T>): Promise<T> {
    const file = open(join(path, 'app'), { noSubdir: false, maxDbs: 16, overlappingSync: false });
    try {
      return await look(file);
    } finally {
      await file.close();
    }
  }
  const transactions = () => inside((file) => (file.getStats() as { lastTxnId: number }).lastTxnId);
  const fileSize = async (): Promise<number> => (await stat(join(path, 'app', 'data.mdb'))).size;

  /** Sets the machine's clock. */
  function shiftClock(ms: number): void {
    const real = Date.now.bind(Date);
    jest.spyOn(Date, 'now').mockImplementation(() => real() + ms);
  }

  describe('on the disk', () => {
    it('has everything again after a restart', async () => {
      const before = await start();
      await before.hold(entry('held'), LONG);
      await pend(before, ['pending', 'parked', 'finished']);
      await before.claim(10, 1);
      await before.park('parked', { ...none, cause: '404' }, 'a cure');
      await before.finish('finished', 2);
      await before.close();

      const after = await start();
      expect(await after.counts()).toEqual({ held: 1, pending: 1, parked: 1 });
      expect(await after.parked(10)).toMatchObject([
        { entry: entry('parked'), cause: '404', cure: 'a cure' },
      ]);
      expect((await after.ofUser('user of finished')).finished).toMatchObject([
        { id: 'finished', attempts: 2 },
      ]);
      await sleep(2);
      expect(await after.claim(10, LONG)).toEqual([{ entry: entry('pending'), ...none }]);
    });

    it('writes what comes at the same time together', async () => {
      const outbox = await start();
      const before = await transactions();
      await Promise.all(numbered('e', 500).map(async (name) => outbox.hold(entry(name), LONG)));
      expect((await transactions()) - before).toBeLessThan(5);
      expect(await outbox.counts()).toMatchObject({ held: 500 });
    });

    it('is readable by its owner only', async () => {
      await start();
      const modes = ['.', 'data.mdb', 'lock.mdb'].map(
        async (name) => (await stat(join(path, 'app', name))).mode & 0o777,
      );
      expect(await Promise.all(modes)).toEqual([0o700, 0o600, 0o600]);
    });

    it('keeps applications apart that share a folder', async () => {
      const [one, other] = [await start(), await start({ namespace: 'other' })];
      await pend(one, ['a']);
      expect(await other.counts()).toMatchObject({ pending: 0 });
      expect(await one.counts()).toMatchObject({ pending: 1 });
    });

    it.each([0, 5])(
      'does not grow for ever when what is finished is kept for %d ms',
      async (keepFinishedMs) => {
        const outbox = await start({ keepFinishedMs });
        const round = async (n: number): Promise<void> => {
          await pend(outbox, numbered(`round ${n}`, 200));
          expect(await deliverAll(outbox)).toBe(200);
        };
        for (let n = 0; n < 10; n += 1) await round(n);
        const early = await fileSize();
        for (let n = 10; n < 60; n += 1) await round(n);
        expect(await fileSize()).toBeLessThanOrEqual(early + 4_000_000);
      },
    );

    it('has no uid among what is finished, and forgets that when its time is over', async () => {
      const outbox = await start({ keepFinishedMs: 40 });
      await pend(outbox, ['a', 'b']);
      await deliverAll(outbox);
      const all = () =>
        inside((file) =>
          ['entries', 'held', 'pending', 'parked', 'pendingByAge', 'ofUser', 'finished', 'finishedByAge'].flatMap((name) => {
            const encoding = name === 'entries' ? 'string' : 'json';
            return [...file.openDB(name, { encoding }).getRange()].map((row) => JSON.stringify([name, row]));
          }),
        ); // prettier-ignore
      expect(await all()).toHaveLength(4);
      expect((await all()).join()).not.toContain('user of');
      await sleep(50);
      expect((await outbox.ofUser('user of a')).finished).toEqual([]);
      await pend(outbox, ['c']);
      await deliverAll(outbox);
      expect((await all()).filter((row) => row.includes('finished'))).toHaveLength(2);
    });
  });

  describe('opened by several', () => {
    it('gives nothing to two of them, and goes on when one closes', async () => {
      const both = [await start(), await start()] as const;
      await pend(both[0], numbered('e', 50));
      const claims = await Promise.all(
        numbered('claim', 20).map(async (_, n) => both[n % 2 === 0 ? 0 : 1].claim(5, LONG)),
      );
      const claimed = claims.flat().map((job) => job.entry.id);
      expect(claimed).toHaveLength(50);
      expect(new Set(claimed).size).toBe(50);
      await both[0].close();
      await both[1].finish('e-0', 1);
      expect(await both[1].counts()).toMatchObject({ pending: 49 });
    });

    it('can be opened while it is being written', async () => {
      const one = await start();
      const writing = pend(one, numbered('e', 1500));
      const other = await start();
      await writing;
      expect(await other.counts()).toMatchObject({ pending: 1500 });
    });

    it('shares a pause', async () => {
      const [one, other] = [await start(), await start()];
      await pend(one, ['a']);
      await one.pause(LONG);
      expect(await other.claim(1, LONG)).toEqual([]);
      expect(await other.nextDueMs()).toBeGreaterThan(LONG / 2);
    });

    it('has its listener look around from time to time, until it is closed', async () => {
      jest.useFakeTimers({
        doNotFake: ['setTimeout', 'setImmediate', 'nextTick', 'queueMicrotask', 'Date', 'performance'],
      });
      const outbox = await start();
      let told = 0;
      outbox.onChange(() => (told += 1));
      jest.advanceTimersByTime(10_000);
      expect(told).toBeGreaterThan(1);
      await outbox.close();
      told = 0;
      jest.advanceTimersByTime(10_000);
      expect(told).toBe(0);
    });
  });

  it('keeps the order of what is asked of one entry at the same time', async () => {
    const outbox = await start();
    await Promise.all([
      outbox.hold(entry('a'), LONG),
      outbox.release('a'),
      outbox.hold(entry('b'), LONG),
      outbox.cancel('b'),
    ]);
    expect(await outbox.counts()).toEqual({ held: 0, pending: 1, parked: 0 });
  });

  describe('when the machine’s clock is put back by a day', () => {
    it('is late with nothing', async () => {
      const outbox = await start();
      await pend(outbox, ['a', 'b']);
      await outbox.retry('b', none, 30);
      shiftClock(-DAY);
      expect(await outbox.nextDueMs()).toBe(0);
      expect(await outbox.claim(1, LONG)).toMatchObject([{ entry: { id: 'a' } }]);
      expect(await outbox.nextDueMs()).toBeLessThanOrEqual(30);
      await sleep(35);
      expect(await outbox.claim(1, LONG)).toMatchObject([{ entry: { id: 'b' } }]);
    });

    it('is late with nothing after a restart either, however much comes in between', async () => {
      const before = await start();
      await pend(before, ['a']);
      await before.close();
      shiftClock(-DAY);
      const after = await start();
      await pend(after, ['b']);
      await after.retry('b', none, LONG);
      expect(await after.claim(10, LONG)).toMatchObject([{ entry: { id: 'a' } }]);
      const [waiting] = (await after.ofUser('user of b')).waiting;
      expect(Math.abs((waiting?.dueAt ?? 0) - Date.now() - LONG)).toBeLessThan(LONG / 2);
    });

    it('goes on when nothing was written since', async () => {
      const outbox = await start();
      await outbox.hold(entry('a'), 40);
      shiftClock(-DAY);
      expect(await outbox.nextDueMs()).toBeLessThanOrEqual(40);
      await sleep(45);
      expect(await outbox.claim(10, LONG)).toHaveLength(1);
    });

    it('pauses no longer than it was told', async () => {
      const outbox = await start();
      await pend(outbox, ['a']);
      await outbox.pause(1_000);
      shiftClock(-DAY);
      expect(await outbox.claim(1, LONG)).toEqual([]);
      await sleep(1_005);
      expect(await outbox.claim(1, LONG)).toHaveLength(1);
    });
  });

  it('takes what is due when the machine’s clock is put forward', async () => {
    const outbox = await start();
    await outbox.hold(entry('a'), LONG);
    shiftClock(DAY);
    expect(await outbox.nextDueMs()).toBe(0);
    expect(await outbox.claim(1, LONG)).toHaveLength(1);
  });

  it.each([
    ['was damaged', '{"entry":'],
    [
      'has a uid that can be read',
      '{"entry":{"id":"a","uid":"alice"},"uidHash":"a","state":"pending","at":1,"turn":1}',
    ],
  ])('parks an entry that %s, and delivers the others', async (_what, damaged) => {
    const outbox = await start();
    await pend(outbox, ['a', 'b', 'c']);
    await inside(async (file) => {
      const entries = file.openDB<string, string>('entries', { encoding: 'string', useVersions: true });
      await entries.put('a', damaged, 7);
      await entries.remove('b');
    });
    expect(await outbox.claim(1, LONG)).toMatchObject([{ entry: { id: 'c' } }]);
    expect(await outbox.parked(10)).toMatchObject([
      { entry: { id: 'a' }, cure: expect.stringContaining('damaged') },
    ]);
    expect(await outbox.replay('a')).toBe(false);
    expect(await outbox.discard('a')).toBe(true);
    expect(await outbox.counts()).toEqual({ held: 0, pending: 1, parked: 0 });
  });

  describe('once it is closed', () => {
    it('fails without harm', async () => {
      const outbox = await start();
      const holding = outbox.hold(entry('a'), LONG);
      await Promise.all([outbox.close(), outbox.close()]);
      await holding;
      const calls: (() => unknown)[] = [
        () => outbox.hold(entry('b'), LONG),
        () => outbox.release('a'),
        () => outbox.claim(1, LONG),
        () => outbox.finish('a', 1),
        () => outbox.pause(1),
        () => outbox.counts(),
        () => outbox.nextDueMs(),
        () => outbox.oldestPending(),
        () => outbox.parked(1),
        () => outbox.ofUser('a'),
        () => outbox.supersede('a', 1),
      ];
      for (const call of calls) {
        await expect(Promise.resolve().then(call)).rejects.toBeInstanceOf(OutboxError);
      }
      await outbox.close();
      expect(await (await start()).counts()).toMatchObject({ held: 1 });
    });
  });

  describe('that cannot be opened', () => {
    const refusal = async (): Promise<unknown> => start().catch((error: unknown) => error);

    it('says so of a path that is no folder', async () => {
      path = join(path, 'file');
      await writeFile(path, '');
      expect(await refusal()).toMatchObject({
        name: 'OutboxError',
        message: expect.stringMatching(/not a folder.*another path/),
      });
    });

    it('says so of a newer format', async () => {
      await (await start()).close();
      await inside((file) =>
        file.openDB('meta', { encoding: 'json', useVersions: true }).put('format', 2, 9),
      );
      expect(await refusal()).toMatchObject({
        name: 'OutboxError',
        message: expect.stringMatching(/format 2.*format 1/),
      });
    });

    it('says so of a file that is none of LMDB', async () => {
      await (await start()).close();
      await writeFile(join(path, 'app', 'data.mdb'), Buffer.alloc(100_000, 'x'));
      expect(await refusal()).toMatchObject({
        name: 'OutboxError',
        message: expect.stringMatching(/move the folder away/),
      });
    });

    it('says what to install when lmdb is missing', async () => {
      jest.unstable_mockModule('lmdb', () => {
        throw Object.assign(new Error('Cannot find package'), { code: 'ERR_MODULE_NOT_FOUND' });
      });
      await jest.isolateModulesAsync(async () => {
        const fresh = await import('nestjs-debate-space/lmdb');
        await expect(fresh.lmdbOutbox({ path }).open(context)).rejects.toMatchObject({
          message: expect.stringContaining('npm install lmdb'),
        });
      });
      jest.unstable_unmockModule('lmdb');
    });
  });
});
