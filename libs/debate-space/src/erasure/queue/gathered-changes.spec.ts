import { afterEach, beforeEach, describe, expect, it, jest } from '@jest/globals';
import { Clocks } from 'debate-space-fixtures/clocks.js';
import { erasureProcess, type ErasureProcess } from 'debate-space-fixtures/erasure-process.js';
import { openMemory } from 'debate-space-fixtures/outbox-engines.js';
import type { Storage } from 'durable-jobs';
import { StorageError } from '../../errors.js';
import { GatheredChanges } from './gathered-changes.js';

const erased = { outcome: 'erased', status: 200, loggedOut: true } as const;
const request = { reference: 'r', mode: 'delete' } as const;

let storage: Storage;
let app: ErasureProcess;
beforeEach(() => {
  storage = openMemory();
  app = erasureProcess(storage, new Clocks());
});
afterEach(() => {
  jest.restoreAllMocks();
});

const notes = async (): Promise<string | undefined> => app.storage.look().transaction.get('erasuredue:notes');
/** Adds a letter to a row. */
function note(changes: GatheredChanges, letter: string): Promise<string> {
  return changes.make('r', [], async ({ transaction }) => {
    const before = (await transaction.get('erasuredue:notes')) ?? '';
    if (letter === '!') throw new RangeError('no letter');
    transaction.set('erasuredue:notes', before + letter);
    return letter;
  });
}

describe('changes of one reference that come together', () => {
  it('are one commit for the sending, and one for the ends, of what is erased at the same time', async () => {
    const uids = Array.from({ length: 16 }, (_, n) => `user-${n}`);
    for (const uid of uids) await app.requests.add(request, uid);
    const claims = await app.queue.claim(uids.length);
    const commit = jest.spyOn(storage, 'commit');
    expect(await Promise.all(claims.map((claim) => app.queue.markSending(claim)))).toEqual(
      uids.map(() => true),
    );
    expect(commit).toHaveBeenCalledTimes(1);
    const ends = await Promise.all(claims.map((claim) => app.queue.finish(claim, erased)));
    expect(commit).toHaveBeenCalledTimes(2);
    expect(ends.map(({ attempts, references }) => ({ attempts, references }))).toEqual(
      uids.map(() => ({ attempts: 1, references: ['r'] })),
    );
    expect(ends.filter(({ finished }) => finished.length > 0)).toHaveLength(1);
    expect(await app.storage.status('r')).toMatchObject({ state: 'done', done: 16, waiting: 0 });
  });

  it('see what those before them have changed, and are 32 at most', async () => {
    const commit = jest.spyOn(storage, 'commit');
    const changes = new GatheredChanges(app.storage);
    const letters = Array.from({ length: 40 }, (_, n) => String.fromCharCode(97 + n));
    expect(await Promise.all(letters.map((letter) => note(changes, letter)))).toEqual(letters);
    expect(await notes()).toBe(letters.join(''));
    expect(commit).toHaveBeenCalledTimes(2);
  });

  it('take no other with them when their work fails', async () => {
    const changes = new GatheredChanges(app.storage);
    const results = await Promise.allSettled(['a', 'b', '!', 'c'].map((letter) => note(changes, letter)));
    expect(results.map(({ status }) => status)).toEqual(['fulfilled', 'fulfilled', 'rejected', 'fulfilled']);
    expect(results[2]).toMatchObject({ reason: expect.any(RangeError) });
    expect(await notes()).toBe('abc');
  });

  it('are made one by one when the storage refuses them together', async () => {
    const changes = new GatheredChanges(app.storage);
    const lost = new StorageError('gone');
    const commit = storage.commit.bind(storage);
    jest.spyOn(storage, 'commit').mockImplementation((checks, changed) => {
      if (changed.get('erasuredue:notes')?.includes('b')) throw lost;
      return commit(checks, changed);
    });
    const results = await Promise.allSettled(['a', 'b', 'c'].map((letter) => note(changes, letter)));
    expect(results).toEqual([
      { status: 'fulfilled', value: 'a' },
      { status: 'rejected', reason: lost },
      { status: 'fulfilled', value: 'c' },
    ]);
    expect(await notes()).toBe('ac');
  });

  it('leave the way free for the next when the storage fails', async () => {
    const changes = new GatheredChanges(app.storage);
    const lost = new StorageError('gone');
    const commit = jest.spyOn(storage, 'commit').mockImplementation(() => {
      throw lost;
    });
    const results = await Promise.allSettled(['a', 'b'].map((letter) => note(changes, letter)));
    expect(results).toEqual([1, 2].map(() => ({ status: 'rejected', reason: lost })));
    commit.mockRestore();
    expect(await note(changes, 'c')).toBe('c');
    expect(await notes()).toBe('c');
  });
});
