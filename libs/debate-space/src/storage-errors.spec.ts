import { describe, expect, it, jest } from '@jest/globals';
import { memoryStorage, StorageError as JobsStorageError, type Storage } from 'durable-jobs';
import { StorageError, ownError, transact } from './errors.js';

const context = {
  namespace: 'app',
  families: ['a'],
  contained: (work: () => void): void => {
    work();
  },
};

describe('the error of a storage', () => {
  it('is that of this package, with the same words', () => {
    const error = ownError(new JobsStorageError('It fails', 'repair it'));
    expect(error).toBeInstanceOf(StorageError);
    expect(error).toMatchObject({ code: 'ERR_DEBATE_SPACE_STORAGE', problem: 'It fails', hint: 'repair it' });
    expect(String(error)).toBe('StorageError: It fails; hint: repair it');
  });

  it('stays as it is when it is one of this package, or another', () => {
    for (const error of [new StorageError('It fails'), new TypeError('other'), undefined])
      expect(ownError(error)).toBe(error);
  });

  it('is that of this package when others change the same records all the time', async () => {
    jest.spyOn(Math, 'random').mockReturnValue(0);
    const storage: Storage = Object.assign(await memoryStorage().open(context), { commit: () => false });
    const change = transact(storage, (transaction) => {
      transaction.set('a:1', '1');
    });
    await expect(change).rejects.toBeInstanceOf(StorageError);
    await expect(change).rejects.toThrow(/changed the same records 50 times.*hint: repeat the call/);
    jest.restoreAllMocks();
  });
});
