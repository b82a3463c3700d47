import { afterEach, beforeEach, describe, expect, it, jest } from '@jest/globals';
import { Clocks } from 'debate-space-fixtures/clocks.js';
import {
  DAY_MS,
  erasureProcess,
  erasureRows,
  RETENTION_MS,
  type ErasureProcess,
} from 'debate-space-fixtures/erasure-process.js';
import { openMemory } from 'debate-space-fixtures/outbox-engines.js';
import type { Storage } from 'durable-jobs';
import type { ErasureClaim } from './erasure-queue.js';

const failure = { cause: 'unreadable', unknown: false, sent: false, rejections: 0 };
const erased = { outcome: 'erased', status: 200, loggedOut: true } as const;
const unreadableCode = {
  code: 'ERR_DEBATE_SPACE_UNREADABLE_ERASURE',
  message: expect.stringContaining('hint: '),
};
const damages: readonly { readonly name: string; readonly damage: (text: string) => string }[] = [
  { name: 'cut off', damage: (text) => text.slice(0, -10) },
  { name: 'emptied', damage: () => '' },
  { name: 'of another shape', damage: () => '{"v":1,"references":[null]}' },
  { name: 'of a newer version', damage: (text) => text.replace('"v":1', '"v":99') },
];

it('a damaged index row stops nothing', async () => {
  const shared = openMemory();
  const process = erasureProcess(shared, new Clocks());
  await process.requests.add({ reference: 'r', mode: 'delete' }, 'alice');
  const rows = ['overdue', 'asked', 'finished'].map((kind) => `erasuretime:${kind}:000000000000001:%E0`);
  rows.push('erasuredue:0000000000000000001:%E0/x');
  await shared.commit(new Map(), new Map(rows.map((row) => [row, ''])));
  expect(await process.queue.claim(1)).toMatchObject([{ uid: 'alice' }]);
  await process.queue.maintain();
  for await (const { reference } of process.storage.list()) expect(reference).toBe('r');
  jest.restoreAllMocks();
});

