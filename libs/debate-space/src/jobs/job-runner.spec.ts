import { afterEach, beforeEach, describe, expect, it, jest } from '@jest/globals';
import { AsyncLocalStorage } from 'node:async_hooks';
import { setImmediate as nextTurn } from 'node:timers/promises';
import { MemoryStorage } from '../storage/memory-storage.js';
import { erasureId, LEASE_MS, type Claim, type Claims, type JobKind } from '../storage/storage.js';
import { CircuitBreaker } from './circuit-breaker.js';
import { JobRunner } from './job-runner.js';

const never = new Promise<never>(() => undefined);

describe('the job runner', () => {
  let faults: [where: string, error: unknown][];
  let storage: MemoryStorage;
  let runner: JobRunner;
  let maintain: jest.Mock<() => Promise<void>>;
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
    maintain = jest.fn(() => Promise.resolve());
    runner = new JobRunner((...fault) => void faults.push(fault), maintain);
  });
  afterEach(() => {
    runner.stop();
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
  /** Adds a kind whose jobs run until the test finishes them. */
  function work(kind: JobKind, concurrency: number, batch: number, on = storage): CircuitBreaker {
    const breaker = new CircuitBreaker(concurrency, () => undefined);
    const execute = async (claim: Claim): Promise<void> => {
      started.push(claim.subject);
      await new Promise<void>((resolve) => finishing.push(resolve));
      if (kind === 'logout') await on.finishLogout(claim, 1);
      else await on.finishErasure(claim, 'erased', 1, '');
    };
    runner.add({ storage: on, kind, batch, breaker, pauseMs: () => pausedUntil - Date.now(), execute });
    return breaker;
  }
  /** Adds a job for each user. */
  const add = async (kind: JobKind, ...subjects: string[]): Promise<void> => {
    const rows = subjects.map((subject) => ({ subject, sealed: 'sealed' }));
    if (kind === 'logout')
      await storage.addLogouts(rows.map((row) => ({ ...row, id: row.subject, details: 'logout' })));
    else
      await storage.addErasures(
        {
          ...{ reference: 'r', mode: 'delete', requestedBy: undefined, requestedAt: 0, list: undefined },
          ...{ known: await storage.reference('r'), mark: '' },
        },
        rows.map((row) => ({ ...row, id: erasureId('r', row.subject), formerIds: [] })),
      );
    runner.wake(kind);
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
    work('logout', 2, 4);
    const renew = jest.spyOn(storage, 'renew');
    await add('logout', 'a', 'b', 'c', 'd', 'e');
    runner.start();
    await settle(LEASE_MS);
    expect(started).toEqual(['a', 'b']);
    const inHand = ['a', 'b', 'c', 'd'];
    expect(usersOf(renew)).toEqual([inHand, inHand, inHand]);
    await finishNext();
    await settle(LEASE_MS / 3);
    expect(usersOf(renew).at(-1)).toEqual(['b', 'c', 'd']);
  });

  it('renews nothing when it has nothing in hand', async () => {
    work('logout', 2, 4);
    const renew = jest.spyOn(storage, 'renew');
    runner.start();
    await settle(LEASE_MS);
    expect(usersOf(renew)).toEqual([]);
  });

  it('claims once for all jobs of one turn, and not again when a job ends and no other is due', async () => {
    work('logout', 4, 4);
    work('erasure', 4, 4);
    runner.start();
    await settle();
    const claim = jest.spyOn(storage, 'claim');
    for (const name of ['a', 'b', 'c']) void add('logout', name);
    await settle();
    for (let n = 0; n < 3; n += 1) await finishNext();
    expect(started).toEqual(['a', 'b', 'c']);
    expect(claim.mock.calls.map(([kind]) => kind)).toEqual(['logout']);
  });

  it('looks for jobs of other processes every 1.5 s, and for a later one when it is due', async () => {
    work('logout', 4, 4);
    runner.start();
    await settle();
    await add('erasure', 'z'); // nobody here works on erasures
    await storage.addLogouts([{ id: 'a', subject: 'a', sealed: '', details: '' }]);
    await settle(1_500);
    expect(started).toEqual(['a']);
    jest.spyOn(storage, 'claim').mockResolvedValueOnce({ claims: [], nextMs: 300 });
    await add('logout', 'b');
    await settle(299);
    expect(started).toEqual(['a']);
    await settle(2);
    expect(started).toEqual(['a', 'b']);
  });

  it('claims again soon if other processes hold the rows that are due', async () => {
    work('logout', 1, 4);
    jest.spyOn(storage, 'claim').mockResolvedValueOnce({ claims: [], nextMs: 0 });
    await add('logout', 'a');
    runner.start();
    await settle(100);
    expect(started).toEqual(['a']);
  });

  it('starts a later kind only when no job of the earlier one waits', async () => {
    work('logout', 1, 2);
    work('erasure', 1, 1);
    await add('logout', 'a');
    runner.start();
    await settle();
    await add('logout', 'b');
    await add('erasure', 'x');
    await settle(1_600);
    expect(started).toEqual(['a']);
    await finishNext();
    await settle(100);
    expect(started).toEqual(['a', 'b', 'x']);
  });

  it('starts a later kind after five seconds, however much of the earlier one waits', async () => {
    work('logout', 1, 1);
    work('erasure', 1, 1);
    await add('logout', ...Array.from({ length: 100 }, (_, n) => `user-${n}`));
    await add('erasure', 'x');
    runner.start();
    await settle(4_800);
    expect(started).toEqual(['user-0']);
    await settle(400);
    expect(started).toEqual(['user-0', 'x']);
  });

  it('starts a later kind although the storage of the first never answers', async () => {
    const silent = new MemoryStorage();
    jest.spyOn(silent, 'claim').mockReturnValue(never);
    work('logout', 1, 1, silent);
    work('erasure', 1, 1);
    await add('erasure', 'x');
    runner.start();
    await settle(5_000);
    expect(started).toEqual(['x']);
  });

  it('starts a later kind, and does not wait at its drain, if the storage of the first fails', async () => {
    work('logout', 1, 1);
    work('erasure', 1, 1);
    await add('logout', 'a', 'b');
    runner.start();
    await settle();
    await add('erasure', 'x');
    const { claims } = await storage.claim('erasure', 1);
    jest
      .spyOn(storage, 'claim')
      .mockImplementation((kind) =>
        kind === 'logout'
          ? failing()
          : Promise.resolve({ claims: claims.slice(started.length - 1), nextMs: 60_000 }),
      );
    await finishNext();
    await settle(200);
    expect(started).toEqual(['a', 'x']);
    const drained = jest.fn();
    void runner.drain(5_000).then(drained);
    await settle();
    expect(drained).toHaveBeenCalled();
  });

  it('works on the first kind, and drains it, although the storage of a later one never answers', async () => {
    const silent = new MemoryStorage();
    jest.spyOn(silent, 'claim').mockReturnValue(never);
    work('logout', 1, 1);
    work('erasure', 1, 1, silent);
    runner.start();
    await settle(10_000);
    await add('logout', 'a');
    await settle();
    expect(started).toEqual(['a']);
    const drained = jest.fn();
    void runner.drain(60_000).then(drained);
    await finishNext();
    expect(drained).toHaveBeenCalled();
  });

  it('reports a storage that fails, and claims again after a second', async () => {
    work('logout', 1, 1);
    jest.spyOn(storage, 'claim').mockImplementationOnce(failing);
    await add('logout', 'a');
    runner.start();
    await settle(900);
    expect([started, faults]).toEqual([[], [['logout', expect.any(TypeError)]]]);
    expect(runner.stalledMs).toBeGreaterThanOrEqual(900);
    await settle(100);
    expect(started).toEqual(['a']);
    expect(runner.stalledMs).toBeLessThan(900);
  });

  it('reports a heartbeat, a job and a maintenance that fail, and continues', async () => {
    jest.spyOn(storage, 'renew').mockImplementation(failing);
    jest.spyOn(storage, 'finishLogout').mockImplementationOnce(failing);
    maintain.mockImplementationOnce(failing);
    work('logout', 1, 1);
    await add('logout', 'a', 'b');
    runner.start();
    await settle(LEASE_MS / 3);
    await finishNext();
    expect(faults.map(([where]) => where)).toEqual(['jobs', 'jobs', 'logout']);
    expect(started).toEqual(['a', 'b']);
  });

  it('does not start a maintenance while the last one runs, and waits for it at the end', async () => {
    work('logout', 1, 1);
    maintain.mockImplementation(() => new Promise((resolve) => setTimeout(resolve, 10_000)));
    runner.start();
    await settle(11_000);
    expect(maintain).toHaveBeenCalledTimes(1);
    await settle(4_000);
    expect(maintain).toHaveBeenCalledTimes(2);
    runner.stop();
    const idle = jest.fn();
    void runner.idle(60_000).then(idle);
    await settle(5_000);
    expect(idle).not.toHaveBeenCalled();
    await settle(5_000);
    expect(idle).toHaveBeenCalled();
    await settle(5_000);
    expect(maintain).toHaveBeenCalledTimes(2);
  });

  it('gives back the jobs that have not started when it stops, and waits for the others', async () => {
    work('logout', 1, 4);
    const giveBack = jest.spyOn(storage, 'giveBack');
    await add('logout', 'a', 'b', 'c');
    runner.start();
    await settle();
    runner.stop();
    const idle = jest.fn();
    void runner.idle(60_000).then(idle);
    await settle(1_000);
    expect(usersOf(giveBack)).toEqual([['b', 'c']]);
    expect(idle).not.toHaveBeenCalled();
    await finishNext();
    expect(idle).toHaveBeenCalled();
    expect(started).toEqual(['a']);
  });

  it('gives back the jobs that it was claiming when it stopped, and starts none of them', async () => {
    work('logout', 2, 4);
    await add('logout', 'a', 'b', 'c');
    const claims = await storage.claim('logout', 4);
    jest
      .spyOn(storage, 'claim')
      .mockReturnValue(new Promise((resolve) => setTimeout(resolve, 1_000, claims)));
    const giveBack = jest.spyOn(storage, 'giveBack');
    runner.start();
    await settle(500);
    runner.stop();
    const idle = runner.idle(60_000);
    await settle(500);
    await idle;
    expect(started).toEqual([]);
    expect(usersOf(giveBack)).toEqual([['a', 'b', 'c']]);
  });

  it('gives back the jobs that have not started when the service requests a pause', async () => {
    work('logout', 2, 4);
    const giveBack = jest.spyOn(storage, 'giveBack');
    await add('logout', 'a', 'b', 'c', 'd');
    runner.start();
    await settle();
    pausedUntil = Date.now() + 60_000;
    await settle(2_000); // none of the running jobs ends
    expect(usersOf(giveBack)).toEqual([['c', 'd']]);
    await finishNext();
    expect(started).toEqual(['a', 'b']);
  });

  it('sends one probe while the service is down, and leaves the other jobs to other processes', async () => {
    const breaker = work('logout', 4, 8);
    for (let n = 0; n < 5; n += 1) breaker.record('failure', '503');
    const claim = jest.spyOn(storage, 'claim');
    await add('logout', 'a', 'b', 'c');
    runner.start();
    await settle(breaker.waitMs);
    await settle(3_000);
    expect(started).toEqual(['a']);
    expect(claim.mock.calls).toEqual([['logout', 1]]);
    breaker.record('success', '200');
    await finishNext();
    expect(started).toEqual(['a', 'b', 'c']);
  });

  it('does not start a job again that still runs here, and renews its new lease', async () => {
    work('logout', 2, 2);
    const renew = jest.spyOn(storage, 'renew').mockImplementation(failing);
    await add('logout', 'a');
    runner.start();
    await settle(LEASE_MS + 1_500);
    renew.mockRestore();
    const claim = jest.spyOn(storage, 'claim');
    await settle(3 * LEASE_MS);
    const results = await Promise.all(claim.mock.results.map(({ value }) => value as Promise<Claims>));
    expect(results.flatMap(({ claims }) => claims)).toEqual([]);
    expect(started).toEqual(['a']);
  });

  it('runs jobs outside the async context of the request that woke it', async () => {
    const requests = new AsyncLocalStorage<string>();
    const contexts: (string | undefined)[] = [];
    jest.spyOn(storage, 'finishLogout').mockImplementation(() => {
      contexts.push(requests.getStore());
      return Promise.resolve();
    });
    work('logout', 1, 1);
    runner.start();
    await settle();
    await requests.run('a request', () => add('logout', 'a'));
    await settle();
    await finishNext();
    expect(contexts).toEqual([undefined]);
  });

  it('drains the first kind only, until no job of it is due in the time', async () => {
    work('logout', 1, 1);
    work('erasure', 1, 1);
    await add('logout', 'soon', 'late');
    const { claims } = await storage.claim('logout', 2);
    for (const [n, claim] of claims.entries()) await storage.retry(claim, 2_000 + n * 60_000, claim);
    const claim = jest.spyOn(storage, 'claim');
    runner.start();
    const drained = jest.fn();
    void runner.drain(5_000).then(drained);
    await add('erasure', 'x');
    await settle(2_200);
    expect(started).toEqual(['soon']);
    expect(drained).not.toHaveBeenCalled();
    await finishNext();
    expect(drained).toHaveBeenCalled();
    expect(started).toEqual(['soon']);
    expect(claim.mock.calls.length).toBeLessThan(10);
  });

  it('drains for no longer than it may, and asks seldom, while the service pauses or the storage is silent', async () => {
    work('logout', 1, 4);
    const claim = jest.spyOn(storage, 'claim');
    await add('logout', 'a');
    pausedUntil = Date.now() + 4_000;
    runner.start();
    const drained = jest.fn();
    void runner.drain(5_000).then(drained);
    await settle(3_900);
    expect(claim).not.toHaveBeenCalled();
    claim.mockReturnValue(never);
    await settle(900);
    expect(drained).not.toHaveBeenCalled();
    await settle(300);
    expect(drained).toHaveBeenCalled();
    expect(claim).toHaveBeenCalledTimes(1);
  });

  it('works off what is due in a process that does not work otherwise', async () => {
    work('logout', 1, 1);
    work('erasure', 2, 2);
    await add('logout', 'a', 'b');
    await add('erasure', 'x');
    const done = jest.fn();
    void runner.workOff(60_000).then(done);
    await settle();
    for (const name of ['a', 'b', 'x']) {
      expect(started.at(-1)).toBe(name);
      expect(done).not.toHaveBeenCalled();
      await finishNext();
      await settle(100);
    }
    expect(done).toHaveBeenCalledWith(true);
    await add('logout', 'c');
    await settle(5_000);
    expect(started).toEqual(['a', 'b', 'x']);
  });

  it.each(['its time has passed', 'it is aborted', 'it is ended', 'the service pauses', 'the storage fails'])(
    'says that jobs are left when %s',
    async (why) => {
      work('logout', 1, 1);
      await add('logout', 'a', 'b');
      if (why === 'the storage fails') jest.spyOn(storage, 'claim').mockImplementation(failing);
      if (why === 'the service pauses') pausedUntil = Date.now() + 60_000;
      const controller = new AbortController();
      const done = jest.fn();
      void runner.workOff(2_000, controller.signal).then(done);
      await settle();
      if (why === 'it is aborted') controller.abort();
      if (why === 'it is ended') void runner.endWorkOff(0);
      finishing.shift()?.();
      await settle(why.startsWith('it is') ? 200 : 2_100);
      expect(done).toHaveBeenCalledWith(false);
    },
  );
});
