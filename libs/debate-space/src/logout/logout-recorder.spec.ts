import { describe, expect, it, jest } from '@jest/globals';
import { StorageError } from '../errors.js';
import type { DebateSpaceEvent } from '../events.js';
import { Secret } from '../secrets/secret.js';
import { Keyring } from '../secrets/keyring.js';
import type { SessionEnd } from '../session-end/session-end.js';
import { MemoryStorage } from '../storage/memory-storage.js';
import type { Storage } from '../storage/storage.js';
import { StorageWatch } from '../storage/storage-watch.js';
import { LogoutRecorder } from './logout-recorder.js';
import { LogoutRepository } from './logout-repository.js';
import { Logouts } from './logouts.js';

const HOUR = 3_600_000;
const endOf = (uid: string): SessionEnd => ({ uid, reason: 'destroyed', endedAt: new Date() });
const silent = <T>(): Promise<T> => new Promise(() => undefined);

/**
 * @param broken methods of the storage that take the place of its own
 * @param isDurable whether there is a memory beside the storage
 */
function recording(broken: Partial<Storage> = {}, isDurable = true, isFirst?: () => Promise<boolean>) {
  const uids = new Keyring([new Secret('a storage key of a test')], 'app');
  const storage: Storage = Object.assign(new MemoryStorage(), broken);
  const inMemory = new MemoryStorage();
  const logouts = new Logouts(
    new LogoutRepository(storage, uids, HOUR),
    isDurable ? new LogoutRepository(inMemory, uids, HOUR) : undefined,
  );
  const events: DebateSpaceEvent[] = [];
  const emit = (event: DebateSpaceEvent): void => void events.push(event);
  const watch = new StorageWatch({ storage, place: undefined, warnings: [] }, emit);
  const woken: string[] = [];
  const lane = (name: string) => ({ wake: () => void woken.push(name) });
  const lanes = { stored: lane('stored'), memory: lane('memory') };
  const liveSessions = isFirst && { end: isFirst, endExpired: isFirst };
  const recorder = new LogoutRecorder({ logouts, lanes, liveSessions, watch, storageTimeoutMs: 20, emit });
  const repair = (): void => {
    for (const name of Object.keys(broken)) Reflect.deleteProperty(storage, name);
  };
  return { recorder, logouts, storage, inMemory, watch, events, repair, woken };
}

const typesOf = (events: readonly DebateSpaceEvent[]): string[] => events.map(({ type }) => type);

