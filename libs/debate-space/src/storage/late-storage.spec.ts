import { afterEach, describe, expect, it, jest } from '@jest/globals';
import { StorageError } from '../errors.js';
import type { DebateSpaceEvent } from '../events.js';
import { LateStorage } from './late-storage.js';
import { memoryStorage } from './memory-storage.js';
import type { OpenStorage, StorageEngine } from './engine.js';
import { StorageWatch } from './storage-watch.js';

const unreachable = new StorageError('Postgres failed (ECONNREFUSED)', 'check that it runs', {
  unreachable: true,
});
const refused = new StorageError('Postgres failed (28P01: wrong user or password)', 'correct the password');

/** A storage that nothing has answered for, whose next tries fail with these errors. */
function late(...failures: readonly Error[]) {
  const events: DebateSpaceEvent[] = [];
  const open = jest.fn<StorageEngine['open']>((application) => memoryStorage().open(application));
  for (const failure of failures) open.mockRejectedValueOnce(failure);
  const storage = new LateStorage({ ...memoryStorage(), open }, 'app', unreachable);
  const watch = new StorageWatch(storage, (event) => events.push(event));
  return {
    ...{ events, open, storage: storage.storage, watch },
    types: () => events.map(({ type }) => type),
  };
}

describe('a storage that nothing answers for at the boot', () => {
  afterEach(() => {
    jest.useRealTimers();
  });

  it('rejects each call until it answers, and is used from then on', async () => {
    const { storage, watch, events, types } = late();
    await expect(storage.counts('logout')).rejects.toMatchObject({ unreachable: true });
    expect(() => storage.within?.({ query: jest.fn<() => Promise<unknown>>() })).toThrow(StorageError);
    watch.start();
    expect([watch.isOpen, watch.isDegraded]).toEqual([false, true]);
    await watch.look();
    expect([watch.isOpen, watch.isDegraded]).toEqual([true, false]);
    expect(await storage.counts('logout')).toMatchObject({ waiting: 0 });
    expect(Reflect.get(storage, 'within')).toBeUndefined();
    expect(events[0]).toEqual({ type: 'storage-degraded', cause: 'Postgres failed (ECONNREFUSED)' });
    expect(types()).toEqual(['storage-degraded', 'storage-recovered']);
    await watch.stop();
  });

  it('is tried every 1.5 s while nothing answers, and once a minute when it answers and refuses', async () => {
    jest.useFakeTimers();
    const { watch, open, types } = late(unreachable, unreachable, refused, refused);
    watch.start();
    await jest.advanceTimersByTimeAsync(3_100);
    expect(open).toHaveBeenCalledTimes(3);
    expect(watch.refusal).toBe('Postgres failed (28P01: wrong user or password)');
    await jest.advanceTimersByTimeAsync(58_000);
    expect(open).toHaveBeenCalledTimes(3);
    await jest.advanceTimersByTimeAsync(4_000);
    expect(open).toHaveBeenCalledTimes(4);
    await jest.advanceTimersByTimeAsync(63_000);
    expect([watch.refusal, watch.isDegraded]).toEqual([undefined, false]);
    const refusals = ['storage-refused', 'storage-refused'];
    expect(types()).toEqual(['storage-degraded', ...refusals, 'storage-recovered']);
    await watch.stop();
  });

  it('is closed when it is opened after its app has shut down', async () => {
    const opened = await memoryStorage().open('app');
    const close = jest.spyOn(opened.storage, 'close');
    const { open, storage, watch } = late();
    let answer: (opened: OpenStorage) => void = jest.fn();
    open.mockReturnValueOnce(new Promise((resolve) => (answer = resolve)));
    const looking = watch.look();
    await storage.close();
    answer(opened);
    await looking;
    expect(close).toHaveBeenCalled();
    expect(watch.isOpen).toBe(false);
  });
});
