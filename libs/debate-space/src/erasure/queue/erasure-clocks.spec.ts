import { afterEach, beforeEach, describe, expect, it, jest } from '@jest/globals';
import { Readable } from 'node:stream';
import { type Clocks } from 'debate-space-fixtures/clocks.js';
import {
  DAY_MS,
  erasureProcess,
  erasureRows,
  RETENTION_MS,
  YEAR_MS,
  twoErasureProcesses,
  type ErasureProcess,
} from 'debate-space-fixtures/erasure-process.js';
import { LEASE_MS, type Storage } from 'durable-jobs';
import type { ErasureClaim } from './erasure-claims.js';

const failure = { cause: '503', unknown: true, sent: true, rejections: 0 };
const erased = { outcome: 'erased', status: 200, loggedOut: true } as const;
const YEARS = [4 * YEAR_MS, -4 * YEAR_MS];
const MINUTE_MS = 60_000;

describe('erasures under clocks that jump by years', () => {
  let clocks: Clocks;
  let shared: Storage;
  let one: ErasureProcess;
  let other: ErasureProcess;
  beforeEach(() => {
    ({ clocks, shared, one, other } = twoErasureProcesses());
  });
  afterEach(() => {
    jest.restoreAllMocks();
  });

  const ask = (uid: string, reference = uid) => one.requests.add({ reference, mode: 'delete' }, uid);
  async function claim(process: ErasureProcess): Promise<ErasureClaim> {
    const [claimed] = await process.queue.claim(1);
    if (!claimed) throw new Error('nothing is due');
    return claimed;
  }
  /** What the runners of some processes do every few seconds, without beginning anything. */
  async function run(ms: number, processes: readonly ErasureProcess[], held: readonly ErasureClaim[] = []) {
    for (let passed = 0; passed < ms; passed += 5_000) {
      clocks.advance(5_000);
      for (const process of processes) await process.queue.maintain();
      if (passed % 10_000 === 0) await one.queue.renew(held);
    }
  }
  const receiptCount = async (): Promise<number> => await shared.count('erasurereceipt');

  it.each(YEARS)('a jump of the storage by %d ms removes no receipt', async (jump) => {
    await ask('alice');
    await one.queue.finish(await claim(one), erased);
    await run(20 * MINUTE_MS, [one]);
    one.setClock(jump);
    await run(MINUTE_MS, [one]);
    one.setClock(0);
    await run(20 * MINUTE_MS, [one]);
    expect(await receiptCount()).toBe(1);
    clocks.advance(RETENTION_MS);
    await run(20 * MINUTE_MS, [one]);
    expect(await erasureRows(shared)).toEqual([]);
  });

  it('a jump of all clocks, which lasts for less than ten minutes, removes no receipt', async () => {
    await ask('alice');
    await one.queue.finish(await claim(one), erased);
    await run(20 * MINUTE_MS, [one]);
    for (const jump of [4 * YEAR_MS, -4 * YEAR_MS]) {
      clocks.setDate(jump);
      clocks.storage += jump;
      await run(9 * MINUTE_MS, [one, erasureProcess(shared, clocks)]);
    }
    expect(await receiptCount()).toBe(1);
  });

  it.each(YEARS)('a receipt that was written during a jump by %d ms is kept for its time', async (jump) => {
    await ask('alice');
    one.setClock(jump);
    await run(MINUTE_MS, [one]);
    await one.queue.finish(await claim(one), erased);
    one.setClock(0);
    await run(20 * MINUTE_MS, [one, other]);
    clocks.advance(RETENTION_MS - 30 * MINUTE_MS);
    await run(MINUTE_MS, [one, other]);
    expect(await receiptCount()).toBe(1);
    clocks.advance(DAY_MS);
    await run(20 * MINUTE_MS, [one, other]);
    expect(await erasureRows(shared)).toEqual([]);
  });

  it.each(YEARS)(
    'the date of the machine that is wrong by %d ms neither removes nor postpones',
    async (jump) => {
      await ask('alice');
      await one.queue.finish(await claim(one), erased);
      await ask('bob');
      const bob = await claim(one);
      clocks.setDate(jump);
      await run(20 * MINUTE_MS, [one, other], [bob]);
      expect(await other.queue.claim(1)).toEqual([]);
      await one.queue.retry(bob, failure, 1_000);
      clocks.advance(1_000);
      expect(await claim(other)).toMatchObject({ uid: 'bob', ageMs: 20 * MINUTE_MS + 1_000 });
      expect(await receiptCount()).toBe(1);
      expect([...one.events, ...other.events]).toEqual([]);
    },
  );

  it.each(YEARS)('a claim is not taken from a process that is alive after a jump by %d ms', async (jump) => {
    await ask('alice');
    const claimed = await claim(one);
    const held = [claimed];
    for (const process of [one, other]) process.setClock(jump);
    for (let round = 0; round < 10; round += 1) {
      await run(10_000, [one, other], held);
      expect(await other.queue.claim(1)).toEqual([]);
      expect(await one.queue.claim(1)).toEqual([]);
    }
    expect(await one.queue.markSending(claimed)).toBe(true);
  });

  it.each(YEARS)('a claim is not taken by a process whose clock is %d ms off', async (jump) => {
    await ask('alice');
    const claimed = await claim(one);
    const held = [claimed];
    other.setClock(jump);
    for (let round = 0; round < 10; round += 1) {
      await run(10_000, [one, other], held);
      expect(await other.queue.claim(1)).toEqual([]);
    }
    expect(await one.queue.markSending(claimed)).toBe(true);
  });

  it('a process that dies with a clock years ahead has its work taken up within a minute', async () => {
    await ask('alice');
    one.setClock(4 * YEAR_MS);
    await claim(one);
    await run(10_000, [other]);
    expect(await other.queue.claim(1)).toEqual([]); // it may be alive
    await run(LEASE_MS, [other]);
    expect(await claim(other)).toMatchObject({ uid: 'alice', ageMs: LEASE_MS + 10_000 });
  });

  it('what a clock years ahead has requested and retried is due within seconds', async () => {
    one.setClock(4 * YEAR_MS);
    await ask('alice', 'both');
    await ask('bob', 'both');
    await one.queue.retry(await claim(one), failure, 5 * MINUTE_MS);
    await other.requests.add({ reference: 'both', mode: 'delete' }, 'carol');
    const carol = await claim(other);
    expect(carol).toMatchObject({ uid: 'carol' });
    await other.queue.retry(carol, failure, 6 * 60 * MINUTE_MS); // hides what is years ahead behind it
    await run(10_000, [other]);
    const claims = await other.queue.claim(10);
    expect(claims.map(({ uid }) => uid).toSorted()).toEqual(['alice', 'bob']);
    expect(claims.every(({ ageMs }) => ageMs < MINUTE_MS)).toBe(true);
    await run(10 * MINUTE_MS, [other]);
    clocks.advance(8 * DAY_MS);
    await other.queue.maintain();
    expect(other.events).toMatchObject([{ type: 'erasure-overdue', days: 8 }]);
  });

  it('what a clock years ahead adds to a reference that waits is due within seconds', async () => {
    await ask('alice', 'both');
    await one.queue.retry(await claim(one), failure, 6 * 60 * MINUTE_MS);
    one.setClock(4 * YEAR_MS);
    await ask('bob', 'both');
    await run(10_000, [other]);
    expect((await other.queue.claim(10)).map(({ uid }) => uid)).toEqual(['bob']);
    expect(await other.queue.claim(10)).toEqual([]);
  });

  it.each(YEARS)('a jump by %d ms reports nothing as overdue, and loses no warning', async (jump) => {
    await ask('alice');
    await run(20 * MINUTE_MS, [one]);
    other = erasureProcess(shared, clocks); // it starts with the wrong time
    for (const process of [one, other]) process.setClock(jump);
    await run(MINUTE_MS, [one, other]);
    for (const process of [one, other]) process.setClock(0);
    await run(20 * MINUTE_MS, [one, other]);
    expect([...one.events, ...other.events]).toEqual([]);
    clocks.advance(8 * DAY_MS);
    await run(MINUTE_MS, [one]);
    expect(one.events).toMatchObject([{ type: 'erasure-overdue', days: 8 }]);
  });

  it.each(YEARS)('an erasure is not given up because of a jump by %d ms', async (jump) => {
    await ask('alice');
    await run(20 * MINUTE_MS, [one]);
    other = erasureProcess(shared, clocks); // it starts with the wrong time
    for (const process of [one, other]) process.setClock(jump);
    await run(10_000, [one, other]);
    for (const process of [one, other]) {
      const claimed = await claim(process);
      expect(process.queue.isLate(claimed.ageMs, 28 * DAY_MS)).toBe(false);
      await process.queue.giveBack([claimed]);
      process.setClock(0);
    }
    await run(20 * MINUTE_MS, [one, other]);
    const claimed = await claim(one);
    expect(one.queue.isLate(claimed.ageMs, 28 * DAY_MS)).toBe(false);
    await one.queue.giveBack([claimed]);
    clocks.advance(28 * DAY_MS);
    expect(one.queue.isLate((await claim(one)).ageMs, 28 * DAY_MS)).toBe(true);
  });

  it('more than one page of what a clock years ahead has requested is pulled back', async () => {
    one.setClock(4 * YEAR_MS);
    const uids = Array.from({ length: 600 }, (_, n) => `user-${n}`);
    await one.requests.addList({ reference: 'list', mode: 'delete' }, Readable.from(uids));
    await run(30_000, [other]);
    const claims: ErasureClaim[] = [];
    for (let calls = 0; calls < 10; calls += 1) claims.push(...(await other.queue.claim(100)));
    expect(new Set(claims.map(({ uid }) => uid)).size).toBe(600);
  });
});
