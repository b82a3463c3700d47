import { afterEach, beforeEach, describe, expect, it, jest } from '@jest/globals';
import { ErasureRoom } from '#support/service/erasure-room.js';
import { firstValueFrom, lastValueFrom, toArray } from 'rxjs';
import { ErasureError, StorageError } from '../errors.js';
import { MemoryStorage } from '../storage/memory-storage.js';
import type { ErasureProgress } from './erasure.js';
import { watchProgress, type JobPace } from './erasure-progress.js';

const NO_LIMIT: JobPace = { jobsPerMinute: Infinity, jobWaitMs: () => 0 };
const uidsOf = (count: number): string[] => Array.from({ length: count }, (_, n) => `user-${n}`);

let storage: MemoryStorage;
let room: ErasureRoom;
let shutdown: AbortController;
beforeEach(() => {
  jest.useFakeTimers();
  storage = new MemoryStorage();
  room = new ErasureRoom(storage);
  shutdown = new AbortController();
});
afterEach(() => {
  jest.useRealTimers();
});
const progressOf = (reference: string, pace = NO_LIMIT) =>
  watchProgress(room.repository, reference, pace, shutdown.signal);

/** What the watch has seen so far. */
function watched(pace = NO_LIMIT): ErasureProgress[] {
  const seen: ErasureProgress[] = [];
  progressOf('r', pace).subscribe((progress) => seen.push(progress));
  return seen;
}
/** Erases so many users in every second. */
async function workFor(seconds: number, perSecond: number): Promise<void> {
  for (let n = 0; n < seconds; n += 1) {
    await jest.advanceTimersByTimeAsync(1_000);
    await room.work(perSecond);
  }
}

describe('the progress of a reference', () => {
  it('has the pace at which its users are erased, and the time that is left', async () => {
    await room.requestList('r', uidsOf(100));
    const seen = watched();
    await workFor(10, 5);
    expect(seen.at(0)).toMatchObject({ waiting: 100, perMinute: 0 });
    expect(seen.at(0)).not.toHaveProperty('msLeft');
    const { perMinute = 0, msLeft = 0, waiting = 0 } = seen.at(-1) ?? {};
    expect(waiting).toBeLessThanOrEqual(55);
    expect(Math.abs(perMinute - 300)).toBeLessThan(50);
    expect(Math.abs(msLeft - 10_000)).toBeLessThan(2_500);
  });

  it('does not count the time of a pause', async () => {
    await room.requestList('r', uidsOf(100));
    const seen = watched();
    await room.erasures.pause('r');
    await workFor(30, 5);
    expect(seen.at(-1)).toMatchObject({ state: 'paused', perMinute: 0 });
    await room.erasures.resume('r');
    await workFor(5, 5);
    expect(seen.at(-1)?.perMinute).toBeGreaterThan(200);
  });

  it('says how long the limit holds up the next user and the last one', async () => {
    await room.requestList('r', uidsOf(10));
    const seen = watched({ jobsPerMinute: 10, jobWaitMs: (jobs) => jobs * 1_000 });
    await workFor(2, 0);
    expect(seen.at(-1)).toMatchObject({ waitMs: 1_000, msLeft: 10_000 });
    await room.work(1); // perhaps another process, which has a slot
    await jest.advanceTimersByTimeAsync(1_000);
    expect(seen.find(({ done }) => done === 1)).not.toHaveProperty('waitMs');
  });

  it('comes at once when this process changes the reference, and ends with the work', async () => {
    await room.request('r', ['alice', 'bob']);
    const all = lastValueFrom(progressOf('r').pipe(toArray()));
    await jest.advanceTimersByTimeAsync(0);
    await room.work(1);
    await jest.advanceTimersByTimeAsync(200);
    await room.work(1);
    await jest.advanceTimersByTimeAsync(200);
    expect((await all).map(({ state, done }) => [state, done])).toEqual([
      ['waiting', 0],
      ['running', 1],
      ['done', 2],
    ]);
  });

  it('goes on after a look that does not reach the storage', async () => {
    await room.request('r', ['alice']);
    jest.spyOn(storage, 'reference').mockRejectedValueOnce(new StorageError('no answer'));
    const first = firstValueFrom(progressOf('r'));
    await jest.advanceTimersByTimeAsync(1_000);
    expect(await first).toMatchObject({ waiting: 1 });
  });

  it('fails when there is no such reference, and ends with the app', async () => {
    const failed = expect(lastValueFrom(progressOf('none'))).rejects.toThrow(ErasureError);
    await jest.advanceTimersByTimeAsync(0);
    await failed;
    await room.request('r', ['alice']);
    const all = lastValueFrom(progressOf('r').pipe(toArray()));
    await jest.advanceTimersByTimeAsync(0);
    shutdown.abort();
    expect(await all).toHaveLength(1);
  });
});
