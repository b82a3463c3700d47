import { afterEach, beforeEach, describe, expect, it, jest } from '@jest/globals';
import { Readable } from 'node:stream';
import { ErasureRoom } from '#support/service/erasure-room.js';
import { memoryStorage } from '../storage/memory-storage.js';
import type { Storage } from '../storage/storage.js';
import { RateLimiter } from '../service/rate-limiter.js';
import { DebateSpaceErasures } from './debate-space-erasures.js';
import { InvalidArgumentError, StorageError } from '../errors.js';
import type { DebateSpaceEvent } from '../events.js';

let storage: Storage;
let erasures: DebateSpaceErasures;
let emitted: DebateSpaceEvent[];
const events = (): string[] => emitted.map(({ type }) => type);
beforeEach(async () => {
  ({ storage } = await memoryStorage().open('app'));
  emitted = [];
  const { repository } = new ErasureRoom(storage);
  erasures = new DebateSpaceErasures({
    repository,
    users: { walk: () => Readable.from([]) },
    pace: new RateLimiter(false, storage),
    shutdownSignal: new AbortController().signal,
    emit: (event) => void emitted.push(event),
  });
});
afterEach(() => {
  jest.restoreAllMocks();
});

describe('a request whose outcome is unknown', () => {
  let lost: { mockRestore(): void } | undefined;

  /** From the change with this number on, the storage does not answer. */
  function loseAnswerOf(number: number): void {
    const add = storage.addErasures.bind(storage);
    let changes = 0;
    lost = jest.spyOn(storage, 'addErasures').mockImplementation(async (reference, erasures) => {
      const added = await add(reference, erasures);
      if ((changes += 1) >= number) throw new StorageError('no answer', 'look there');
      return added;
    });
  }
  async function errorOf(call: Promise<unknown>): Promise<StorageError> {
    const error = await call.catch((thrown: unknown) => thrown);
    lost?.mockRestore();
    expect(error).toBeInstanceOf(StorageError);
    return error as StorageError;
  }

  it('names the reference that the caller has not given', async () => {
    loseAnswerOf(1);
    const error = await errorOf(erasures.request({ uid: 'alice', mode: 'delete' }));
    const { reference = '' } = error;
    expect(error).toMatchObject({ problem: `Erasure ${reference}: no answer`, hint: 'look there' });
    expect(await erasures.status(reference)).toMatchObject({ total: 1, waiting: 1 });
    expect(await erasures.request({ uid: 'alice', mode: 'delete' })).toMatchObject({
      reference,
      alreadyRequested: true,
    });
  });

  it('names the reference of many users', async () => {
    loseAnswerOf(1);
    const request = { mode: 'delete', reference: 'list' } as const;
    const { reference = '' } = await errorOf(erasures.requestMany(['alice', 'bob'], request));
    expect(await erasures.status(reference)).toMatchObject({ total: 2, complete: true });
    expect(await erasures.requestMany(['alice', 'bob'], request)).toMatchObject({ total: 2, complete: true });
  });

  it('names the earlier reference when the caller would have received that one', async () => {
    const { reference } = await erasures.request({ uid: 'alice', mode: 'delete' });
    jest.spyOn(storage, 'reference').mockRejectedValue(new StorageError('no answer'));
    await expect(erasures.request({ uid: 'alice', mode: 'delete' })).rejects.toMatchObject({ reference });
  });
});

describe('the events of an erasure', () => {
  const many = { reference: 'list', mode: 'delete' } as const;
  const one = { ...many, reference: 'one', uid: 'alice' } as const;

  it('say once that it was requested, however often it is', async () => {
    for (let n = 0; n < 3; n += 1) await erasures.request(one);
    for (let n = 0; n < 3; n += 1) await erasures.requestMany(['alice', 'bob'], many);
    expect(events()).toEqual(['erasure-requested', 'erasure-requested']);
  });

  it('say again that it was requested when a user was added', async () => {
    await erasures.request(one);
    await erasures.request({ ...one, uid: 'bob' });
    expect(events()).toEqual(['erasure-requested', 'erasure-requested']);
  });

  it('say nothing of a list of nobody, which is refused', async () => {
    await expect(erasures.requestMany([], many)).rejects.toBeInstanceOf(InvalidArgumentError);
    expect(events()).toEqual([]);
  });

  it('say that it was paused or resumed only when it was not before', async () => {
    await erasures.request(one);
    await erasures.resume('one'); // it was never paused
    for (let n = 0; n < 2; n += 1) await erasures.pause('one');
    for (let n = 0; n < 2; n += 1) await erasures.resume('one');
    expect(events()).toEqual(['erasure-requested', 'erasure-paused', 'erasure-resumed']);
  });

  it('say nothing when what is finished is paused, resumed or canceled again', async () => {
    await erasures.request(one);
    await erasures.cancel('one');
    expect(events()).toEqual(['erasure-requested', 'erasure-canceled', 'erasure-finished']);
    const canceled = { state: 'canceled', canceled: 1, finishedAt: expect.any(Date) };
    for (const change of ['pause', 'resume', 'cancel'] as const)
      expect(await erasures[change]('one')).toMatchObject(canceled);
    expect(events()).toHaveLength(3);
  });
});
