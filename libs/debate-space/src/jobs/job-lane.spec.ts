import { afterEach, beforeEach, describe, expect, it, jest } from '@jest/globals';
import { AsyncLocalStorage } from 'node:async_hooks';
import { setImmediate as nextTurn } from 'node:timers/promises';
import { MemoryStorage } from '../storage/memory-storage.js';
import { LEASE_MS, type Claim, type Claims } from '../storage/storage.js';
import { CircuitBreaker } from './circuit-breaker.js';
import { JobLane } from './job-lane.js';

const never = new Promise<never>(() => undefined);
const MAX_CLAIMS = 500;

describe('a lane of jobs', () => {
  let faults: [where: string, error: unknown][];
  let storage: MemoryStorage;
  let lane: JobLane;
  let breaker: CircuitBreaker;
  /** The users whose jobs were started, in order. */
  let started: string[];
  let finishing: (() => void)[];
  let pausedUntil: number;
  beforeEach(() => {
    jest.useFakeTimers();
    faults = [];
    started = [];
    finishing = [];
    pausedUntil = 0;
    storage = new MemoryStorage();
    const claim = storage.claim.bind(storage);
    let claims = 0; // a lane that claims without end would keep the tests from ending as well
    storage.claim = (...args) => ((claims += 1) > MAX_CLAIMS ? never : claim(...args));
  });
  afterEach(() => {
    lane.stop();
    jest.restoreAllMocks();
    jest.useRealTimers();
  });

  const settle = async (ms = 0): Promise<void> => {
    await jest.advanceTimersByTimeAsync(ms);
    for (let turn = 0; turn < 4; turn += 1) {
      await nextTurn(); // in which a loop runs
      await jest.advanceTimersByTimeAsync(0);
    }
  };
  /** Makes the lane. Its jobs run until the test finishes them. */
  function work(concurrency: number, batch: number): void {
    breaker = new CircuitBreaker(concurrency, () => undefined);
    const execute = async (claim: Claim): Promise<undefined> => {
      started.push(claim.subject);
      await new Promise<void>((resolve) => finishing.push(resolve));
      await storage.finishLogout(claim, 1);
    };
    const pauseMs = () => pausedUntil - Date.now();
    lane = new JobLane(
      { storage, kind: 'logout', batch, breaker, pauseMs, execute },
      (...fault) => void faults.push(fault),
    );
  }
  /** Adds a logout for each user. */
  const add = async (...subjects: string[]): Promise<void> => {
    await storage.addLogouts(
      subjects.map((id) => ({ id, subject: id, sealed: 'sealed', details: 'logout' })),
    );
    lane.wake();
  };
  const finishNext = async (): Promise<void> => {
    finishing.shift()?.();
    await settle();
  };
  /** The users of whose jobs a method was called, in each call. */
  const usersOf = (spy: { mock: { calls: [claims: readonly Claim[], ...unknown[]][] } }): string[][] =>
    spy.mock.calls.map(([claims]) => claims.map(({ subject }) => subject));
  const failing = (): Promise<never> => Promise.reject(new TypeError('the disk is full'));

  it('renews the lease of every job in hand three times within a lease, started or not', async () => {
    work(2, 4);
    const renew = jest.spyOn(storage, 'renew');
    await add('a', 'b', 'c', 'd', 'e');
    lane.start();
    await settle(LEASE_MS);
    expect(started).toEqual(['a', 'b']);
    const inHand = ['a', 'b', 'c', 'd'];
    expect(usersOf(renew)).toEqual([inHand, inHand, inHand]);
    await finishNext();
    await settle(LEASE_MS / 3);
    expect(usersOf(renew).at(-1)).toEqual(['b', 'c', 'd']);
  });

  it('renews nothing when it has nothing in hand', async () => {
    work(2, 4);
    const renew = jest.spyOn(storage, 'renew');
    lane.start();
    await settle(LEASE_MS);
    expect(usersOf(renew)).toEqual([]);
  });

  it('claims once for all jobs of one turn, and not again when a job ends and no other is due', async () => {
    work(4, 4);
    lane.start();
    await settle();
    const claim = jest.spyOn(storage, 'claim');
    for (const name of ['a', 'b', 'c']) void add(name);
    await settle();
    for (let n = 0; n < 3; n += 1) await finishNext();
    expect(started).toEqual(['a', 'b', 'c']);
    expect(claim.mock.calls.map(([kind]) => kind)).toEqual(['logout']);
  });

  it('looks for jobs of other processes every 1.5 s, and for a later one when it is due', async () => {
    work(4, 4);
    lane.start();
    await settle();
    await storage.addLogouts([{ id: 'a', subject: 'a', sealed: '', details: '' }]);
    await settle(1_500);
    expect(started).toEqual(['a']);
    jest.spyOn(storage, 'claim').mockResolvedValueOnce({ claims: [], nextMs: 300 });
    await add('b');
    await settle();
    await settle(299);
    expect(started).toEqual(['a']);
    await settle(2);
    expect(started).toEqual(['a', 'b']);
  });

  it('claims again soon if other processes hold the rows that are due', async () => {
    work(1, 4);
    jest.spyOn(storage, 'claim').mockResolvedValueOnce({ claims: [], nextMs: 0 });
    await add('a');
    lane.start();
    await settle(100);
    expect(started).toEqual(['a']);
  });

  it('reports a storage that fails, and claims again after a second', async () => {
    work(1, 1);
    jest.spyOn(storage, 'claim').mockImplementationOnce(failing);
    await add('a');
    lane.start();
    await settle(900);
    expect([started, faults]).toEqual([[], [['logout', expect.any(TypeError)]]]);
    expect(lane.stalledMs).toBeGreaterThanOrEqual(900);
    await settle(100);
    expect(started).toEqual(['a']);
    expect(lane.stalledMs).toBeLessThan(900);
  });

  it('reports a heartbeat and a job that fail, and continues', async () => {
    jest.spyOn(storage, 'renew').mockImplementation(failing);
    jest.spyOn(storage, 'finishLogout').mockImplementationOnce(failing);
    work(1, 1);
    await add('a', 'b');
    lane.start();
    await settle(LEASE_MS / 3);
    await finishNext();
    expect(faults.map(([where]) => where)).toEqual(['jobs', 'logout']);
    expect(started).toEqual(['a', 'b']);
  });

  it('gives back the jobs that have not started when it stops, and waits for the others', async () => {
    work(1, 4);
    const giveBack = jest.spyOn(storage, 'giveBack');
    await add('a', 'b', 'c');
    lane.start();
    await settle();
    lane.stop();
    const idle = jest.fn();
    void lane.idle().then(idle);
    await settle(1_000);
    expect(usersOf(giveBack)).toEqual([['b', 'c']]);
    expect(idle).not.toHaveBeenCalled();
    await finishNext();
    expect(idle).toHaveBeenCalled();
    expect(started).toEqual(['a']);
  });

  it('gives back the jobs that it was claiming when it stopped, and starts none of them', async () => {
    work(2, 4);
    await add('a', 'b', 'c');
    const claims = await storage.claim('logout', 4);
    jest
      .spyOn(storage, 'claim')
      .mockReturnValue(new Promise((resolve) => setTimeout(resolve, 1_000, claims)));
    const giveBack = jest.spyOn(storage, 'giveBack');
    lane.start();
    await settle(500);
    lane.stop();
    const idle = lane.idle();
    await settle(500);
    await idle;
    expect(started).toEqual([]);
    expect(usersOf(giveBack)).toEqual([['a', 'b', 'c']]);
  });

  it('gives back the jobs that have not started when the service requests a pause', async () => {
    work(2, 4);
    const giveBack = jest.spyOn(storage, 'giveBack');
    await add('a', 'b', 'c', 'd');
    lane.start();
    await settle();
    pausedUntil = Date.now() + 60_000;
    await settle(2_000); // none of the running jobs ends
    expect(usersOf(giveBack)).toEqual([['c', 'd']]);
    await finishNext();
    expect(started).toEqual(['a', 'b']);
  });

  it('starts the next job when a pause ends, and not only when it looks again', async () => {
    work(1, 1);
    const looks = jest.spyOn(breaker, 'waitMs', 'get');
    pausedUntil = Date.now() + 300;
    await add('a');
    lane.start();
    await settle(299);
    expect([started, looks.mock.calls.length]).toEqual([[], 1]);
    await settle(2);
    expect(started).toEqual(['a']);
  });

  it('sends one probe while the service is down, and leaves the other jobs to other processes', async () => {
    work(4, 8);
    for (let n = 0; n < 5; n += 1) breaker.record('failure', '503');
    const claim = jest.spyOn(storage, 'claim');
    await add('a', 'b', 'c');
    lane.start();
    await settle(breaker.waitMs);
    await settle(3_000);
    expect(started).toEqual(['a']);
    expect(claim.mock.calls).toEqual([['logout', 1, LEASE_MS, undefined]]);
    breaker.record('success', '200');
    await finishNext();
    expect(started).toEqual(['a', 'b', 'c']);
  });

  it('does not start a job again that still runs here, and renews its new lease', async () => {
    work(2, 2);
    const renew = jest.spyOn(storage, 'renew').mockImplementation(failing);
    await add('a');
    lane.start();
    await settle(LEASE_MS + 1_500);
    renew.mockRestore();
    const claim = jest.spyOn(storage, 'claim');
    await settle(3 * LEASE_MS);
    const results = await Promise.all(claim.mock.results.map(({ value }) => value as Promise<Claims>));
    expect(results.flatMap(({ claims }) => claims)).toEqual([]);
    expect(started).toEqual(['a']);
  });

  it.each(['wakes it', 'drains it'])(
    'runs jobs outside the async context of the request that %s',
    async (how) => {
      const requests = new AsyncLocalStorage<string>();
      const contexts: (string | undefined)[] = [];
      jest.spyOn(storage, 'finishLogout').mockImplementation(() => {
        contexts.push(requests.getStore());
        return Promise.resolve();
      });
      work(1, 1);
      if (how === 'wakes it') lane.start();
      await settle();
      await requests.run('a request', () => add('a'));
      if (how === 'drains it') void requests.run('a request', () => lane.drain(1_000, false));
      await settle();
      await finishNext();
      expect(contexts).toEqual([undefined]);
    },
  );

  it('drains until no job is due in the time', async () => {
    work(1, 1);
    await add('soon', 'late');
    const { claims } = await storage.claim('logout', 2);
    for (const [n, claim] of claims.entries()) await storage.postpone(claim, 2_000 + n * 60_000, claim);
    const claim = jest.spyOn(storage, 'claim');
    lane.start();
    const drained = jest.fn();
    void lane.drain(5_000, true).then(drained);
    await settle(2_200);
    expect(started).toEqual(['soon']);
    expect(drained).not.toHaveBeenCalled();
    await finishNext();
    expect(drained).toHaveBeenCalledWith(true);
    expect(claim.mock.calls.length).toBeLessThan(10);
  });

  it('does not wait at its drain for a storage that fails', async () => {
    work(1, 1);
    jest.spyOn(storage, 'claim').mockImplementation(failing);
    lane.start();
    const drained = jest.fn();
    void lane.drain(5_000, true).then(drained);
    await settle();
    expect(drained).toHaveBeenCalledWith(false);
  });

  it('drains for no longer than it may, and asks seldom, while the service pauses or the storage is silent', async () => {
    work(1, 4);
    const claim = jest.spyOn(storage, 'claim');
    await add('a');
    pausedUntil = Date.now() + 4_000;
    lane.start();
    const drained = jest.fn();
    void lane.drain(5_000, true).then(drained);
    await settle(3_900);
    expect(claim).not.toHaveBeenCalled();
    claim.mockReturnValue(never);
    await settle(900);
    expect(drained).not.toHaveBeenCalled();
    await settle(300);
    expect(drained).toHaveBeenCalled();
    expect(claim).toHaveBeenCalledTimes(1);
  });

  it('works off what is due in a process that does not work otherwise, and stops', async () => {
    work(1, 1);
    await add('a', 'b');
    const done = jest.fn();
    void lane.drain(60_000, false).then(done);
    await settle();
    for (const name of ['a', 'b']) {
      expect(started.at(-1)).toBe(name);
      expect(done).not.toHaveBeenCalled();
      await finishNext();
    }
    expect(done).toHaveBeenCalledWith(true);
    await add('c');
    await settle(5_000);
    expect(started).toEqual(['a', 'b']);
  });

  it('looks again when a job that has failed is due', async () => {
    work(1, 1);
    jest.spyOn(storage, 'finishLogout').mockResolvedValue(undefined);
    const execute = jest.fn(async (claim: Claim) => {
      await storage.postpone(claim, 300, claim);
      return 300;
    });
    lane = new JobLane({ storage, kind: 'logout', batch: 1, breaker, pauseMs: () => 0, execute }, jest.fn());
    await add('a');
    lane.start();
    await settle();
    expect(execute).toHaveBeenCalledTimes(1);
    await settle(300);
    expect(execute).toHaveBeenCalledTimes(2);
  });

  it.each([
    'its time has passed',
    'it is aborted',
    'it is stopped',
    'the service pauses',
    'the storage fails',
  ])('says that jobs are left when %s', async (why) => {
    work(1, 1);
    await add('a', 'b');
    if (why === 'the storage fails') jest.spyOn(storage, 'claim').mockImplementation(failing);
    if (why === 'the service pauses') pausedUntil = Date.now() + 60_000;
    const controller = new AbortController();
    const done = jest.fn();
    void lane.drain(2_000, false, controller.signal).then(done);
    await settle();
    if (why === 'it is aborted') controller.abort();
    if (why === 'it is stopped') lane.stop();
    finishing.shift()?.();
    await settle(why.startsWith('it is') ? 200 : 2_100);
    expect(done).toHaveBeenCalledWith(false);
  });
});
