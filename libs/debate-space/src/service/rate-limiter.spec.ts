import { afterEach, describe, expect, it, jest } from '@jest/globals';
import { setImmediate as nextTurn } from 'node:timers/promises';
import { RateLimitedError } from '../errors.js';
import type { ReceivedRequest } from 'debate-space-simulator';
import { errorOf, serviceClients } from 'debate-space-fixtures/service-clients.js';
import { RateLimiter, type NoSlot, type Slot } from './rate-limiter.js';

const { simulator, client } = serviceClients();
const never = new AbortController().signal;

/** Takes a place immediately, or gives up and fails. */
async function take(limiter: RateLimiter): Promise<Slot> {
  const patience = new AbortController();
  const slot = limiter.acquire(patience.signal);
  void nextTurn().then(() => {
    patience.abort();
  });
  return granted(await slot);
}

function granted(slot: Slot | NoSlot): Slot {
  if ('retryAfterMs' in slot) throw new Error('refused');
  return slot;
}

/** Whether ever more than the limit arrived within one window. */
function crowded(requests: readonly ReceivedRequest[], limit: { requests: number; perMs: number }): boolean {
  const arrivals = requests.map(({ at }) => at).sort((one, other) => one - other);
  return arrivals.some((at, n) => (arrivals[n + limit.requests] ?? Infinity) - at < limit.perMs);
}

