import { afterEach, beforeEach, describe, expect, it } from '@jest/globals';
import { setTimeout as sleep } from 'node:timers/promises';
import { memoryOutbox } from './memory-outbox.js';
import type { Outbox, OutboxEntry, OutboxFactory, OutboxJob } from './outbox.js';

/** Every engine keeps this contract. An engine that lives elsewhere joins by one line here. */
const engines: readonly { name: string; open: () => OutboxFactory }[] = [
  { name: 'memory', open: memoryOutbox },
];

const LONG = 60_000;
const none = { attempts: 0, rejections: 0 };
const entry = (id: string, more: Partial<OutboxEntry> = {}): OutboxEntry => ({
  id,
  uid: `user of ${id}`,
  reason: 'destroyed',
  endedAt: 1_750_000_000_000,
  ...more,
});
const ids = (jobs: readonly OutboxJob[]): string[] => jobs.map((job) => job.entry.id);

describe.each(engines)('the $name outbox', ({ open }) => {
  let outbox: Outbox;
  beforeEach(async () => {
    outbox = await open().open();
  });
  afterEach(async () => {
    await outbox.close();
  });

  async function pend(...names: string[]): Promise<void> {
    for (const name of names) {
      await outbox.hold(entry(name), LONG);
      await outbox.release(name);
    }
  }

  /** Claims as soon as something is due. */
  async function claimNext(limit = 10, leaseMs = LONG): Promise<readonly OutboxJob[]> {
    for (;;) {
      const dueMs = await outbox.nextDueMs();
      if (dueMs === undefined) throw new Error('nothing will ever be due');
      await sleep(Math.ceil(dueMs));
      const jobs = await outbox.claim(limit, leaseMs);
      if (jobs.length > 0) return jobs;
    }
  }

  it('says what it is', () => {
    expect(outbox.engine).toMatch(/\w/);
    expect(outbox.promise).toMatch(/\w/);
    expect(typeof outbox.durable).toBe('boolean');
  });

  it('is empty at first', async () => {
    expect(await outbox.counts()).toEqual({ held: 0, pending: 0, parked: 0 });
    expect(await outbox.claim(10, LONG)).toEqual([]);
    expect(await outbox.nextDueMs()).toBeUndefined();
  });

  it('does not give out what is held', async () => {
    await outbox.hold(entry('a'), LONG);
    expect(await outbox.counts()).toEqual({ held: 1, pending: 0, parked: 0 });
    expect(await outbox.claim(10, LONG)).toEqual([]);
    expect(await outbox.nextDueMs()).toBeGreaterThan(LONG / 2);
  });

  it('gives out what is released, at once and as it came', async () => {
    const all = entry('a', { uid: 'Zoë 🦊/007', reason: 'requested', sessionHash: 'h' });
    await outbox.hold(all, LONG);
    await outbox.release('a');
    expect(await outbox.counts()).toEqual({ held: 0, pending: 1, parked: 0 });
    expect(await outbox.nextDueMs()).toBe(0);
    expect(await outbox.claim(10, LONG)).toEqual([{ entry: all, ...none }]);
  });

  it('forgets what is cancelled', async () => {
    await outbox.hold(entry('a'), 1);
    await outbox.cancel('a');
    await outbox.release('a');
    expect(await outbox.counts()).toEqual({ held: 0, pending: 0, parked: 0 });
    expect(await outbox.nextDueMs()).toBeUndefined();
  });

  it('gives out a hold whose lease has run out: its process died', async () => {
    await outbox.hold(entry('a'), 20);
    expect(ids(await claimNext())).toEqual(['a']);
    expect(await outbox.counts()).toEqual({ held: 0, pending: 1, parked: 0 });
    await outbox.release('a'); // too late, and no second delivery
    expect(await outbox.claim(10, LONG)).toEqual([]);
  });

  it('gives out no more than asked for, the earliest first', async () => {
    await pend('a', 'b', 'c', 'd');
    expect(ids(await outbox.claim(3, LONG))).toEqual(['a', 'b', 'c']);
    expect(ids(await outbox.claim(3, LONG))).toEqual(['d']);
    expect(await outbox.claim(3, LONG)).toEqual([]);
  });

  it('goes by the time of release, not of the hold', async () => {
    for (const name of ['a', 'b', 'c']) await outbox.hold(entry(name), LONG);
    for (const name of ['c', 'a', 'b']) await outbox.release(name);
    expect(ids(await outbox.claim(10, LONG))).toEqual(['c', 'a', 'b']);
  });

  it('goes by the due time of what is repeated', async () => {
    await pend('late', 'soon');
    await outbox.claim(10, LONG);
    await outbox.retry('late', none, 60);
    await outbox.retry('soon', none, 20);
    expect(ids(await claimNext(1))).toEqual(['soon']);
    expect(ids(await claimNext(1))).toEqual(['late']);
  });

  it('gives nothing out twice, to claims at the same time either', async () => {
    await pend(...Array.from({ length: 20 }, (_, n) => `e-${n}`));
    const claims = await Promise.all(Array.from({ length: 10 }, async () => outbox.claim(3, LONG)));
    const claimed = claims.flatMap(ids);
    expect(claimed).toHaveLength(20);
    expect(new Set(claimed).size).toBe(20);
  });

  it('gives out again what was claimed and not heard of before the lease ran out', async () => {
    await pend('a');
    expect(ids(await outbox.claim(10, 30))).toEqual(['a']);
    expect(await outbox.claim(10, LONG)).toEqual([]);
    expect(await outbox.counts()).toEqual({ held: 0, pending: 1, parked: 0 });
    expect(await claimNext()).toEqual([{ entry: entry('a'), ...none }]);
  });

  it('repeats after the delay, and knows how far it has come', async () => {
    await pend('a');
    await outbox.claim(10, LONG);
    await outbox.retry('a', { attempts: 3, rejections: 1 }, 30);
    expect(await outbox.claim(10, LONG)).toEqual([]);
    expect(await outbox.nextDueMs()).toBeLessThanOrEqual(30);
    expect(await claimNext()).toEqual([{ entry: entry('a'), attempts: 3, rejections: 1 }]);
  });

  it('forgets what is finished', async () => {
    await pend('a', 'b');
    await outbox.claim(1, LONG);
    await outbox.finish('a');
    expect(await outbox.counts()).toEqual({ held: 0, pending: 1, parked: 0 });
    expect(ids(await outbox.claim(10, LONG))).toEqual(['b']);
  });

  it('keeps what is parked, and gives it out no more', async () => {
    await pend('a');
    await outbox.claim(10, 1);
    await outbox.park('a', { attempts: 1, rejections: 0 });
    expect(await outbox.counts()).toEqual({ held: 0, pending: 0, parked: 1 });
    expect(await outbox.nextDueMs()).toBeUndefined();
    expect(await outbox.claim(10, LONG)).toEqual([]);
  });

  it('ignores what does not fit the entry’s state', async () => {
    await pend('parked', 'pending', 'finished');
    await outbox.claim(10, LONG);
    await outbox.park('parked', none);
    await outbox.finish('finished');
    await outbox.hold(entry('held'), LONG);
    for (const name of ['parked', 'finished', 'unknown', 'held']) await outbox.retry(name, none, 0);
    for (const name of ['finished', 'unknown', 'held']) await outbox.park(name, none);
    for (const name of ['parked', 'pending', 'finished', 'unknown']) {
      await outbox.cancel(name);
      await outbox.release(name);
    }
    await outbox.finish('unknown');
    expect(await outbox.counts()).toEqual({ held: 1, pending: 1, parked: 1 });
    expect(await outbox.claim(10, LONG)).toEqual([]);
  });

  it('may be told everything twice', async () => {
    await outbox.hold(entry('a'), LONG);
    await outbox.hold(entry('a', { uid: 'somebody else' }), LONG);
    await outbox.release('a');
    await outbox.hold(entry('a', { uid: 'somebody else' }), LONG);
    await outbox.release('a');
    expect(await outbox.claim(10, LONG)).toEqual([{ entry: entry('a'), ...none }]);
    await outbox.retry('a', { attempts: 1, rejections: 0 }, 0);
    await outbox.retry('a', { attempts: 1, rejections: 0 }, 0);
    expect(ids(await claimNext())).toEqual(['a']);
    await outbox.park('a', none);
    await outbox.park('a', none);
    expect(await outbox.counts()).toEqual({ held: 0, pending: 0, parked: 1 });
    await outbox.finish('a');
    await outbox.finish('a');
    await outbox.cancel('a');
    expect(await outbox.counts()).toEqual({ held: 0, pending: 0, parked: 0 });
  });

  it('tells its listener whenever something may have become due earlier', async () => {
    let told = 0;
    outbox.onChange(() => (told += 1));
    const tells = async (change: () => void | Promise<void>): Promise<void> => {
      const before = told;
      await change();
      for (let turn = 0; turn < 200 && told === before; turn += 1) await sleep(10); // an engine may be elsewhere
      expect(told).toBeGreaterThan(before);
    };
    await tells(() => outbox.hold(entry('a'), LONG));
    await tells(() => outbox.release('a'));
    await outbox.claim(10, LONG);
    await tells(() => outbox.retry('a', none, 0));
  });
});