describe.each(damages)('a record that is $name', ({ damage }) => {
  let clocks: Clocks;
  let shared: Storage;
  let process: ErasureProcess;
  beforeEach(() => {
    clocks = new Clocks();
    shared = openMemory();
    process = erasureProcess(shared, clocks);
  });
  afterEach(() => {
    jest.restoreAllMocks();
  });

  const ask = (reference: string, uid: string) => process.requests.add({ reference, mode: 'delete' }, uid);
  const jobOf = (reference: string, uid: string): string => `${reference}/${process.uids.hash(uid)}`;
  /** @returns how to repair it, also in the record in which it was parked meanwhile */
  async function spoil(key: string): Promise<() => Promise<void>> {
    const [text = ''] = await shared.get([key]);
    await shared.commit(new Map([[key, text]]), new Map([[key, damage(text)]]));
    return async () => {
      const parkedKey = key.replace('erasurepending', 'erasureparked');
      const [parked] = key === parkedKey ? [] : await shared.get([parkedKey]);
      const repaired = parked && JSON.stringify({ ...(JSON.parse(parked) as object), record: text });
      await shared.commit(new Map(), new Map([[repaired ? parkedKey : key, repaired ?? text]]));
    };
  }
  const spoilJob = (reference: string, uid: string) => spoil(`erasurepending:${jobOf(reference, uid)}`);
  const reported = () => process.events.filter(({ type }) => type !== 'erasure-finished');
  async function claimAll(): Promise<readonly ErasureClaim[]> {
    const claims = await process.queue.claim(10);
    for (const found of claims) {
      if (found.hint === undefined) await process.queue.finish(found, erased);
      else await process.queue.park(found, failure, found.hint);
    }
    return claims;
  }
  async function listed(): Promise<readonly string[]> {
    const found: string[] = [];
    for await (const { reference, state } of process.storage.list()) found.push(`${reference}: ${state}`);
    return found;
  }
  const status = (reference: string) => process.storage.status(reference);

  it('as an entry is parked with a hint, and stops no other user', async () => {
    await ask('r', 'alice');
    await ask('r', 'bob');
    await ask('other', 'carol');
    await spoilJob('r', 'alice');
    const claims = await claimAll();
    expect(claims.map(({ uid }) => uid)).toEqual(['bob', 'carol']);
    expect(await status('r')).toMatchObject({ total: 2, done: 1, failed: 1, waiting: 0, state: 'overdue' });
    expect(await status('other')).toMatchObject({ state: 'done' });
    expect(reported()).toMatchObject([
      {
        type: 'erasure-parked',
        reference: 'r',
        uidHash: process.uids.hash('alice'),
        mode: 'delete',
        cause: 'unreadable',
        hint: expect.stringContaining('newer version'),
      },
    ]);
    expect(await claimAll()).toEqual([]);
    clocks.advance(DAY_MS);
    expect(await claimAll()).toEqual([]);
  });

  it('as an entry is tried again by retry when it can be read', async () => {
    await ask('r', 'alice');
    const repair = await spoilJob('r', 'alice');
    await claimAll();
    expect(await process.control.retry('r')).toMatchObject({ failed: 1, waiting: 0 });
    await repair();
    expect(await process.control.retry('r')).toMatchObject({ failed: 0, waiting: 1 });
    expect(await claimAll()).toMatchObject([{ uid: 'alice' }]);
    expect(await status('r')).toMatchObject({ state: 'done', total: 1, done: 1, failed: 0 });
  });

  it('as an entry is given up by cancel', async () => {
    await ask('parked', 'alice');
    await ask('waiting', 'bob');
    await spoilJob('parked', 'alice');
    await claimAll();
    await ask('waiting', 'carol');
    await spoilJob('waiting', 'carol');
    expect(await process.control.cancel('parked')).toMatchObject({
      state: 'canceled',
      canceled: 1,
      failed: 0,
    });
    expect(await process.control.cancel('waiting')).toMatchObject({
      state: 'canceled',
      done: 1,
      canceled: 1,
    });
    expect(await process.storage.count()).toBe(0);
    await ask('again', 'alice');
    expect(await claimAll()).toMatchObject([{ uid: 'alice' }]);
  });

  it('as an entry does not keep the same user from being requested again', async () => {
    await ask('before', 'alice');
    await spoilJob('before', 'alice');
    await claimAll();
    await ask('again', 'alice');
    await ask('before', 'alice');
    expect(await claimAll()).toMatchObject([
      { uid: 'alice', reference: 'again', unknown: false },
      { uid: 'alice', reference: 'before', unknown: true },
    ]);
    expect(await status('again')).toMatchObject({ state: 'done', done: 1 });
    expect(await status('before')).toMatchObject({ state: 'done', total: 1, done: 1, failed: 0 });
  });

  it('as an entry that was replaced before it was parked is counted once', async () => {
    await ask('r', 'alice');
    await spoilJob('r', 'alice');
    clocks.advance(1);
    await ask('r', 'alice');
    await claimAll();
    await claimAll();
    expect(await status('r')).toMatchObject({ state: 'done', total: 1, done: 1 });
  });

  it('as an entry that was replaced, and whose replacement cannot be read either, is counted once', async () => {
    await ask('r', 'alice');
    await spoilJob('r', 'alice');
    clocks.advance(1);
    await ask('r', 'alice');
    await spoilJob('r', 'alice');
    await claimAll();
    await claimAll();
    expect(await status('r')).toMatchObject({ total: 1, failed: 1, waiting: 0 });
    await process.control.cancel('r');
    expect(await status('r')).toMatchObject({ state: 'canceled', total: 1, canceled: 1 });
  });

  it.each(['parked', 'replaced', 'canceled'])(
    'as an entry leaves no index row when it is %s',
    async (end) => {
      await ask('r', 'alice');
      await spoilJob('r', 'alice');
      if (end === 'parked') await claimAll();
      clocks.advance(1);
      if (end === 'canceled') await process.control.cancel('r');
      else await ask('r', 'alice');
      while ((await claimAll()).length > 0);
      expect(await status('r')).toMatchObject({ waiting: 0, failed: 0, total: 1 });
      const kept = /^erasure(batch|time:finished|time:asked|receipt|user):/;
      expect((await erasureRows(shared)).filter(([key]) => !kept.test(key))).toEqual([]);
    },
  );

  it('as a batch is listed, reported once, becomes overdue, and stops no other reference', async () => {
    await ask('spoiled', 'alice');
    await ask('sound', 'bob');
    const repair = await spoil('erasurebatch:spoiled');
    expect(await listed()).toEqual(['spoiled: unreadable', 'sound: waiting']);
    for (const call of [
      () => status('spoiled'),
      () => process.control.pause('spoiled'),
      () => process.control.resume('spoiled'),
      () => process.control.retry('spoiled'),
      () => process.control.cancel('spoiled'),
      () => ask('spoiled', 'carol'),
    ])
      await expect(call()).rejects.toMatchObject(unreadableCode);
    expect(await claimAll()).toMatchObject([{ uid: 'bob' }]);
    const report = {
      type: 'erasure-unreadable',
      reference: 'spoiled',
      hint: expect.stringContaining('another reference'),
    };
    expect(reported()).toMatchObject([report]);
    for (const days of [8, 1, 1]) {
      clocks.advance(days * DAY_MS);
      await process.queue.maintain();
      expect(await claimAll()).toEqual([]);
    }
    expect(await process.storage.overdueMs()).toBe(10 * DAY_MS);
    await repair();
    clocks.advance(DAY_MS);
    await process.queue.maintain();
    expect(reported()).toMatchObject([report, { type: 'erasure-overdue', reference: 'spoiled', days: 11 }]);
    expect(await claimAll()).toMatchObject([{ uid: 'alice' }]);
    expect(await status('spoiled')).toMatchObject({ state: 'done', done: 1 });
  });

  it('as a batch is reported when it is overdue, if nothing of it is due earlier', async () => {
    await ask('paused', 'alice');
    await process.control.pause('paused');
    await spoil('erasurebatch:paused');
    await process.queue.maintain();
    expect(reported()).toEqual([]);
    clocks.advance(8 * DAY_MS);
    for (let n = 0; n < 2; n += 1) await process.queue.maintain();
    expect(reported()).toMatchObject([{ type: 'erasure-unreadable', reference: 'paused' }]);
  });

  it('as a batch keeps its users until it can be read', async () => {
    await ask('spoiled', 'alice');
    await ask('sound', 'alice');
    const repair = await spoil('erasurebatch:spoiled');
    expect(await claimAll()).toMatchObject([{ uid: 'alice', reference: 'sound' }]);
    expect(await status('sound')).toMatchObject({ state: 'done', done: 1 });
    await repair();
    clocks.advance(DAY_MS);
    expect(await claimAll()).toMatchObject([{ uid: 'alice', reference: 'spoiled' }]);
    expect(await status('spoiled')).toMatchObject({ state: 'done', done: 1, total: 1 });
  });

  it('as a batch does not keep the receipts of others', async () => {
    await ask('spoiled', 'alice');
    await ask('sound', 'bob');
    await claimAll();
    await spoil('erasurebatch:spoiled');
    clocks.advance(RETENTION_MS + DAY_MS);
    await process.queue.maintain();
    expect(await listed()).toEqual(['spoiled: unreadable']);
    expect(reported()).toMatchObject([{ type: 'erasure-unreadable', reference: 'spoiled' }]);
    expect(await shared.count('erasurereceipt')).toBe(1);
  });

  it('as a receipt is skipped, still says that the user was erased, and is removed in its time', async () => {
    await ask('r', 'alice');
    await ask('r', 'bob');
    await claimAll();
    await spoil(`erasurereceipt:r:${process.uids.hash('alice')}`);
    const receipts = [];
    for await (const receipt of process.storage.receipts('r')) receipts.push(receipt.uidHash);
    for await (const receipt of process.storage.receiptsOf('alice')) receipts.push(receipt.uidHash);
    expect(receipts).toEqual([process.uids.hash('bob')]);
    await ask('r', 'alice');
    expect(await status('r')).toMatchObject({ state: 'done', total: 2, done: 2 });
    clocks.advance(RETENTION_MS + DAY_MS);
    await process.queue.maintain();
    expect(await shared.count('erasurereceipt')).toBe(0);
    expect(await shared.count('erasureuser')).toBe(0);
  });
});
