import { afterEach, beforeEach, describe, expect, it, jest } from '@jest/globals';
import { ErasureRoom } from '#support/service/erasure-room.js';
import { InvalidArgumentError, StorageError, UnavailableError } from '../errors.js';
import { MemoryStorage } from '../storage/memory-storage.js';
import type { DebateSpaceErasures } from './debate-space-erasures.js';

const away = (): never => {
  const details = { operation: 'deleteUser', retryable: true, attempts: 1 } as const;
  throw new UnavailableError('away', { ...details, outcome: 'unknown', status: 503 });
};
const uidsOf = (count: number): string[] => Array.from({ length: count }, (_, n) => `user-${n}`);
const CHANGES = ['pause', 'resume', 'retry', 'cancel'] as const;

let storage: MemoryStorage;
let room: ErasureRoom;
let erasures: DebateSpaceErasures;
beforeEach(() => {
  storage = new MemoryStorage();
  room = new ErasureRoom(storage);
  ({ erasures } = room);
});
afterEach(() => {
  jest.restoreAllMocks();
});
const parkAll = async (): Promise<void> => {
  for (const claim of (await storage.claim('erasure', 9)).claims)
    await storage.park(claim, 'a hint', { ...claim, failures: 1, cause: '503' });
};

describe('a request', () => {
  const list = { reference: 'list', mode: 'delete' } as const;
  const one = { reference: 'one', mode: 'delete', uid: 'alice' } as const;

  it('is announced once, however often it is repeated, and again when a user is added', async () => {
    for (let n = 0; n < 3; n += 1) await erasures.request(one);
    for (let n = 0; n < 3; n += 1) await erasures.requestMany(['alice', 'bob'], list);
    expect(room.types()).toEqual(['erasure-requested', 'erasure-requested']);
    await erasures.request({ ...one, uid: 'bob' });
    expect(room.types()).toHaveLength(3);
  });

  it.each<[string, unknown, string]>([
    ['a uid that is none', { ...one, uid: '..' }, 'INVALID_UID'],
    ['another mode', { ...one, mode: 'erase' }, 'INVALID_ARGUMENT'],
    ['no reference', { ...one, reference: '' }, 'INVALID_ARGUMENT'],
    ['a long reference', { ...one, reference: 'x'.repeat(129) }, 'INVALID_ARGUMENT'],
    ['two lines of who requested it', { ...one, requestedBy: 'a\nb' }, 'INVALID_ARGUMENT'],
    ['a transaction that is none', { ...one, transaction: {} }, 'INVALID_ARGUMENT'],
    ['a transaction, in memory', { ...one, transaction: { query: () => undefined } }, 'INVALID_ARGUMENT'],
  ])('with %s is refused before anything is stored', async (_what, given, code) => {
    const request = given as Parameters<typeof erasures.request>[0];
    const refused = { code: `ERR_DEBATE_SPACE_${code}` };
    await expect(erasures.request(request)).rejects.toMatchObject(refused);
    if (code !== 'INVALID_UID')
      await expect(erasures.requestMany(['alice'], { ...list, ...request })).rejects.toMatchObject(refused);
    expect(await erasures.list()[Symbol.asyncIterator]().next()).toMatchObject({ done: true });
  });

  it('for a list of nobody is refused, and not announced', async () => {
    await expect(erasures.requestMany([], list)).rejects.toBeInstanceOf(InvalidArgumentError);
    expect(room.events).toEqual([]);
  });

  it.each([
    ['one user', () => erasures.request({ uid: 'alice', mode: 'delete' }), 1],
    ['a list', () => erasures.requestMany(['alice', 'bob'], list), 2],
  ] as const)(
    'for %s whose answer is lost names its reference, and may be repeated',
    async (_what, request, total) => {
      const add = storage.addErasures.bind(storage);
      const lost = jest.spyOn(storage, 'addErasures').mockImplementationOnce(async (...given) => {
        await add(...given);
        throw new StorageError('no answer', 'look there');
      });
      const error = (await request().catch((thrown: unknown) => thrown)) as StorageError;
      lost.mockRestore();
      const { reference = '' } = error;
      expect(error).toBeInstanceOf(StorageError);
      expect(error).toMatchObject({ problem: `Erasure ${reference}: no answer`, hint: 'look there' });
      expect(await erasures.status(reference)).toMatchObject({ total, waiting: total, complete: true });
      expect(await request()).toMatchObject({ reference, total });
    },
  );

  it('names the earlier reference when the caller would have received that one', async () => {
    const { reference } = await erasures.request({ uid: 'alice', mode: 'delete' });
    expect(await erasures.request({ uid: 'alice', mode: 'delete' })).toMatchObject({
      ...{ reference, alreadyRequested: true },
    });
    jest.spyOn(storage, 'reference').mockRejectedValue(new StorageError('no answer'));
    await expect(erasures.request({ uid: 'alice', mode: 'delete' })).rejects.toMatchObject({ reference });
  });
});

