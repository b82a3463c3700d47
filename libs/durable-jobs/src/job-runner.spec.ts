import { afterEach, beforeEach, describe, expect, it, jest } from '@jest/globals';
import { setImmediate as nextTurn } from 'node:timers/promises';
import { CircuitBreaker } from './circuit-breaker.js';
import { type JobKind, LEASE_MS, type JobQueue } from './job-kind.js';
import { JobRunner } from './job-runner.js';

const sleep = (ms: number): Promise<void> => new Promise((resolve) => setTimeout(resolve, ms));

/** A queue whose jobs are numbers that are due now. */
class Numbers implements JobQueue<number> {
  readonly due: number[] = [];
  readonly renewed: number[][] = [];
  readonly givenBack: number[] = [];
  #changed: () => void = () => undefined;

  add(...jobs: number[]): void {
    this.due.push(...jobs);
    this.#changed();
  }
  claim(limit: number): readonly number[] {
    return this.due.splice(0, limit);
  }
  renew(jobs: readonly number[]): void {
    this.renewed.push([...jobs]);
  }
  giveBack(jobs: readonly number[]): void {
    this.givenBack.push(...jobs);
  }
  nextDueMs(): number | undefined {
    return this.due.length > 0 ? 0 : undefined;
  }
  maintain(): void {
    // Nothing is ever outdated.
  }
  onChange(listener: () => void): () => void {
    this.#changed = listener;
    return () => (this.#changed = () => undefined);
  }
}

describe('the job runner', () => {
  let faults: [where: string, error: unknown][];
  let runner: JobRunner;
  /** What was begun, in order. */
  let begun: string[];
  let finishing: (() => void)[];
  let pauseMs: number;
  beforeEach(() => {
    jest.useFakeTimers();
    faults = [];
    begun = [];
    finishing = [];
    pauseMs = 0;
    runner = new JobRunner((...fault) => void faults.push(fault));
  });
  afterEach(() => {
    runner.stop();
    jest.restoreAllMocks();
    jest.useRealTimers();
  });

  /** Adds a kind whose jobs go on until the test finishes them. */
  function add(name: string, concurrency: number, batch: number): Numbers {
    const queue = new Numbers();
    const kind: JobKind<number> = {
      name,
      queue,
      batch,
      breaker: new CircuitBreaker(concurrency, () => undefined),
      pauseMs: () => pauseMs,
      execute: async (job) => {
        begun.push(`${name} ${job}`);
        await new Promise<void>((resolve) => finishing.push(resolve));
      },
    };
    runner.add(kind);
    return queue;
  }
  const finishNext = async (): Promise<void> => {
    finishing.shift()?.();
    for (let turn = 0; turn < 3; turn += 1) {
      await nextTurn(); // in which the loop runs
      await jest.advanceTimersByTimeAsync(0);
    }
  };

  it('renews the lease of every job in hand three times within a lease, begun or not', async () => {
    const queue = add('a', 2, 4);
    queue.add(1, 2, 3, 4, 5);
    runner.start();
    await jest.advanceTimersByTimeAsync(LEASE_MS);
    expect(begun).toEqual(['a 1', 'a 2']);
    expect(queue.renewed).toEqual([
      [1, 2, 3, 4],
      [1, 2, 3, 4],
      [1, 2, 3, 4],
    ]);
    await finishNext();
    await jest.advanceTimersByTimeAsync(LEASE_MS / 3);
    expect(queue.renewed.at(-1)).toEqual([2, 3, 4]);
  });

  it('looks once for all that one turn brings, and not again when a job ends and nothing is due', async () => {
    const [queue, other] = [add('a', 4, 4), add('b', 4, 4)];
    runner.start();
    await jest.advanceTimersByTimeAsync(0);
    const looks = [queue, other].map((each) => jest.spyOn(each, 'claim'));
    for (const job of [1, 2, 3]) queue.add(job);
    for (let n = 0; n < 3; n += 1) await finishNext();
    expect(begun).toEqual(['a 1', 'a 2', 'a 3']);
    expect(looks.map(({ mock }) => mock.calls.length)).toEqual([1, 0]);
  });

  it('renews nothing when it has nothing in hand', async () => {
    const queue = add('a', 2, 4);
    runner.start();
    await jest.advanceTimersByTimeAsync(LEASE_MS);
    expect(queue.renewed).toEqual([]);
  });

  it('reports a heartbeat that fails, and goes on with the jobs and the heartbeat', async () => {
    const queue = add('a', 1, 1);
    const renew = jest.spyOn(queue, 'renew').mockImplementation(() => {
      throw new TypeError('the disk is full');
    });
    queue.add(1);
    runner.start();
    await jest.advanceTimersByTimeAsync(LEASE_MS);
    expect(renew).toHaveBeenCalledTimes(3);
    expect(faults).toEqual(Array(3).fill(['jobs', expect.any(TypeError)]));
    expect(finishing).toHaveLength(1);
  });

  it('begins a later kind only when nothing of the earlier one waits', async () => {
    const [first, second] = [add('first', 1, 1), add('second', 1, 1)];
    second.add(1);
    first.add(1, 2);
    runner.start();
    await jest.advanceTimersByTimeAsync(0);
    expect(begun).toEqual(['first 1']);
    await finishNext();
    await jest.advanceTimersByTimeAsync(0);
    expect(begun.slice(0, 2)).toEqual(['first 1', 'first 2']);
    expect(begun.slice(2)).toEqual(['second 1']); // nothing of the first kind waits any more
  });

  it('lets a later kind go after five seconds, however much of the earlier one waits', async () => {
    const [first, second] = [add('first', 1, 1), add('second', 1, 1)];
    first.add(...Array.from({ length: 100 }, (_, n) => n));
    second.add(1);
    runner.start();
    await jest.advanceTimersByTimeAsync(4_800);
    expect(begun).toEqual(['first 0']);
    await jest.advanceTimersByTimeAsync(400);
    expect(begun).toEqual(['first 0', 'second 1']);
  });

  it('begins a later kind although the queue of the earlier one fails', async () => {
    const [first, second] = [add('first', 1, 1), add('second', 1, 1)];
    jest.spyOn(first, 'claim').mockImplementation(() => {
      throw new TypeError('the disk is full');
    });
    first.add(1);
    second.add(1);
    runner.start();
    await jest.advanceTimersByTimeAsync(0);
    expect(begun).toEqual(['second 1']);
    expect(faults[0]).toEqual(['first', expect.any(TypeError)]);
  });

  it('gives back what has not begun when it stops, and waits for the others', async () => {
    const queue = add('a', 1, 4);
    queue.add(1, 2, 3);
    runner.start();
    await jest.advanceTimersByTimeAsync(0);
    runner.stop();
    const idle = jest.fn();
    void runner.idle(60_000).then(idle);
    await jest.advanceTimersByTimeAsync(1_000);
    expect(queue.givenBack).toEqual([2, 3]);
    expect(idle).not.toHaveBeenCalled();
    await finishNext();
    expect(idle).toHaveBeenCalled();
  });

  it('gives back what it was claiming when it stopped, and begins none of it', async () => {
    const queue = add('a', 2, 4);
    jest.spyOn(queue, 'claim').mockReturnValue(sleep(1_000).then(() => [1, 2, 3]) as never);
    runner.start();
    await jest.advanceTimersByTimeAsync(500);
    runner.stop();
    const idle = runner.idle(60_000);
    await jest.advanceTimersByTimeAsync(500);
    await idle;
    expect(begun).toEqual([]);
    expect(queue.givenBack).toEqual([1, 2, 3]);
  });

  it('gives back what has not begun when the service asks for a pause', async () => {
    const queue = add('a', 1, 4);
    queue.add(1, 2, 3);
    runner.start();
    await jest.advanceTimersByTimeAsync(0);
    pauseMs = 60_000;
    await finishNext();
    await jest.advanceTimersByTimeAsync(0);
    expect(begun).toEqual(['a 1']);
    expect(queue.givenBack).toEqual([2, 3]);
  });

  it.each([
    ['could not be renewed', LEASE_MS],
    ['ran out while the process hung', 0],
  ])('begins no job whose lease %s', async (_what, ms) => {
    const queue = add('a', 1, 4);
    jest.spyOn(queue, 'renew').mockImplementation(() => {
      throw new TypeError('the network is down');
    });
    queue.add(1, 2, 3);
    runner.start();
    await jest.advanceTimersByTimeAsync(ms);
    if (ms === 0) jest.spyOn(performance, 'now').mockReturnValue(performance.now() + LEASE_MS);
    await finishNext();
    expect(begun).toEqual(['a 1']);
    expect(queue.givenBack).toEqual([2, 3]);
  });

  it('gives back what has not begun while others are under way for longer', async () => {
    const queue = add('a', 2, 4);
    queue.add(1, 2, 3, 4);
    runner.start();
    await jest.advanceTimersByTimeAsync(0);
    pauseMs = 60_000;
    await jest.advanceTimersByTimeAsync(2_000);
    expect(queue.givenBack).toEqual([3, 4]);
  });

  it('lets a later kind go after five seconds, however busy the earlier one is', async () => {
    const [first, second] = [add('first', 1, 1), add('second', 1, 1)];
    jest.spyOn(first, 'nextDueMs').mockImplementation(() => sleep(10).then(() => 0) as never);
    first.add(1, 2);
    second.add(1);
    runner.start();
    for (let ms = 0; ms < 5_500; ms += 7) {
      first.add(3); // wakes the runner
      await jest.advanceTimersByTimeAsync(7);
    }
    expect(begun).toEqual(['first 1', 'second 1']);
  });

  it('soon claims what became due in the moment after a claim', async () => {
    const queue = add('a', 1, 4);
    jest.spyOn(queue, 'claim').mockReturnValueOnce([]);
    queue.add(1);
    runner.start();
    await jest.advanceTimersByTimeAsync(100);
    expect(begun).toEqual(['a 1']);
  });

  it('goes on with the first kind although the queue of a later one never answers', async () => {
    const [first, second] = [add('first', 1, 1), add('second', 1, 1)];
    jest.spyOn(second, 'claim').mockReturnValue(new Promise(() => undefined) as never);
    runner.start();
    await jest.advanceTimersByTimeAsync(10_000);
    first.add(1);
    await jest.advanceTimersByTimeAsync(0);
    expect(begun).toEqual(['first 1']);
    const drained = jest.fn();
    void runner.drain(60_000).then(drained);
    await finishNext();
    expect(drained).toHaveBeenCalled();
    void runner.idle(60_000);
    await jest.advanceTimersByTimeAsync(0);
  });

  it('goes on with a later kind although the queue of the first one never answers', async () => {
    const [first, second] = [add('first', 1, 1), add('second', 1, 1)];
    jest.spyOn(first, 'claim').mockReturnValue(new Promise(() => undefined) as never);
    second.add(1);
    runner.start();
    await jest.advanceTimersByTimeAsync(5_000);
    expect(begun).toEqual(['second 1']);
  });

  it('does not begin maintenance again while it goes on', async () => {
    const queue = add('a', 1, 1);
    const maintain = jest.spyOn(queue, 'maintain').mockImplementation(() => sleep(10_000) as never);
    runner.start();
    await jest.advanceTimersByTimeAsync(9_000);
    expect(maintain).toHaveBeenCalledTimes(1);
    await jest.advanceTimersByTimeAsync(9_000);
    expect(maintain).toHaveBeenCalledTimes(2);
  });

  it('asks seldom what is due while it drains and may send nothing', async () => {
    const queue = add('a', 1, 4);
    queue.add(1);
    pauseMs = 60_000;
    runner.start();
    const nextDueMs = jest.spyOn(queue, 'nextDueMs');
    const drained = runner.drain(5_000);
    await jest.advanceTimersByTimeAsync(5_000);
    await drained;
    expect(nextDueMs.mock.calls.length).toBeLessThanOrEqual(60);
  });

  it('drains for no longer than it may with a queue that never answers', async () => {
    const queue = add('a', 1, 4);
    jest.spyOn(queue, 'claim').mockReturnValue(sleep(3_000).then(() => []) as never);
    jest.spyOn(queue, 'nextDueMs').mockReturnValue(new Promise(() => undefined) as never);
    runner.start();
    const drained = jest.fn();
    void runner.drain(5_000).then(drained);
    await jest.advanceTimersByTimeAsync(5_100);
    expect(drained).toHaveBeenCalled();
  });

  it('drains no longer than its jobs take, although somebody else works them off at the same time', async () => {
    const queue = add('a', 1, 1);
    queue.add(1);
    runner.start();
    await jest.advanceTimersByTimeAsync(0);
    const [drained, workedOff] = [jest.fn(), jest.fn()];
    void runner.drain(60_000).then(drained);
    void runner.workOff(60_000).then(workedOff);
    for (let n = 0; n < 5; n += 1) {
      await nextTurn(); // in which the loop runs
      await jest.advanceTimersByTimeAsync(50);
    }
    for (let n = 0; n < 5; n += 1) await finishNext();
    await jest.advanceTimersByTimeAsync(200);
    expect([drained.mock.calls.length, workedOff.mock.calls.length]).toEqual([1, 1]);
  });

  it('drains the first kind only', async () => {
    const [first, second] = [add('first', 1, 1), add('second', 1, 1)];
    runner.start();
    await jest.advanceTimersByTimeAsync(0);
    const drained = jest.fn();
    void runner.drain(5_000).then(drained);
    first.add(1);
    second.add(1);
    await jest.advanceTimersByTimeAsync(1_000);
    expect(begun).toEqual(['first 1']);
    expect(drained).not.toHaveBeenCalled();
    await finishNext();
    await jest.advanceTimersByTimeAsync(0);
    expect(drained).toHaveBeenCalled();
    expect(begun).toEqual(['first 1']);
  });
});
