import { describe, expect, it } from '@jest/globals';
import { SharedStorage } from 'debate-space-fixtures/shared-storage.js';
import { slotWaitMs, tryAcquireSlot } from './rate-limiter.js';

const YEARS = 4 * 365 * 86_400_000;

describe('the rate limit that processes share', () => {
  it('admits no more than so many requests in any window, over all processes', async () => {
    const storage = new SharedStorage();
    storage.isAsynchronous = true;
    const admitted: number[] = [];
    while (admitted.length < 40) {
      const waits = await Promise.all([1, 2, 3].map(async () => tryAcquireSlot(storage, 5, 1_000)));
      for (const waitMs of waits) if (waitMs === 0) admitted.push(storage.time);
      storage.time += Math.min(...waits.map((waitMs) => (waitMs === 0 ? 7 : waitMs)));
    }
    for (const [n, at] of admitted.entries())
      if (n >= 5) expect(at - (admitted[n - 5] ?? 0)).toBeGreaterThan(1_000);
    expect(admitted[39]).toBeLessThan((admitted[0] ?? 0) + 7 * 1_000 + 8 * 40); // and no fewer
    expect(storage.rows('rate').length).toBeLessThanOrEqual(6);
  });

  it('does not wait for years after a clock that was ahead', async () => {
    const storage = new SharedStorage();
    storage.time += YEARS;
    expect(await tryAcquireSlot(storage, 1, 1_000)).toBe(0);
    storage.time -= YEARS;
    expect(await tryAcquireSlot(storage, 1, 1_000)).toBe(0);
    expect(await tryAcquireSlot(storage, 1, 1_000)).toBe(1_000);
  });

  it('says when the requests after the next ones have their slots, and takes none', async () => {
    const storage = new SharedStorage();
    const waitsMs = () => Promise.all([0, 1, 2, 3].map((ahead) => slotWaitMs(storage, ahead, 2, 1_000)));
    expect(await waitsMs()).toEqual([0, 0, 1_000, 1_000]);
    await tryAcquireSlot(storage, 2, 1_000);
    storage.time += 400;
    await tryAcquireSlot(storage, 2, 1_000);
    expect(await waitsMs()).toEqual([600, 1_000, 1_600, 2_000]);
    expect(await waitsMs()).toEqual([600, 1_000, 1_600, 2_000]);
  });
});
