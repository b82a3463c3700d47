import { beforeEach, describe, expect, it } from '@jest/globals';
import { memoryStorage } from './memory.js';
import { recordText, UnreadableRecord, type RecordType, transact, Transaction } from './transaction.js';
import type { Storage, StorageValues } from './storage.js';

interface Job {
  readonly id: string;
  readonly user: string;
  readonly state: 'pending' | 'parked';
  readonly dueAt?: number;
}

const jobs: RecordType<Job> = {
  version: 2,
  key: ({ id, state }) => `${state}:${id}`,
  indexes: ({ id, user, dueAt }) => [
    `user:${user}:${id}`,
    ...(dueAt === undefined ? [] : [`due:${dueAt}:${id}`]),
  ],
  isRecord: (value): value is Job => 'id' in value && 'user' in value && 'state' in value,
};
const job = (more: Partial<Job> = {}): Job => ({ id: '1', user: 'u', state: 'pending', dueAt: 5, ...more });
const context = {
  namespace: 'app',
  families: ['pending', 'parked', 'user', 'due', 'row'],
  contained: (work: () => void): void => {
    work();
  },
};

describe('a transaction', () => {
  let storage: Storage;
  let commits: [checks: StorageValues, changes: StorageValues][];
  beforeEach(async () => {
    const memory = await memoryStorage().open(context);
    commits = [];
    storage = Object.create(memory, {
      commit: {
        value: (checks: StorageValues, changes: StorageValues): unknown => {
          commits.push([checks, changes]);
          return memory.commit(checks, changes);
        },
      },
      get: { value: (keys: string[]): unknown => memory.get(keys) },
      range: { value: memory.range.bind(memory) },
      close: { value: memory.close.bind(memory) },
    }) as Storage;
  });

  async function rows(): Promise<Record<string, string>> {
    const all = context.families.map(async (family) =>
      storage.range(`${family}:`, `${family};`, { limit: 100 }),
    );
    return Object.fromEntries((await Promise.all(all)).flat());
  }
  const put = (...records: Job[]): Promise<void> =>
    transact(storage, async (transaction) => {
      for (const record of records) await transaction.put(jobs, record);
    });

  it('makes its changes if nothing that it has read has changed', async () => {
    const [one, other] = [new Transaction(storage), new Transaction(storage)];
    for (const transaction of [one, other]) {
      expect(await transaction.get('row:1')).toBeUndefined();
      transaction.set('row:1', 'x');
    }
    expect(await one.commit()).toBe(true);
    expect(await other.commit()).toBe(false);
    expect(await rows()).toEqual({ 'row:1': 'x' });
  });

  it('reads what it has changed, and reads nothing twice', async () => {
    await put(job());
    const transaction = new Transaction(storage);
    const first = await transaction.read(jobs, 'pending:1');
    await put(job({ dueAt: 6 }));
    expect(await transaction.read(jobs, 'pending:1')).toEqual(first);
    transaction.set('row:1', 'x');
    transaction.set('pending:1', undefined);
    expect(await transaction.getAll(['row:1', 'pending:1', 'row:1'])).toEqual(['x', undefined, 'x']);
    expect(await transaction.commit()).toBe(false);
  });

  it('commits nothing when it has changed nothing', async () => {
    await put(job());
    commits = [];
    const transaction = new Transaction(storage);
    await transaction.put(jobs, job());
    expect(await transaction.commit()).toBe(true);
    expect(commits).toEqual([]);
  });

  it('takes the index rows of a record along', async () => {
    await put(job());
    expect(await rows()).toEqual({ 'pending:1': recordText(jobs, job()), 'user:u:1': '', 'due:5:1': '' });
    commits = [];
    await put(job({ dueAt: 6 }));
    const expected = { 'pending:1': recordText(jobs, job({ dueAt: 6 })), 'user:u:1': '', 'due:6:1': '' };
    expect(await rows()).toEqual(expected);
    expect([...(commits[0]?.[1].keys() ?? [])].toSorted()).toEqual(['due:5:1', 'due:6:1', 'pending:1']);
    await transact(storage, (transaction) => transaction.remove(jobs, 'pending:1'));
    expect(await rows()).toEqual({});
  });

  it('leaves the index rows of the last of several puts', async () => {
    await put(job(), job({ dueAt: 6 }), job({ dueAt: 7, user: 'v' }));
    expect(Object.keys(await rows())).toEqual(['pending:1', 'user:v:1', 'due:7:1']);
    await put(job({ dueAt: 8 }), job({ dueAt: 7, user: 'v' }));
    expect(Object.keys(await rows())).toEqual(['pending:1', 'user:v:1', 'due:7:1']);
    await put(job({ dueAt: 8 }), job({ dueAt: 9 }), job({ dueAt: 8 }));
    expect(Object.keys(await rows())).toEqual(['pending:1', 'user:u:1', 'due:8:1']);
  });

  it('moves a record to another key', async () => {
    await put(job());
    const transaction = new Transaction(storage);
    const before = await transaction.read(jobs, 'pending:1');
    transaction.replace(jobs, before, job({ state: 'parked', dueAt: undefined }));
    expect(await transaction.commit()).toBe(true);
    expect(Object.keys(await rows())).toEqual(['parked:1', 'user:u:1']);
  });

  it('checks what its caller knows without reading', async () => {
    await put(job());
    const finish = (token: string): unknown => {
      const transaction = new Transaction(storage);
      transaction.check('due:5:1', token);
      transaction.replace(jobs, job(), undefined);
      return transaction.commit();
    };
    expect(finish('another')).toBe(false);
    expect(finish('')).toBe(true);
    expect(await rows()).toEqual({});
  });

  describe.each([
    ['damaged', '{"id":', false],
    ['no object', '[1]', false],
    ['null', 'null', false],
    ['without a version', '{"id":"1","user":"u","state":"pending"}', false],
    ['incomplete', '{"id":"1","v":2}', false],
    ['of a newer version', '{"id":"1","user":"u","state":"pending","v":3}', true],
  ])('that meets a record that is %s', (_, text, isNewer) => {
    beforeEach(async () => {
      await storage.commit(new Map(), new Map([['pending:1', text]]));
    });

    it('gives it out as it is, so that it can be put aside', async () => {
      const unreadable = await transact(storage, async (transaction) => {
        const found = await transaction.read(jobs, 'pending:1');
        if (!(found instanceof UnreadableRecord)) throw new Error('was read');
        transaction.set('row:1', found.text);
        transaction.set(found.key, undefined);
        return found;
      });
      expect(unreadable).toEqual(new UnreadableRecord('pending:1', text, isNewer));
      expect(await rows()).toEqual({ 'row:1': text });
    });

    it('can put another in its place, or remove it', async () => {
      await put(job());
      expect(await rows()).toMatchObject({ 'pending:1': recordText(jobs, job()) });
      await storage.commit(new Map(), new Map([['pending:1', text]]));
      await transact(storage, (transaction) => transaction.remove(jobs, 'pending:1'));
      expect(Object.keys(await rows())).not.toContain('pending:1');
    });
  });

  it('reads a record of an older version that has all it needs', async () => {
    await storage.commit(
      new Map(),
      new Map([['pending:1', '{"id":"1","user":"u","state":"pending","v":1}']]),
    );
    expect(await new Transaction(storage).read(jobs, 'pending:1')).toEqual({
      id: '1',
      user: 'u',
      state: 'pending',
    });
  });

  describe('repeated by transact', () => {
    it('loses none of forty increments', async () => {
      const increments = Array.from({ length: 40 }, () =>
        transact(storage, async (transaction) => {
          const next = Number((await transaction.get('row:count')) ?? 0) + 1;
          transaction.set('row:count', String(next));
          return next;
        }),
      );
      const results = await Promise.all(increments);
      expect(results.toSorted((one, other) => one - other)).toEqual(
        Array.from({ length: 40 }, (_, n) => n + 1),
      );
      expect(await rows()).toEqual({ 'row:count': '40' });
    });

    it('gives up after fifty attempts', async () => {
      let attempts = 0;
      const failing = transact(storage, (transaction) => {
        attempts += 1;
        transaction.check('row:1', 'never');
        transaction.set('row:1', 'x');
      });
      await expect(failing).rejects.toMatchObject({
        name: 'StorageError',
        message: expect.stringContaining('hint:'),
      });
      expect(attempts).toBe(50);
      expect(await rows()).toEqual({});
    });

    it('is not repeated when the work or the storage fails', async () => {
      let attempts = 0;
      const failing = transact(storage, () => {
        attempts += 1;
        throw new Error('of the work');
      });
      await expect(failing).rejects.toThrow('of the work');
      await storage.close();
      const closed = transact(storage, (transaction) => {
        attempts += 1;
        transaction.set('row:1', 'x');
      });
      await expect(closed).rejects.toMatchObject({ name: 'StorageError' });
      expect(attempts).toBe(2);
    });
  });
});
