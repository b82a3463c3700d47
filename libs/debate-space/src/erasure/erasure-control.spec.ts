import { beforeEach, describe, expect, it } from '@jest/globals';
import { ErasureRoom } from '#support/service/erasure-room.js';
import { UnavailableError } from '../errors.js';
import { MemoryStorage } from '../storage/memory-storage.js';

const away = (): never => {
  const details = { operation: 'deleteUser', retryable: true, attempts: 1 } as const;
  throw new UnavailableError('away', { ...details, outcome: 'unknown', status: 503 });
};
const uidsOf = (count: number): string[] => Array.from({ length: count }, (_, n) => `user-${n}`);

let storage: MemoryStorage;
let room: ErasureRoom;
beforeEach(() => {
  storage = new MemoryStorage();
  room = new ErasureRoom(storage);
});
const parkAll = async (): Promise<void> => {
  for (const claim of (await storage.claim('erasure', 9)).claims) {
    const { attempts, rejections, uncertain } = claim;
    await storage.park(claim, 'a hint', { attempts, failures: 1, rejections, uncertain, cause: '503' });
  }
};

describe('a reference', () => {
  it('is paused and resumed with one event each', async () => {
    await room.ask('r', ['alice']);
    await room.erasures.resume('r'); // it was never paused
    for (let n = 0; n < 2; n += 1) expect(await room.erasures.pause('r')).toMatchObject({ state: 'paused' });
    expect(await room.work()).toBe(0);
    for (let n = 0; n < 2; n += 1)
      expect(await room.erasures.resume('r')).toMatchObject({ state: 'waiting' });
    expect(room.types()).toEqual(['erasure-paused', 'erasure-resumed']);
    expect(await room.work()).toBe(1);
  });

  it('is not changed any more when it is finished', async () => {
    await room.ask('r', ['alice']);
    await room.work();
    room.events.length = 0;
    for (const what of ['pause', 'resume', 'retry', 'cancel'] as const)
      expect(await room.erasures[what]('r')).toMatchObject({ state: 'done', finishedAt: expect.any(Date) });
    expect(room.events).toEqual([]);
  });

  it('keeps its parked users through a pause, and retries them alone', async () => {
    await room.ask('r', ['alice']);
    await room.ask('other', ['alice']);
    await parkAll();
    await room.erasures.pause('r');
    expect(await room.erasures.resume('r')).toMatchObject({ failed: 1, waiting: 0, state: 'overdue' });
    await room.erasures.pause('r');
    expect(await room.erasures.retry('r')).toMatchObject({ failed: 0, waiting: 1, state: 'paused' });
    expect(await room.work()).toBe(0);
    await room.erasures.resume('r');
    expect(await room.work()).toBe(1);
    expect(await room.status('other')).toMatchObject({ failed: 1, waiting: 0 });
  });

  it('is canceled, however many users it has, and erases the users of other references', async () => {
    await room.askList('list', uidsOf(2_100));
    await room.ask('r', ['user-7']);
    expect(await room.erasures.cancel('list')).toMatchObject({
      state: 'canceled',
      canceled: 2_100,
      waiting: 0,
    });
    expect(room.events).toMatchObject([
      { type: 'erasure-canceled', reference: 'list', count: 2_100 },
      { type: 'erasure-finished', reference: 'list', total: 2_100, canceled: 2_100 },
    ]);
    await room.work();
    expect(room.sent).toEqual(['delete user-7']);
    expect(await room.receipts('list')).toEqual([]);
  });

  it('goes on with what may have been carried out when it is canceled, unless that is parked', async () => {
    await room.ask('r', ['alice', 'bob', 'carol']);
    const [alice, bob] = (await storage.claim('erasure', 2)).claims;
    if (!alice || !bob) throw new Error('nothing is due');
    for (const claim of [alice, bob]) await room.repository.markSending(claim);
    const progress = {
      attempts: 1,
      failures: 1,
      rejections: 0,
      uncertain: room.repository.uncertainMark(alice),
      cause: '503',
    };
    await room.repository.park(alice, 'a hint', progress);
    expect(await room.erasures.cancel('r')).toMatchObject({ waiting: 1, canceled: 2, failed: 0 });
    expect(room.events).toMatchObject([{ type: 'erasure-canceled', count: 2 }]);
    const [receipt, ...others] = await room.receipts('r');
    expect(receipt).toMatchObject({ outcome: 'canceled', attempts: 1, uncertain: true, loggedOut: false });
    expect(receipt).toMatchObject({ requestedBy: 'for r', requestedAt: expect.any(Date) });
    expect(others).toEqual([]);
    await storage.giveBack([bob]);
    expect(await room.work()).toBe(1);
    expect(await room.status('r')).toMatchObject({ state: 'canceled', done: 1, canceled: 2 });
    expect(room.types()).toEqual(['erasure-canceled', 'erasure-done', 'erasure-finished']);
  });

  it('is done when it was canceled while its last user was erased', async () => {
    await room.ask('r', ['alice']);
    room.answers.push(async () => {
      await room.erasures.cancel('r');
      return 200;
    });
    await room.work();
    expect(await room.status('r')).toMatchObject({ state: 'done', done: 1, canceled: 0 });
    expect(room.types().filter((type) => type === 'erasure-finished')).toHaveLength(1);
  });

  it.each(['pause', 'resume', 'retry', 'cancel'] as const)(
    'cannot be used in %s before it exists',
    async (what) => {
      for (const reference of ['none', '', 'x'.repeat(200), undefined as never])
        await expect(room.erasures[what](reference)).rejects.toMatchObject({
          code: 'ERR_DEBATE_SPACE_UNKNOWN_ERASURE',
        });
    },
  );

  it('says why the last attempt failed, except while it is paused', async () => {
    room.answers.push(away);
    await room.ask('r', ['alice', 'bob']);
    expect(await room.status('r')).not.toHaveProperty('retrying');
    await room.work(1);
    expect(await room.status('r')).toMatchObject({ waiting: 2, retrying: { cause: '503' } });
    await room.erasures.pause('r');
    expect(await room.status('r')).not.toHaveProperty('retrying');
  });
});

describe('references and receipts', () => {
  it('are listed to the end, page by page', async () => {
    for (const uid of uidsOf(201)) await room.ask(`of ${uid}`, [uid]);
    await room.askList('list', uidsOf(200));
    const listed: string[] = [];
    for await (const { reference } of room.repository.list()) listed.push(reference);
    expect(listed).toHaveLength(202);
    expect(new Set(listed).size).toBe(202);
    while ((await room.work()) > 0);
    expect(new Set((await room.receipts('list')).map(({ subject }) => subject)).size).toBe(200);
  });
});