describe('the rate limiter', () => {
  afterEach(() => {
    jest.useRealTimers();
  });

  it.each([
    { requests: 1, perMs: 50 },
    { requests: 3, perMs: 100 },
    { requests: 10, perMs: 200 },
  ])('lets $requests requests in any $perMs ms through, as the service sees them', async (rateLimit) => {
    const service = await simulator();
    // Answers of varying duration: a window from the start of a request would be too short.
    for (const ms of [40, 5, 25]) service.faults.add({ operation: 'list', kind: 'latency', ms, times: 3 });
    const debate = await client(service, { http: { rateLimit } });
    const more = await client(service, { http: { rateLimit: false } });
    await Promise.all(Array.from({ length: rateLimit.requests * 4 }, () => debate.listUsers()));
    expect(crowded(service.received.of('list'), rateLimit)).toBe(false);
    // The measure itself can tell. A busy machine spreads requests, so that it takes more of them.
    while (!crowded(service.received.of('list'), rateLimit)) {
      await Promise.all(Array.from({ length: 100 }, () => more.listUsers()));
    }
  });

  it('is one for all operations of an instance, first come, first served', async () => {
    const service = await simulator({ users: Array.from({ length: 4 }, (_, n) => ({ uid: `u-${n}` })) });
    const rateLimit = { requests: 1, perMs: 30 };
    const debate = await client(service, { http: { rateLimit } });
    await Promise.all([
      debate.listUsers({ perPage: 1 }),
      debate.deleteUser('u-0'),
      debate.anonymizeUser('u-1'),
      debate.listUsers({ perPage: 2 }),
      debate.deleteUser('u-2'),
    ]);
    const counted = service.received.all.filter(({ operation }) => operation !== 'token');
    expect(counted.map(({ operation }) => operation)).toEqual([
      'list',
      'delete',
      'anonymize',
      'list',
      'delete',
    ]);
    expect(crowded(counted, rateLimit)).toBe(false);
  });

  it('counts neither tokens nor logouts', async () => {
    const service = await simulator();
    const debate = await client(service, { http: { rateLimit: { requests: 1, perMs: 60_000 } } });
    await debate.listUsers();
    for (const uid of ['alice', 'bob', 'carol']) await debate.logoutUser(uid);
    await service.received.waitFor('logout', { count: 3 });
    expect(service.received.of('token')).toHaveLength(1);
  });

  it('does not count a call that never came as far as the service', async () => {
    const service = await simulator();
    service.faults.add({ operation: 'token', kind: 'status', status: 500, times: 1 });
    const debate = await client(service, {
      http: { maxAttempts: 1, rateLimit: { requests: 1, perMs: 60_000 } },
    });
    expect(await errorOf(debate.listUsers())).toMatchObject({ outcome: 'not-sent' });
    await debate.listUsers();
  });

  it('lets the others wait too when the service answers 429 with Retry-After', async () => {
    const service = await simulator();
    const headers = { 'retry-after': '1' };
    service.faults.add({ operation: 'delete', kind: 'status', status: 429, headers, times: 1 });
    const debate = await client(service, { http: { maxAttempts: 1 } });
    const error = await errorOf(debate.deleteUser('alice'));
    expect(error).toMatchObject({ code: 'ERR_DEBATE_SPACE_RATE_LIMITED', retryAfterMs: 1000 });
    await Promise.all([debate.listUsers(), debate.anonymizeUser('alice')]);
    const refused = service.received.of('delete')[0]?.at ?? Infinity;
    const arrivals = [...service.received.of('list'), ...service.received.of('anonymize')].map(
      ({ at }) => at,
    );
    expect(arrivals).toHaveLength(2);
    expect(Math.min(...arrivals) - refused).toBeGreaterThanOrEqual(999);
  });

  it('lets every request through when the limit is false', async () => {
    const limiter = new RateLimiter(false);
    for (let slot = 0; slot < 1000; slot += 1) await take(limiter);
  });

  it('gives a place back one window after the answer, and not before', async () => {
    jest.useFakeTimers({ doNotFake: ['setImmediate', 'queueMicrotask', 'nextTick'] });
    const limiter = new RateLimiter({ requests: 2, perMs: 1000 });
    const first = await take(limiter);
    await take(limiter);
    const third = limiter.acquire(never);
    await expect(take(limiter)).rejects.toMatchObject({ name: 'AbortError' });
    jest.advanceTimersByTime(60_000); // no answer yet
    await expect(take(limiter)).rejects.toMatchObject({ name: 'AbortError' });
    first.release(true);
    first.release(true); // does nothing
    let granted = 0;
    void third.then(() => (granted += 1));
    await jest.advanceTimersByTimeAsync(999);
    expect(granted).toBe(0);
    await jest.advanceTimersByTimeAsync(10);
    expect(granted).toBe(1);
  });

  it('gives a place back immediately when nothing was sent', async () => {
    const limiter = new RateLimiter({ requests: 1, perMs: 60_000 });
    (await take(limiter)).release(false);
    (await take(limiter)).release(true);
    await expect(take(limiter)).rejects.toMatchObject({ name: 'AbortError' });
  });

  it('refuses the calls that wait, and those that come, when the service wants a longer pause than they have', async () => {
    const limiter = new RateLimiter({ requests: 1, perMs: 20 });
    await take(limiter);
    const waiting = limiter.acquire(never, 1000);
    limiter.pause(3_600_000);
    expect(await waiting).toEqual({ retryAfterMs: expect.closeTo(3_600_000, -3) });
    expect(await limiter.acquire(never, 1000)).toHaveProperty('retryAfterMs');
  });

  it('refuses immediately a call that cannot have a place in time, and says when one can come', async () => {
    jest.useFakeTimers();
    const limiter = new RateLimiter({ requests: 2, perMs: 1000 });
    for (let taken = 0; taken < 2; taken += 1) granted(await limiter.acquire(never)).release(true);
    expect(await limiter.acquire(never, 1000)).toEqual({ retryAfterMs: 1002 });
    const [third, fourth] = [limiter.acquire(never, 1100), limiter.acquire(never, 1100)];
    // Both places are taken for two windows from now.
    expect(await limiter.acquire(never, 1100)).toEqual({ retryAfterMs: 2004 });
    await jest.advanceTimersByTimeAsync(1002);
    granted(await third);
    granted(await fourth);
  });

  it('refuses a waiting call as soon as a late answer makes its place come too late', async () => {
    jest.useFakeTimers();
    const limiter = new RateLimiter({ requests: 1, perMs: 1000 });
    await limiter.acquire(never); // never answered
    const waiting = limiter.acquire(never, 1500);
    await jest.advanceTimersByTimeAsync(1002);
    expect(await waiting).toEqual({ retryAfterMs: 1002 });
    expect(jest.getTimerCount()).toBe(0);
  });

  it('refuses immediately what is beyond the limit of a minute when 300 calls come at the same time', async () => {
    const service = await simulator();
    const debate = await client(service, { http: { rateLimit: { requests: 100, perMs: 60_000 } } });
    const calls = await Promise.all(Array.from({ length: 300 }, () => errorOf(debate.listUsers())));
    const refused = calls.filter((error) => error instanceof RateLimitedError);
    expect(refused).toHaveLength(200);
    for (const error of refused) {
      expect(error).toMatchObject({ outcome: 'not-sent', attempts: 0, retryable: true });
      expect(error.retryAfterMs).toBeGreaterThan(30_000);
    }
    expect(service.received.of('list')).toHaveLength(100);
  });

  it('lets a walk over all users wait for its slots for longer than a direct call may take', async () => {
    const service = await simulator({ users: [{ uid: 'a' }, { uid: 'b' }, { uid: 'c' }] });
    const debate = await client(service, {
      http: { totalTimeoutMs: 1_500, rateLimit: { requests: 1, perMs: 2_500 } },
    });
    const users = debate.users({ perPage: 1 })[Symbol.asyncIterator]();
    await users.next();
    await expect(debate.listUsers()).rejects.toMatchObject({ code: 'ERR_DEBATE_SPACE_RATE_LIMITED' });
    expect(await users.next()).toMatchObject({ done: false });
    expect(service.received.of('list')).toHaveLength(2);
    await users.return?.();
  });

  it('keeps the order of those that go on waiting when one gives up, and loses no place', async () => {
    const limiter = new RateLimiter({ requests: 1, perMs: 20 });
    const occupant = await take(limiter);
    const order: string[] = [];
    const wait = async (name: string, signal = never): Promise<void> => {
      const slot = granted(await limiter.acquire(signal));
      order.push(name);
      slot.release(true);
    };
    const patience = [new AbortController(), new AbortController()] as const;
    const waiting = [
      wait('first', patience[0].signal),
      wait('second'),
      wait('third', patience[1].signal),
      wait('fourth'),
    ];
    const ended = Promise.allSettled(waiting);
    for (const controller of patience) controller.abort();
    occupant.release(true);
    expect((await ended).map(({ status }) => status)).toEqual([
      'rejected',
      'fulfilled',
      'rejected',
      'fulfilled',
    ]);
    expect(order).toEqual(['second', 'fourth']);
    await wait('fifth');
  });

  it('leaves places to the calls that no job takes, and lets no call wait behind a job', async () => {
    jest.useFakeTimers();
    const limit = { requests: 10, perMs: 1000 };
    const limiter = new RateLimiter(limit);
    const [calls, jobs] = [false, true];
    const told: string[] = [];
    const wait = async (name: string, isJob: boolean) => {
      const slot = granted(await limiter.acquire(never, Infinity, isJob));
      told.push(name);
      return slot;
    };
    const working = await Promise.all(Array.from({ length: 8 }, () => wait('a job', jobs)));
    void wait('a job that waits', jobs);
    await wait('a call', calls);
    await wait('another', calls);
    void wait('a call that waits', calls);
    await jest.advanceTimersByTimeAsync(5000);
    expect(told.slice(8)).toEqual(['a call', 'another']);
    for (const slot of working.slice(0, 2)) slot.release(true);
    await jest.advanceTimersByTimeAsync(1010);
    expect(told.slice(10)).toEqual(['a call that waits']); // it leaves nine, of which jobs may have eight
    working[2]?.release(true);
    working[3]?.release(true);
    await jest.advanceTimersByTimeAsync(1010);
    expect(told.at(-1)).toBe('a job that waits');
  });

  it('refuses a signal that is aborted already', async () => {
    const limiter = new RateLimiter({ requests: 1, perMs: 60_000 });
    await expect(limiter.acquire(AbortSignal.abort())).rejects.toMatchObject({ name: 'AbortError' });
    await take(limiter);
  });

  it('does not spin when the service asks for a pause of years', async () => {
    const timers = jest.spyOn(globalThis, 'setTimeout');
    const limiter = new RateLimiter(false);
    limiter.pause(999_999_999_000);
    await expect(take(limiter)).rejects.toMatchObject({ name: 'AbortError' });
    // Longer ones fire immediately.
    expect(timers.mock.calls.map(([, ms]) => ms)).toEqual([2 ** 31 - 1]);
    timers.mockRestore();
  });
});
