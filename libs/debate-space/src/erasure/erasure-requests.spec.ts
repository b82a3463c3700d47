import { describe, expect, it } from '@jest/globals';
import { ErasureRoom } from '#support/service/erasure-room.js';
import { ErasureError, InvalidArgumentError } from '../errors.js';
import { MemoryStorage } from '../storage/memory-storage.js';
import type { NamedRequest } from './erasure-repository.js';
import { addUser, countRequested, namedRequest, openReference } from './erasure-requests.js';

const uidsOf = (count: number): string[] => Array.from({ length: count }, (_, n) => `user-${n}`);
const roomOf = () => new ErasureRoom(new MemoryStorage());
const conflict = (problem: string) => ({
  name: ErasureError.name,
  code: 'ERR_DEBATE_SPACE_ERASURE_CONFLICT',
  message: problem,
});
const READ_BY_OTHER = 'another call has begun to read a list for this reference';

describe('what a request for erasures says beside the uids', () => {
  it.each([[undefined], [null], ['all'], [{}]])('is refused as %j, with what is missing', (given) => {
    const attempt = () => namedRequest(given as unknown as NamedRequest);
    expect(attempt).toThrow(InvalidArgumentError);
    expect(attempt).toThrow("mode must be 'anonymize' or 'delete'");
  });

  it.each(Array.from('\u061c\u200e\u200f\u202a\u202b\u202c\u202d\u202e\u2066\u2067\u2068\u2069'))(
    'is refused with a reference that turns text around (%j)',
    (control) => {
      const attempt = () => namedRequest({ mode: 'delete', reference: `GDPR-${control}1` });
      expect(attempt).toThrow(InvalidArgumentError);
      expect(attempt).toThrow(
        'reference must be a text of 1 to 128 characters, without control characters, controls',
      );
    },
  );

  it('may have a reference in any script', () => {
    expect(namedRequest({ mode: 'delete', reference: 'בקשה 7' }).reference).toBe('בקשה 7');
  });
});

describe('a request for one user', () => {
  it('is a change only the first time', async () => {
    const room = roomOf();
    const request = { reference: 'r', mode: 'delete' } as const;
    expect(await addUser(room.repository, room.storage, request, 'alice')).toBe(true);
    expect(await addUser(room.repository, room.storage, request, 'alice')).toBe(false);
    expect(await addUser(room.repository, room.storage, request, 'bob')).toBe(true);
    expect(await room.status('r')).toMatchObject({ total: 2, waiting: 2, complete: true, state: 'waiting' });
  });

  it('calls the listeners of this process', async () => {
    const room = roomOf();
    let changes = 0;
    const stop = room.repository.onChange(() => (changes += 1));
    await room.request('r', ['alice', 'alice']);
    stop();
    await room.request('r', ['bob']);
    expect(changes).toBe(1);
  });

  it('is refused for a reference that stands for something else', async () => {
    const room = roomOf();
    await room.request('r', ['alice']);
    await expect(room.request('r', ['alice'], 'anonymize')).rejects.toMatchObject(
      conflict('this reference stands for another mode (delete); give another reference'),
    );
    await room.erasures.cancel('r');
    await expect(room.request('r', ['alice'])).rejects.toMatchObject(
      conflict('this reference was canceled; give another reference'),
    );
  });

  it('is found by the earlier reference only while nobody has to help that one', async () => {
    const room = roomOf();
    const found = () => openReference(room.repository, room.storage, 'alice', 'delete');
    await room.request('r', ['alice']);
    expect(await found()).toBe('r');
    expect(await openReference(room.repository, room.storage, 'alice', 'anonymize')).toBeUndefined();
    await room.erasures.pause('r');
    expect(await found()).toBeUndefined();
    await room.erasures.resume('r');
    await room.work();
    expect(await found()).toBeUndefined();
  });

  it('dates a finished reference anew, and leaves its earlier receipts as they are', async () => {
    const room = roomOf();
    await room.request('r', ['alice']);
    await room.work();
    const request = { reference: 'r', mode: 'delete', requestedBy: 'somebody else' } as const;
    await addUser(room.repository, room.storage, request, 'bob');
    const status = await room.status('r');
    expect(status).toMatchObject({ state: 'running', requestedBy: 'somebody else' });
    expect(status).not.toHaveProperty('finishedAt');
    expect(await room.receipts('r')).toMatchObject([{ requestedBy: 'for r' }]);
  });
});

