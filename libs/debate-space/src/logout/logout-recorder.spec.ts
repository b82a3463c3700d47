import { describe, expect, it } from '@jest/globals';
import { StorageError } from '../errors.js';
import type { DebateSpaceEvent } from '../events.js';
import { Secret } from '../secrets/secret.js';
import { Keyring } from '../secrets/keyring.js';
import type { SessionEnd } from '../session-end/session-end.js';
import { memoryStorage } from '../storage/memory-storage.js';
import type { Storage } from '../storage/storage.js';
import { StorageWatch } from '../storage/storage-watch.js';
import { LogoutQueues } from './logout-queues.js';
import { LogoutRecorder } from './logout-recorder.js';
import { LogoutRepository } from './logout-repository.js';

const HOUR = 3_600_000;
const endOf = (uid: string): SessionEnd => ({ uid, reason: 'destroyed', endedAt: new Date() });
const silent = <T>(): Promise<T> => new Promise(() => undefined);

/**
 * @param broken methods of the storage that take the place of its own
 * @param isDurable whether there is a memory beside the storage
 */
async function recording(broken: Partial<Storage> = {}, isDurable = true) {
  const uids = new Keyring([new Secret('a storage key of a test')], 'app');
  const { storage } = await memoryStorage().open('app');
  const { storage: inMemory } = await memoryStorage().open('app');
  const own = { ...broken };
  Object.assign(storage, broken);
  const queues = new LogoutQueues(
    new LogoutRepository(storage, uids, HOUR),
    isDurable ? new LogoutRepository(inMemory, uids, HOUR) : undefined,
  );
  const events: DebateSpaceEvent[] = [];
  const emit = (event: DebateSpaceEvent): void => void events.push(event);
  const watch = new StorageWatch(storage, undefined, emit);
  let added = 0;
  const onAdded = (): void => void (added += 1);
  const recorder = new LogoutRecorder({ queues, watch, storageTimeoutMs: 20, emit, onAdded });
  const repair = (): void => {
    for (const name of Object.keys(own) as (keyof Storage)[]) Reflect.deleteProperty(storage, name);
  };
  return { recorder, queues, watch, events, repair, added: () => added };
}

const typesOf = (events: readonly DebateSpaceEvent[]): string[] => events.map(({ type }) => type);

describe('the end of a session', () => {
  it('is stored with its uid sealed, and wakes the runner', async () => {
    const { recorder, queues, events, added } = await recording();
    await recorder.record(endOf('alice'));
    const [row] = await queues.stored.storage.listLogouts('waiting', 10);
    expect(JSON.stringify(row)).not.toContain('alice');
    expect(row && queues.stored.entryOf(row)).toMatchObject({ uid: 'alice', reason: 'destroyed' });
    expect(events).toMatchObject([{ type: 'session-ended', uid: 'alice', reason: 'destroyed' }]);
    expect(added()).toBe(1);
  });

  it('is a fault, and not stored, for a uid that the service cannot know', async () => {
    const { recorder, queues, events } = await recording();
    await recorder.record(endOf('..'));
    expect(await queues.counts()).toEqual({ pending: 0, parked: 0 });
    expect(events).toEqual([{ type: 'fault', where: 'the uid has a dot segment', error: 'InvalidUidError' }]);
  });

  it.each([
    ['fails', () => Promise.reject(new StorageError('the disk is full')), 'the disk is full'],
    ['does not answer', silent, 'it did not answer in time'],
  ] as const)(
    'goes to memory when the storage %s, and one event says so',
    async (_what, addLogouts, cause) => {
      const { recorder, queues, watch, events, added } = await recording({ addLogouts });
      await recorder.record(endOf('alice'));
      await recorder.record(endOf('bob'));
      expect(await queues.memoryCounts()).toMatchObject({ pending: 2 });
      expect(watch.isDegraded).toBe(true);
      expect(events.filter(({ type }) => type === 'storage-degraded')).toEqual([
        { type: 'storage-degraded', cause },
      ]);
      expect(added()).toBe(2);
    },
  );

  it.each([true, false])(
    'that another process has reported is neither stored nor told (durable: %p)',
    async (isDurable) => {
      const { recorder, queues, events, added } = await recording({}, isDurable);
      await recorder.record(endOf('alice'), () => Promise.resolve(false));
      expect(await queues.counts()).toEqual({ pending: 0, parked: 0 });
      expect([events, added()]).toEqual([[], 0]);
    },
  );
});

describe('a logout that waits in memory', () => {
  const addLogouts = (): Promise<void> => Promise.reject(new StorageError('away'));

  it('moves to the storage at the shutdown', async () => {
    const { recorder, queues, repair } = await recording({ addLogouts });
    await recorder.record(endOf('alice'));
    repair();
    expect(await recorder.flush()).toBe(0);
    const [row] = await queues.stored.storage.listLogouts('waiting', 10);
    expect(row && queues.stored.entryOf(row)?.uid).toBe('alice');
  });

  it('is counted as lost when the storage is away until the end', async () => {
    const { recorder } = await recording({ addLogouts });
    await recorder.record(endOf('alice'));
    expect(await recorder.flush()).toBe(1);
  });

  it('ends the state degraded only when the storage takes writes again', async () => {
    const pause = (): Promise<void> => Promise.reject(new StorageError('read-only'));
    const { recorder, watch, events, repair } = await recording({ addLogouts, pause });
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
  const { recorder, queues } = await recording();
  await recorder.request('alice');
  recorder.close();
  await expect(recorder.request('bob')).rejects.toMatchObject({ code: 'ERR_DEBATE_SPACE_ABORTED' });
  expect(await queues.counts()).toMatchObject({ pending: 1, parked: 0 });
});

it('an emptied storage is reported once', async () => {
  let birth: string | undefined = 'one';
  const { watch, events } = await recording({ birth: () => Promise.resolve(birth) });
  await watch.look();
  birth = 'another';
  await watch.look();
  birth = undefined;
  await watch.look();
  expect(watch.isEmptied).toBe(true);
  expect(events).toEqual([{ type: 'storage-emptied', place: undefined }]);
});
