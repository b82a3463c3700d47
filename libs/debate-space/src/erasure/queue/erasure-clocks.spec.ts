import { afterEach, beforeEach, describe, expect, it, jest } from '@jest/globals';
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
import type { Storage } from 'durable-jobs';
import type { ErasureClaim } from './erasure-queue.js';

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
  const reported = () => [...one.events, ...other.events].filter(({ type }) => type !== 'erasure-finished');
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

  it('a receipt that was written during a jump ahead is kept for its time', async () => {
    await ask('alice');
    one.setClock(4 * YEAR_MS);
    await run(MINUTE_MS, [one]);
    await one.queue.finish(await claim(one), erased);
    one.setClock(0);
    await run(20 * MINUTE_MS, [one, other]);
    clocks.advance(RETENTION_MS - 30 * MINUTE_MS);
    await run(MINUTE_MS, [one, other]);
    expect(await receiptCount()).toBe(1);
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
      expect(reported()).toEqual([]);
    },
  );

  it.each(YEARS)('a jump by %d ms reports nothing as overdue, and loses no warning', async (jump) => {
    await ask('alice');
    await run(20 * MINUTE_MS, [one]);
    other = erasureProcess(shared, clocks); // it starts with the wrong time
    for (const process of [one, other]) process.setClock(jump);
    await run(MINUTE_MS, [one, other]);
    for (const process of [one, other]) process.setClock(0);
    await run(20 * MINUTE_MS, [one, other]);
    expect(reported()).toEqual([]);
    clocks.advance(8 * DAY_MS);
    await run(MINUTE_MS, [one]);
    expect(reported()).toMatchObject([{ type: 'erasure-overdue', days: 8 }]);
  });

  it('an erasure is not given up because of a jump ahead', async () => {
    const jump = 4 * YEAR_MS;
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
});
