import { describe, expect, it } from '@jest/globals';
import { RateLimiter, type Slot } from './rate-limiter.js';
import { SharedRateLimiter } from './shared-rate-limiter.js';

const limit = { requests: 2, perMs: 60_000 };
const never = new AbortController().signal;

describe('a rate limit over all instances', () => {
  it('lets a call through when there is a place, and asks again when there is none', async () => {
    const answers = [5, 5, 0];
    const asked: number[][] = [];
    const tryAcquire = (...limits: number[]): Promise<number> => {
      asked.push(limits);
      return Promise.resolve(answers.shift() ?? 0);
    };
    const slot = await new SharedRateLimiter(new RateLimiter(limit), tryAcquire, limit).acquire(never);
    expect(slot).toHaveProperty('release');
    expect(asked).toEqual([1, 2, 3].map(() => [2, 61_000]));
  });

  it('keeps the limit of its own process when the others cannot be asked', async () => {
    const shared = new SharedRateLimiter(new RateLimiter(limit), () => Promise.reject(new Error('gone')), limit); // prettier-ignore
    const slots = (await Promise.all([shared.acquire(never), shared.acquire(never)])) as Slot[];
    const third = shared.acquire(never);
    slots[0]?.release(false); // a place that was not used
    expect(await third).toHaveProperty('release');
  });

  it('keeps the limit of its own process when the storage does not answer, and does not ask for each call', async () => {
    let asked = 0;
    const silent = (): Promise<number> => {
      asked += 1;
      return new Promise(() => undefined);
    };
    const shared = new SharedRateLimiter(new RateLimiter(limit), silent, limit);
    const slots = await Promise.all([shared.acquire(never), shared.acquire(never)]);
    expect(slots).toEqual([{ release: expect.any(Function) }, { release: expect.any(Function) }]);
    expect(asked).toBe(1);
  });

  it('gives its place back when the caller gives up', async () => {
    const own = new RateLimiter({ requests: 1, perMs: 60_000 });
    const aborting = new AbortController();
    const tryAcquire = (): Promise<number> => {
      aborting.abort();
      return Promise.resolve(60_000);
    };
    await expect(new SharedRateLimiter(own, tryAcquire, limit).acquire(aborting.signal)).rejects.toThrow();
    expect(await own.acquire(never)).toHaveProperty('release');
  });

  it('refuses a call when the service has asked for a longer pause than the call can wait', async () => {
    const shared = new SharedRateLimiter(new RateLimiter(limit), () => Promise.resolve(0), limit);
    shared.pause(60_000);
    expect(await shared.acquire(never, 10)).toHaveProperty('retryAfterMs');
  });

  it('refuses a call immediately when the other instances leave no place in time', async () => {
    const own = new RateLimiter({ requests: 1, perMs: 60_000 });
    const shared = new SharedRateLimiter(own, () => Promise.resolve(50_000), limit);
    expect(await shared.acquire(never, 30_000)).toEqual({ retryAfterMs: expect.closeTo(50_000, -3) });
    expect(await own.acquire(never)).toHaveProperty('release'); // the place of the process is free again
  });

  it('refuses the calls behind one that waits for longer than they can, those that come later as well', async () => {
    const patience = new AbortController();
    const shared = new SharedRateLimiter(new RateLimiter(false), () => Promise.resolve(50_000), limit);
    const patient = shared.acquire(patience.signal);
    const ended = expect(patient).rejects.toThrow('abort');
    expect(await Promise.all([shared.acquire(never, 30_000), shared.acquire(never, 40_000)])).toEqual([
      { retryAfterMs: expect.closeTo(50_000, -3) },
      { retryAfterMs: expect.closeTo(50_000, -3) },
    ]);
    expect(await shared.acquire(never, 30_000)).toHaveProperty('retryAfterMs');
    patience.abort();
    await ended;
  });
});
