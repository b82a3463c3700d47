import { describe, expect, it } from '@jest/globals';
import { serviceClients, errorOf } from '#support/service/service-clients.js';
import type { ReceivedRequest } from 'debate-space-simulator';
import { RateLimitedError } from '../errors.js';
import { RateLimiter } from './rate-limiter.js';

const { simulator, client } = serviceClients();
const never = new AbortController().signal;

/** Slots that come free as told: 0 is a slot, and everything else a wait. Then there are slots without end. */
function slots(...answers: number[]) {
  const asked: number[][] = [];
  const takeSlot = (...limit: number[]): Promise<number> => {
    asked.push(limit);
    return Promise.resolve(answers.shift() ?? 0);
  };
  return { asked, takeSlot };
}

/** Whether ever more than the limit arrived within one window. */
function crowded(requests: readonly ReceivedRequest[], limit: { requests: number; perMs: number }): boolean {
  const arrivals = requests.map(({ at }) => at).sort((one, other) => one - other);
  return arrivals.some((at, n) => (arrivals[n + limit.requests] ?? Infinity) - at < limit.perMs);
}

describe('the rate limiter', () => {
  const limit = { requests: 10, perMs: 60_000 };

  it('lets 3 requests in any second through, as the service sees them', async () => {
    const rateLimit = { requests: 3, perMs: 1_000 };
    const service = await simulator();
    for (const ms of [40, 5, 25]) service.faults.add({ operation: 'list', kind: 'latency', ms, times: 3 });
    const debate = await client(service, { http: { rateLimit } });
    await Promise.all(Array.from({ length: rateLimit.requests * 3 }, () => debate.listUsers()));
    expect(crowded(service.received.of('list'), rateLimit)).toBe(false);
    expect(crowded(service.received.of('list'), { ...rateLimit, perMs: 60_000 })).toBe(true);
  });

  it('counts neither tokens nor logouts', async () => {
    const service = await simulator();
    const debate = await client(service, { http: { rateLimit: { requests: 1, perMs: 60_000 } } });
    await debate.listUsers();
    for (const uid of ['alice', 'bob', 'carol']) await debate.logoutUser(uid);
    await service.received.waitFor('logout', { count: 3 });
    expect(service.received.of('token')).toHaveLength(1);
  });

  it('lets the others wait, too, when the service answers 429 with Retry-After', async () => {
    const service = await simulator();
    const headers = { 'retry-after': '1' };
    service.faults.add({ operation: 'delete', kind: 'status', status: 429, headers, times: 1 });
    const debate = await client(service, { http: { maxAttempts: 1 } });
    const error = await errorOf(debate.deleteUser('alice'));
    expect(error).toMatchObject({ code: 'ERR_DEBATE_SPACE_RATE_LIMITED', retryAfterMs: 1000 });
    await Promise.all([debate.listUsers(), debate.anonymizeUser('alice')]);
    const refusedAt = service.received.of('delete')[0]?.at ?? Infinity;
    const arrivals = [...service.received.of('list'), ...service.received.of('anonymize')];
    expect(arrivals).toHaveLength(2);
    for (const { at } of arrivals) expect(at - refusedAt).toBeGreaterThanOrEqual(999);
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
    const http = { totalTimeoutMs: 400, rateLimit: { requests: 1, perMs: 500 } };
    const debate = await client(service, { http, users: { listAuth: 'apiKey' } });
    const users = debate.users({ perPage: 1 })[Symbol.asyncIterator]();
    await users.next();
    await expect(debate.listUsers()).rejects.toMatchObject({ code: 'ERR_DEBATE_SPACE_RATE_LIMITED' });
    expect(await users.next()).toMatchObject({ done: false });
    expect(service.received.of('list')).toHaveLength(2);
    await users.return?.();
  });

  it('asks for no slot when the limit is false', async () => {
    const shared = slots(60_000);
    await new RateLimiter(false, shared).acquire(never);
    expect(shared.asked).toEqual([]);
  });

  it('asks again when a slot comes free, with a margin for requests on their way', async () => {
    const shared = slots(5, 5, 0);
    await new RateLimiter(limit, shared).acquire(never);
    expect(shared.asked).toEqual([1, 2, 3].map(() => [10, 61_000]));
  });

  it('keeps the order of those that wait, and passes on the slot of one who leaves', async () => {
    const limiter = new RateLimiter(limit, slots());
    limiter.pause(10); // all of them wait
    const order: string[] = [];
    const wait = async (name: string, isJob: boolean, signal = never): Promise<void> => {
      await limiter.acquire(signal, { isJob });
      order.push(name);
    };
    const patience = new AbortController();
    const calls = [wait('1', false), wait('2', false, patience.signal), wait('3', false)];
    const jobs = [wait('job 1', true), wait('job 2', true)];
    const ended = Promise.allSettled([...calls, ...jobs]);
    patience.abort();
    const statuses = (await ended).map(({ status }) => status);
    expect(statuses).toEqual(['fulfilled', 'rejected', 'fulfilled', 'fulfilled', 'fulfilled']);
    expect(order.filter((name) => !name.startsWith('job'))).toEqual(['1', '3']);
    expect(order.filter((name) => name.startsWith('job'))).toEqual(['job 1', 'job 2']);
  });

  it('leaves a fifth of the slots to the calls', async () => {
    const shared = slots();
    const limiter = new RateLimiter(limit, shared);
    await limiter.acquire(never, { isJob: true });
    await limiter.acquire(never);
    expect(shared.asked.map(([permitted]) => permitted)).toEqual([8, 10]);
    expect(limiter.jobsPerMinute).toBe(8);
  });

  it('refuses those whose slot cannot come in time, and lets jobs wait', async () => {
    const patience = new AbortController();
    const limiter = new RateLimiter(limit, slots(50_000, 50_000));
    const job = expect(limiter.acquire(patience.signal, { isJob: true })).rejects.toMatchObject({
      name: 'AbortError',
    });
    const refused = { retryAfterMs: expect.closeTo(50_000, -3) };
    const calls = [30_000, 40_000].map((withinMs) => limiter.acquire(never, { withinMs }));
    expect(await Promise.all(calls)).toEqual([refused, refused]);
    expect(await limiter.acquire(never, { withinMs: 30_000 })).toEqual(refused);
    patience.abort();
    await job;
  });

  it('refuses a call behind others at once when not even the next slot comes in time', async () => {
    const patience = new AbortController();
    const limiter = new RateLimiter(limit, slots(50_000));
    const patient = limiter.acquire(patience.signal).catch(() => 'aborted');
    await new Promise(setImmediate); // it knows when the next slot comes
    const refused = await limiter.acquire(never, { withinMs: 30_000 });
    expect(refused).toEqual({ retryAfterMs: expect.closeTo(50_000, -3) });
    patience.abort();
    expect(await patient).toBe('aborted');
  });

  it('refuses those who cannot wait for the end of a pause that the service requested', async () => {
    const limiter = new RateLimiter(limit, slots(10));
    const waiting = limiter.acquire(never, { withinMs: 1_000 });
    limiter.pause(3_600_000);
    const refused = { retryAfterMs: expect.closeTo(3_600_000, -3) };
    expect(await waiting).toEqual(refused);
    expect(await limiter.acquire(never, { maxPauseMs: 1_000 })).toEqual(refused);
    expect(limiter.jobWaitMs(1)).toBeCloseTo(3_600_000, -3);
  });

  it.each([
    ['fails', () => Promise.reject(new Error('gone'))],
    ['does not answer', () => new Promise<never>(() => undefined)],
  ])('counts the slots of its own process for a while when the storage %s', async (_what, answer) => {
    let asked = 0;
    const takeSlot = (): Promise<number> => {
      asked += 1;
      return answer();
    };
    const own = slots();
    const limiter = new RateLimiter(limit, { takeSlot }, own);
    await Promise.all([limiter.acquire(never), limiter.acquire(never)]);
    expect([asked, own.asked.length]).toEqual([1, 2]);
  });

  it('refuses a signal that is aborted already', async () => {
    const shared = slots();
    const acquiring = new RateLimiter(limit, shared).acquire(AbortSignal.abort());
    await expect(acquiring).rejects.toMatchObject({ name: 'AbortError' });
    expect(shared.asked).toEqual([]);
  });
});