describe('a reference', () => {
  it.each(CHANGES)('cannot be used in %s before it exists', async (change) => {
    for (const reference of ['none', '', 'x'.repeat(200), undefined as never])
      await expect(erasures[change](reference)).rejects.toMatchObject({
        code: 'ERR_DEBATE_SPACE_UNKNOWN_ERASURE',
      });
  });

  it('is paused and resumed with one event each', async () => {
    await room.request('r', ['alice']);
    await erasures.resume('r'); // it was never paused
    for (let n = 0; n < 2; n += 1) expect(await erasures.pause('r')).toMatchObject({ state: 'paused' });
    expect(await room.work()).toBe(0);
    for (let n = 0; n < 2; n += 1) expect(await erasures.resume('r')).toMatchObject({ state: 'waiting' });
    expect(room.types()).toEqual(['erasure-paused', 'erasure-resumed']);
    expect(await room.work()).toBe(1);
  });

  it.each(['done', 'canceled'] as const)('is not changed any more when it is %s', async (state) => {
    await room.request('r', ['alice']);
    if (state === 'done') await room.work();
    else await erasures.cancel('r');
    room.events.length = 0;
    for (const change of CHANGES)
      expect(await erasures[change]('r')).toMatchObject({ state, finishedAt: expect.any(Date) });
    expect(room.events).toEqual([]);
  });

  it('keeps its parked users through a pause, and retries them alone', async () => {
    await room.request('r', ['alice']);
    await room.request('other', ['alice']);
    await parkAll();
    await erasures.pause('r');
    expect(await erasures.resume('r')).toMatchObject({ failed: 1, waiting: 0, state: 'overdue' });
    await erasures.pause('r');
    expect(await erasures.retry('r')).toMatchObject({ failed: 0, waiting: 1, state: 'paused' });
    expect(await room.work()).toBe(0);
    await erasures.resume('r');
    expect(await room.work()).toBe(1);
    expect(await room.status('other')).toMatchObject({ failed: 1, waiting: 0 });
  });

  it('is canceled, however many users it has, and erases the users of other references', async () => {
    await room.requestList('list', uidsOf(2_100));
    await room.request('r', ['user-7']);
    const canceled = { state: 'canceled', canceled: 2_100, waiting: 0 };
    expect(await erasures.cancel('list')).toMatchObject(canceled);
    expect(room.events).toMatchObject([
      { type: 'erasure-canceled', reference: 'list', count: 2_100 },
      { type: 'erasure-finished', reference: 'list', total: 2_100, canceled: 2_100 },
    ]);
    await room.work();
    expect(room.sent).toEqual(['delete user-7']);
    expect(await room.receipts('list')).toEqual([]);
  });

  it('continues with what may have been executed when it is canceled, unless that is parked', async () => {
    await room.request('r', ['alice', 'bob', 'carol']);
    const [alice, bob] = (await storage.claim('erasure', 2)).claims;
    if (!alice || !bob) throw new Error('nothing is due');
    for (const claim of [alice, bob]) await room.repository.markSending(claim);
    const uncertain = room.repository.uncertainMark(alice);
    const progress = { attempts: 1, failures: 1, rejections: 0, uncertain, cause: '503' };
    await room.repository.park(alice, 'a hint', progress);
    expect(await erasures.cancel('r')).toMatchObject({ waiting: 1, canceled: 2, failed: 0 });
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
    await room.request('r', ['alice']);
    room.answers.push(async () => {
      await erasures.cancel('r');
      return 200;
    });
    await room.work();
    expect(await room.status('r')).toMatchObject({ state: 'done', done: 1, canceled: 0 });
    expect(room.types().filter((type) => type === 'erasure-finished')).toHaveLength(1);
  });

  it('says why the last attempt failed, except while it is paused', async () => {
    room.answers.push(away);
    await room.request('r', ['alice', 'bob']);
    expect(await room.status('r')).not.toHaveProperty('retrying');
    await room.work(1);
    expect(await room.status('r')).toMatchObject({ waiting: 2, retrying: { cause: '503' } });
    await erasures.pause('r');
    expect(await room.status('r')).not.toHaveProperty('retrying');
  });
});

it('references and receipts are listed to the end, page by page', async () => {
  for (const uid of uidsOf(201)) await room.request(`of ${uid}`, [uid]);
  await room.requestList('list', uidsOf(200));
  const listed = new Set<string>();
  for await (const { reference } of erasures.list()) listed.add(reference);
  expect(listed.size).toBe(202);
  while ((await room.work()) > 0);
  const subjects: string[] = [];
  for await (const { subject } of erasures.receipts('list')) subjects.push(subject);
  expect([subjects.length, new Set(subjects).size]).toEqual([200, 200]);
});