describe('the end of a session', () => {
  it('is stored with its uid sealed, and wakes the lane', async () => {
    const { recorder, logouts, storage, events, woken } = recording();
    await recorder.record(endOf('alice'));
    const [row] = await storage.listLogouts('waiting', 10);
    expect(JSON.stringify(row)).not.toContain('alice');
    expect(row && logouts.stored.entryOf(row)).toMatchObject({ uid: 'alice', reason: 'destroyed' });
    expect(events).toMatchObject([{ type: 'session-ended', uid: 'alice', reason: 'destroyed' }]);
    expect(woken).toEqual(['stored']);
  });

  it('is a fault, and not stored, for a uid that the service cannot know', async () => {
    const { recorder, logouts, events } = recording();
    await recorder.record(endOf('..'));
    expect(await logouts.counts()).toEqual({ pending: 0, parked: 0 });
    expect(events).toEqual([{ type: 'fault', where: 'the uid has a dot segment', error: 'InvalidUidError' }]);
  });

  it.each([
    ['fails', () => Promise.reject(new StorageError('the disk is full')), 'the disk is full'],
    ['does not answer', () => silent<never>(), 'it did not answer in time'],
  ] as const)('goes to memory when the storage %s, and one event says so', async (_what, broken, cause) => {
    const addLogouts = jest.fn((): Promise<never> => broken());
    const { recorder, logouts, watch, events, woken } = recording({ addLogouts, birth: broken });
    await recorder.record(endOf('alice'));
    await recorder.record(endOf('bob'));
    expect(await logouts.memoryCounts()).toMatchObject({ pending: 2 });
    expect(watch.isDegraded).toBe(true);
    expect(events.filter(({ type }) => type === 'storage-degraded')).toEqual([
      { type: 'storage-degraded', cause },
    ]);
    expect(woken).toEqual(['memory', 'memory']);
    jest.spyOn(performance, 'now').mockReturnValue(performance.now() + 1_000);
    await recorder.record(endOf('carol')); // does not wait: the storage has been away for a second
    jest.restoreAllMocks();
    expect(addLogouts).toHaveBeenCalledTimes(2);
    expect(await logouts.memoryCounts()).toMatchObject({ pending: 3 });
  });

  it('is withdrawn from the storage when it has gone to memory, so that it is delivered once', async () => {
    const late: (AbortSignal | undefined)[] = [];
    const addLogouts: Storage['addLogouts'] = (_rows, signal) => {
      late.push(signal);
      return silent();
    };
    const { recorder, logouts } = recording({ addLogouts });
    await recorder.record(endOf('alice'));
    expect(late.map((signal) => signal?.aborted)).toEqual([true]);
    expect(await logouts.memoryCounts()).toMatchObject({ pending: 1 });
  });

  const expired = { id: 'a', subject: 'b', sealed: 'c', token: 'd', expiresAt: 0 };

  it('is announced and wakes the lane when a sweep is the first that finds it', async () => {
    const { recorder, events, woken } = recording({}, true, () => Promise.resolve(true));
    await recorder.recordExpired(expired, 'alice');
    expect(events).toMatchObject([{ type: 'session-ended', uid: 'alice', reason: 'expired' }]);
    expect(woken).toEqual(['stored']);
  });

  it.each([true, false])(
    'that another process has reported is neither stored nor announced (durable: %p)',
    async (isDurable) => {
      const { recorder, logouts, events, woken } = recording({}, isDurable, () => Promise.resolve(false));
      await recorder.record(endOf('alice'), 'a session id');
      await recorder.recordExpired(expired, 'alice');
      expect(await logouts.counts()).toEqual({ pending: 0, parked: 0 });
      expect([events, woken]).toEqual([[], []]);
    },
  );
});

