import { describe, expect, it } from '@jest/globals';
import {
  memoryStorage,
  StorageError as JobsStorageError,
  type Storage,
  type StorageEngine,
} from 'durable-jobs';
import { StorageError } from '../errors.js';
import { openOwn } from './own-storage.js';

const context = {
  namespace: 'app',
  families: ['a'],
  contained: (work: () => void): void => {
    work();
  },
};
const own = { code: 'ERR_DEBATE_SPACE_STORAGE', problem: 'It fails', hint: 'repair it' };
const fail = (): never => {
  throw new JobsStorageError('It fails', 'repair it');
};
const reject = (): Promise<never> => Promise.reject(new JobsStorageError('It fails', 'repair it'));

/** What a call throws, or rejects with. */
async function errorOf(call: () => unknown): Promise<unknown> {
  try {
    await call();
  } catch (error) {
    return error;
  }
  throw new Error('did not fail');
}

const inMemory = { get: () => [], range: () => [], commit: () => true };

/** A storage in memory with other methods. */
async function openWith(methods: Partial<Storage>): Promise<Storage> {
  const engine = memoryStorage();
  const open: StorageEngine['open'] = async (given) => Object.assign(await engine.open(given), methods);
  return openOwn({ ...engine, open }, context);
}

const calls: Readonly<Record<string, (storage: Storage) => unknown>> = {
  get: (storage) => storage.get(['a:1']),
  range: (storage) => storage.range('a:', 'a;', { limit: 1 }),
  count: (storage) => storage.count('a'),
  commit: (storage) => storage.commit(new Map(), new Map()),
  close: (storage) => storage.close(),
};
const inTransaction = ['get', 'range', 'commit'];
const failures = [
  ['throws', fail],
  ['rejects with', reject],
] as const;

describe('an opened storage', () => {
  describe.each(failures)('that %s an error of durable-jobs', (_, failing) => {
    it('has that of this package where it cannot be opened', async () => {
      const error = await errorOf(() => openOwn({ ...memoryStorage(), open: failing }, context));
      expect(error).toBeInstanceOf(StorageError);
      expect(error).toMatchObject(own);
    });

    it.each(Object.entries(calls))('has that of this package from %s', async (method, call) => {
      const storage = await openWith({ [method]: failing });
      const error = await errorOf(() => call(storage));
      expect(error).toBeInstanceOf(StorageError);
      expect(error).toMatchObject(own);
    });

    it.each(inTransaction)(
      'has that of this package from %s in a transaction of the host',
      async (method) => {
        const storage = await openWith({
          within: () => ({ ...inMemory, [method]: failing }),
        });
        const view = storage.within?.({ query: () => Promise.resolve() }) as Storage;
        expect(await errorOf(() => calls[method]?.(view))).toMatchObject(own);
      },
    );
  });

  it('has the error of this package where a transaction of the host is not taken', async () => {
    const storage = await openWith({ within: fail });
    expect(await errorOf(() => storage.within?.({ query: () => Promise.resolve() }))).toMatchObject(own);
  });

  it('leaves every other error as it is', async () => {
    const other = new TypeError('of the connection of the host');
    const storage = await openWith({ get: () => Promise.reject(other), count: () => fail() });
    expect(await errorOf(() => storage.get([]))).toBe(other);
  });

  it('answers synchronously where the engine does, and throws so', async () => {
    const storage = await openWith({ count: fail });
    expect(storage.commit(new Map([['a:1', undefined]]), new Map([['a:1', '1']]))).toBe(true);
    expect(storage.get(['a:1'])).toEqual(['1']);
    expect(storage.range('a:', 'a;', { limit: 1 })).toEqual([['a:1', '1']]);
    expect(() => storage.count('a')).toThrow(StorageError);
    expect(storage.close()).toBeUndefined();
  });

  it('says of the place what the engine says, also what it notices later', async () => {
    const said = { place: 'the folder /data', key: 'a key', warnings: [{ problem: 'p', hint: 'h' }] };
    const inner = Object.assign(await memoryStorage().open(context), said, { now: () => 7 });
    const storage = await openOwn({ ...memoryStorage(), open: () => inner }, context);
    const { place, key, warnings, wasEmptied } = storage;
    expect({ place, key, warnings, wasEmptied }).toEqual({ ...said, wasEmptied: undefined });
    Object.assign(inner, { wasEmptied: true });
    expect([storage.now(), storage.wasEmptied]).toEqual([7, true]);
  });

  it('has no transactions of the host where the engine has none', async () => {
    expect((await openWith({})) as { within?: unknown }).toHaveProperty('within', undefined);
  });
});
