import { describe, expect, it } from '@jest/globals';
import { RateLimiter, type Slot } from './rate-limiter.js';

const limit = { requests: 2, perMs: 60_000 };
const never = new AbortController().signal;

describe('a rate limit over all instances', () => {
  it('lets a call through when there is a place, and asks again when there is none', async () => {
    const answers = [5, 5, 0];
    const asked: number[][] = [];
    const takeSlot = (...limits: number[]): Promise<number> => {
      asked.push(limits);
      return Promise.resolve(answers.shift() ?? 0);
    };
    const slot = await new RateLimiter(limit, { takeSlot }).acquire(never);
    expect(slot).toHaveProperty('release');
    expect(asked).toEqual([1, 2, 3].map(() => [2, 61_000]));
  });

  it('keeps the limit of its own process when the others cannot be asked', async () => {
    const shared = new RateLimiter(limit, { takeSlot: () => Promise.reject(new Error('gone')) });
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
    const shared = new RateLimiter(limit, { takeSlot: silent });
    const slots = await Promise.all([shared.acquire(never), shared.acquire(never)]);
    expect(slots).toEqual([{ release: expect.any(Function) }, { release: expect.any(Function) }]);
    expect(asked).toBe(1);
  });

  it('gives its place back when the caller gives up', async () => {
    const aborting = new AbortController();
    const takeSlot = (): Promise<number> => {
      aborting.abort();
      return Promise.resolve(0);
    };
    const shared = new RateLimiter({ requests: 1, perMs: 60_000 }, { takeSlot });
    await expect(shared.acquire(aborting.signal)).rejects.toThrow();
    expect(await shared.acquire(never)).toHaveProperty('release');
  });

  it('refuses a call when the service has requested a longer pause than the call can wait', async () => {
    const shared = new RateLimiter(limit, { takeSlot: () => Promise.resolve(0) });
    shared.pause(60_000);
    expect(await shared.acquire(never, 10)).toHaveProperty('retryAfterMs');
  });

  it('refuses a call immediately when the other instances leave no place in time', async () => {
    const answers = [1_000, 0];
    const takeSlot = () => Promise.resolve(answers.shift() ?? 0);
    const shared = new RateLimiter({ requests: 1, perMs: 60_000 }, { takeSlot });
    expect(await shared.acquire(never, 500)).toEqual({ retryAfterMs: expect.closeTo(1_000, -2) });
    expect(await shared.acquire(never)).toHaveProperty('release'); // the place of the process is free again
  });

  it('refuses the calls behind one that waits for longer than they can, those that come later as well', async () => {
    const patience = new AbortController();
    const shared = new RateLimiter(
      { requests: 100, perMs: 60_000 },
      { takeSlot: () => Promise.resolve(50_000) },
    );
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

  it('leaves a fifth of the places of all instances to the calls when a job asks', async () => {
    const asked: number[] = [];
    const takeSlot = (requests: number) => {
      asked.push(requests);
      return Promise.resolve(0);
    };
    const shared = new RateLimiter({ requests: 100, perMs: 60_000 }, { takeSlot });
    await shared.acquire(never, Infinity, true);
    await shared.acquire(never);
    expect(asked).toEqual([80, 100]);
  });
});