describe('logouts that wait in memory', () => {
  const addLogouts = (): Promise<void> => Promise.reject(new StorageError('away'));
  const birth = (): Promise<never> => Promise.reject(new StorageError('away'));
  const uids = (count: number): readonly string[] => Array.from({ length: count }, (_, n) => `user-${n}`);

  it('move to the storage at the shutdown, all 1,500 of them', async () => {
    const { recorder, logouts, storage, repair } = recording({ addLogouts, birth });
    for (const uid of uids(1_500)) await recorder.record(endOf(uid));
    repair();
    expect(await logouts.moveToStorage(5_000)).toBe(0);
    const stored = await storage.listLogouts('waiting', Infinity);
    expect(new Set(stored.map((row) => logouts.stored.entryOf(row)?.uid))).toEqual(new Set(uids(1_500)));
  });

  it('count as lost when the storage is away until the end, or does not take all of them in time', async () => {
    const { recorder, logouts, storage, repair } = recording({ addLogouts, birth });
    for (const uid of uids(40)) await recorder.record(endOf(uid));
    expect(await logouts.moveToStorage(5_000)).toBe(40);
    repair();
    const add = storage.addLogouts.bind(storage);
    let left = 39;
    const late: (AbortSignal | undefined)[] = [];
    storage.addLogouts = (rows, signal) => {
      late.push(signal);
      return left-- > 0 ? add(rows) : silent();
    };
    expect(await logouts.moveToStorage(50)).toBe(1);
    expect(late.at(-1)?.aborted).toBe(true); // withdrawn, and not stored after it was counted
    expect(await storage.counts('logout')).toMatchObject({ waiting: 39 });
  });

  it('are listed, retried and discarded when they are parked, before those of the storage', async () => {
    const { recorder, logouts, storage, inMemory, repair } = recording();
    const parkAll = async (place: Storage): Promise<void> => {
      const { claims } = await place.claim('logout', 10);
      for (const claim of claims) await place.park(claim, 'a hint', { ...claim, cause: '401' });
    };
    for (const uid of ['s1', 's2']) await recorder.record(endOf(uid));
    await parkAll(storage);
    Object.assign(storage, { addLogouts, birth });
    for (const uid of ['m1', 'm2']) await recorder.record(endOf(uid));
    await parkAll(inMemory);
    const page = async (limit: number, skip: number) =>
      (await logouts.parked(limit, skip)).map(({ uid }) => uid);
    expect(await page(10, 0)).toEqual(['m1', 'm2', 's1', 's2']);
    expect([await page(2, 0), await page(2, 1), await page(2, 3)]).toEqual([
      ['m1', 'm2'],
      ['m2', 's1'],
      ['s2'],
    ]);
    const [m1, m2, s1] = (await logouts.parked(10, 0)).map(({ id }) => id);
    expect([
      await logouts.retry(m1 ?? ''),
      await logouts.discard(m2 ?? ''),
      await logouts.retry('x'),
    ]).toEqual([true, true, false]);
    expect(await logouts.memoryCounts()).toMatchObject({ pending: 1, parked: 0 });
    repair();
    const statesOf = async (uid: string) => (await logouts.history(uid)).map(({ state }) => state);
    expect([await statesOf('m1'), await statesOf('m2'), await statesOf('s2')]).toEqual([
      ['pending'],
      ['discarded'],
      ['parked'],
    ]);
    await logouts.forget('m1');
    expect(await statesOf('m1')).toEqual(['superseded']);
    expect(await logouts.discard(s1 ?? '')).toBe(true);
    expect(await page(10, 0)).toEqual(['s2']);
  });

  it('are listed, retried and found while the storage cannot be read', async () => {
    const read = (): Promise<never> => Promise.reject(new StorageError('away'));
    const reads = { listLogouts: read, retryLogout: read, logoutsOf: read };
    const { recorder, logouts, inMemory } = recording({ addLogouts, birth, ...reads });
    await recorder.record(endOf('m1'));
    for (const claim of (await inMemory.claim('logout', 1)).claims)
      await inMemory.park(claim, 'a hint', claim);
    const [parked, ...others] = await logouts.parked(10, 0);
    expect([parked?.uid, others]).toEqual(['m1', []]);
    expect(await logouts.retry(parked?.id ?? '')).toBe(true);
    expect(await logouts.history('m1')).toMatchObject([{ state: 'pending' }]);
    await expect(logouts.retry('x')).rejects.toThrow(StorageError);
  });

  it('end the state degraded only when the storage takes writes again', async () => {
    const pause = (): Promise<void> => Promise.reject(new StorageError('read-only'));
    const { recorder, watch, events, repair } = recording({ addLogouts, pause });
    await recorder.record(endOf('alice'));
    await watch.look();
    expect(watch.isDegraded).toBe(true);
    repair();
    await watch.look();
    expect(watch.isDegraded).toBe(false);
    expect(typesOf(events)).toEqual(['session-ended', 'storage-degraded', 'storage-recovered']);
  });
});

it('a logout that the host requests is refused when the app is shutting down', async () => {
  const { recorder, logouts } = recording();
  await recorder.request('alice');
  recorder.close();
  await expect(recorder.request('bob')).rejects.toMatchObject({ code: 'ERR_DEBATE_SPACE_ABORTED' });
  expect(await logouts.counts()).toMatchObject({ pending: 1, parked: 0 });
});

it('an emptied storage is reported once', async () => {
  let birth: string | undefined = 'one';
  const { watch, events } = recording({ birth: () => Promise.resolve(birth) });
  await watch.look();
  birth = 'another';
  await watch.look();
  birth = undefined;
  await watch.look();
  expect(watch.isEmptied).toBe(true);
  expect(events).toEqual([{ type: 'storage-emptied', place: undefined }]);
});