describe('a request for a list', () => {
  it('erases nobody before the list is read to its end, and goes on where it was broken off', async () => {
    const room = roomOf();
    const broken = async function* (): AsyncGenerator<string> {
      yield* await Promise.resolve(uidsOf(280));
      throw new TypeError('of the source');
    };
    await expect(room.requestList('list', broken())).rejects.toThrow(TypeError);
    expect(await room.status('list')).toMatchObject({ complete: false, total: 250, state: 'waiting' });
    expect(await room.work()).toBe(0);
    await expect(room.request('list', ['alice'])).rejects.toMatchObject(
      conflict('the list of this reference is not read to its end; give another reference'),
    );
    expect(await room.requestList('list', uidsOf(300))).toBe(true);
    expect(await room.requestList('list', uidsOf(300))).toBe(false);
    while ((await room.work()) > 0);
    expect(await room.status('list')).toMatchObject({ state: 'done', total: 300, done: 300 });
  });

  it.each([1, 249, 250, 251, 500])('stores a list of %d users to its end', async (count) => {
    const room = roomOf();
    expect(await room.requestList('list', [...uidsOf(count), 'user-0'])).toBe(true);
    expect(await room.status('list')).toMatchObject({ complete: true, total: count, waiting: count });
  });

  it('is left to the last of several calls', async () => {
    const room = roomOf();
    let goOn = (): void => undefined;
    const second = new Promise<void>((resolve) => (goOn = resolve));
    const slow = async function* (): AsyncGenerator<string> {
      yield* uidsOf(250);
      await second;
      yield 'one more';
    };
    const overtaken = room.requestList('list', slow());
    const refused = expect(overtaken).rejects.toMatchObject(conflict(READ_BY_OTHER));
    while ((await room.status('list').catch(() => undefined))?.total !== 250);
    await room.requestList('list', uidsOf(251));
    goOn();
    await refused;
    await expect(room.requestList('list', ['somebody else'])).rejects.toMatchObject(
      conflict('this reference has another list, which is complete; give another reference'),
    );
    await room.request('list', ['alice']);
    expect(await room.status('list')).toMatchObject({ total: 252 });
  });
});

describe('an erasure whose storage key was replaced', () => {
  it('is found, not requested twice, and carried out under the old key', async () => {
    const storage = new MemoryStorage();
    const before = new ErasureRoom(storage);
    const room = new ErasureRoom(storage, ['a new key', 'a key']);
    await before.request('before', ['alice']);
    const { repository } = room;
    expect(await openReference(repository, storage, 'alice', 'delete')).toBe('before');
    expect(await countRequested(repository, ['alice', 'bob'], ['delete'])).toBe(1);
    expect(await countRequested(repository, ['alice', 'bob'], ['anonymize'])).toBe(0);
    await room.request('before', ['alice']);
    await room.request('after', ['alice']);
    expect(await countRequested(repository, ['alice', 'bob'], ['delete'])).toBe(1);
    expect(await storage.counts('erasure')).toMatchObject({ waiting: 2 });
    await room.work();
    expect(room.sent).toEqual(['delete alice', 'delete alice']);
    const receipts: string[] = [];
    for await (const { reference } of repository.receiptsOf('alice')) receipts.push(reference);
    expect(receipts.toSorted()).toEqual(['after', 'before']);
    await before.request('before', ['alice']);
    expect(await room.status('before')).toMatchObject({ total: 1, done: 1 });
  });
});
