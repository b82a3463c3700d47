import { afterEach, beforeEach, describe, expect, it, jest } from '@jest/globals';
import { outboxContext } from 'debate-space-fixtures/outbox-context.js';
import { StorageError } from '../../errors.js';
import type { DebateSpaceEvent } from '../../events.js';
import { FlakyStorage } from 'debate-space-fixtures/flaky-storage.js';
import { openMemory } from 'debate-space-fixtures/outbox-engines.js';
import type { LogoutCounts, LogoutEntry, LogoutJob } from '../logout.js';
import { FallbackQueue } from './fallback-queue.js';
import { LogoutQueue } from './logout-queue.js';

const context = outboxContext();
const LONG = 60_000;
const entry = (id: string): LogoutEntry => ({ id, uid: `user of ${id}`, reason: 'destroyed', endedAt: 1 });
const ids = (jobs: readonly LogoutJob[]): string[] => jobs.map((job) => job.entry.id);
const none = { held: 0, pending: 0, parked: 0 };

describe('the fallback queue', () => {
  let engine: FlakyStorage;
  let queue: LogoutQueue;
  /** What the storage has. */
  let stored: LogoutQueue;
  let outbox: FallbackQueue;
  let events: DebateSpaceEvent[];
  beforeEach(() => {
    jest.useFakeTimers();
    engine = new FlakyStorage(openMemory());
    events = [];
    queue = new LogoutQueue(engine, { durable: true }, context);
    stored = new LogoutQueue(engine.working, { durable: true }, context);
    outbox = new FallbackQueue(queue, 250, (event) => events.push(event));
  });
  afterEach(() => {
    jest.useRealTimers();
  });

  /** Of the storage and of memory together. */
  const allCounts = async (): Promise<LogoutCounts> => {
    const [inStorage, inMemory] = [await queue.counts(), await outbox.memory.counts()];
    return {
      held: inStorage.held + inMemory.held,
      pending: inStorage.pending + inMemory.pending,
      parked: inStorage.parked + inMemory.parked,
    };
  };
  const held = async (id: string): Promise<void> => {
    const holding = outbox.hold(entry(id), LONG);
    await jest.advanceTimersByTimeAsync(250);
    await holding;
  };

  it('keeps nothing in memory while the engine works, and answers synchronously where the engine does', async () => {
    await held('a');
    await outbox.release('a');
    expect(await stored.counts()).toEqual({ ...none, pending: 1 });
    const synchronous = new FallbackQueue(stored, 250, jest.fn());
    expect(synchronous.hold(entry('b'), LONG)).toBeUndefined();
    expect(events).toEqual([]);
    expect(outbox.isDegraded).toBe(false);
  });

  it.each(['failing', 'silent'] as const)(
    'delivers from memory what a %s engine does not take, and says so once',
    async (state) => {
      engine.state = state;
      await held('a');
      await held('b');
      const cause = state === 'silent' ? 'it did not answer in time' : 'TypeError';
      expect(events).toEqual([{ type: 'storage-degraded', cause }]);
      expect(outbox.isDegraded).toBe(true);
      await outbox.release('a');
      await outbox.cancel('b');
      expect(await outbox.memory.counts()).toEqual({ ...none, pending: 1 });
      expect(ids(await outbox.claim(10))).toEqual(['a']);
      await outbox.finish('a', 1);
      expect(await outbox.memory.counts()).toEqual(none);
      engine.answer();
      await jest.advanceTimersByTimeAsync(2_000);
      expect((await queue.ofUser('user of a')).finished).toMatchObject([{ id: 'a', outcome: 'delivered' }]);
    },
  );

  it('waits for a silent engine no longer than its time limit', async () => {
    engine.state = 'silent';
    let over = false;
    void Promise.resolve(outbox.hold(entry('a'), LONG)).then(() => (over = true));
    await jest.advanceTimersByTimeAsync(249);
    expect(over).toBe(false);
    await jest.advanceTimersByTimeAsync(1);
    expect(over).toBe(true);
  });

  const steps = [
    { name: 'is held', step: () => undefined, left: { ...none, held: 1 } },
    { name: 'is released', step: () => outbox.release('a'), left: { ...none, pending: 1 } },
    { name: 'was canceled', step: () => outbox.cancel('a'), left: none },
    {
      name: 'was delivered',
      step: async () => {
        await outbox.release('a');
        await outbox.claim(1);
        await outbox.finish('a', 1);
      },
      left: none,
    },
  ];
  const returns = [
    { how: 'failed and works again', state: 'failing' as const },
    { how: 'answers late', state: 'silent' as const },
  ];
  const cases = returns.flatMap((back) => steps.map((step) => ({ ...back, ...step })));
  it.each(cases)(
    'hands a logout that $name over to an engine that $how, and nothing twice',
    async ({ state, step, left }) => {
      engine.state = state;
      await held('a');
      await step();
      engine.answer();
      await jest.advanceTimersByTimeAsync(2_000);
      expect(await stored.counts()).toEqual(left);
      expect(await allCounts()).toEqual(left);
      expect(outbox.unpersistedCount).toBe(0);
      expect(events.map(({ type }) => type)).toEqual(['storage-degraded', 'storage-recovered']);
      expect(outbox.isDegraded).toBe(false);
    },
  );

  it.each([100, 1_700, 1_800, 2_500, 6_000])(
    'loses no end that is undecided when an engine answers after %d ms more, and is proven after the handover',
    async (ms) => {
      engine.state = 'silent';
      await held('a');
      await jest.advanceTimersByTimeAsync(ms);
      engine.answer();
      await jest.advanceTimersByTimeAsync(4_000);
      expect(outbox.unpersistedCount).toBe(0);
      await outbox.release('a');
      await jest.advanceTimersByTimeAsync(4_000);
      expect(await stored.counts()).toEqual({ ...none, pending: 1 });
    },
  );

  it('loses no end that is undecided when the engine answers everything else before the hold', async () => {
    engine.state = 'silent';
    await held('a');
    engine.state = 'up';
    await jest.advanceTimersByTimeAsync(4_000);
    engine.answer();
    await jest.advanceTimersByTimeAsync(4_000);
    await outbox.release('a');
    expect(await stored.counts()).toEqual({ ...none, pending: 1 });
  });

  it('leaves nothing in an engine that gets the cancel before the hold', async () => {
    engine.state = 'silent';
    await held('a');
    engine.state = 'up';
    await outbox.cancel('a');
    await jest.advanceTimersByTimeAsync(4_000);
    engine.answer();
    await jest.advanceTimersByTimeAsync(4_000);
    expect(await stored.counts()).toEqual(none);
  });

  it.each([
    ['released', 'has it once', 1],
    ['canceled', 'has nothing of it', 0],
    ['delivered', 'has nothing of it', 0],
  ] as const)(
    'moves a logout that is %s at any moment of a flush: the storage %s',
    async (what, _result, pending) => {
      for (let ticks = 0; ticks < 40; ticks += 1) {
        engine.state = 'failing';
        await held(`${ticks}`);
        engine.state = 'up';
        const flushing = outbox.flush();
        for (let tick = 0; tick < ticks; tick += 1) await Promise.resolve();
        if (what === 'canceled') await outbox.cancel(`${ticks}`);
        else await outbox.release(`${ticks}`);
        const jobs = what === 'delivered' ? await outbox.claim(1) : [];
        for (const job of jobs) await outbox.finish(job.entry.id, 1);
        await flushing;
      }
      await jest.advanceTimersByTimeAsync(4_000);
      expect(await stored.counts()).toEqual({ ...none, pending: 40 * pending });
      expect(outbox.unpersistedCount).toBe(0);
    },
  );

  it.each(['cancel', 'finish'] as const)(
    'passes a %s on to the engine whose answer to the hold was lost',
    async (change) => {
      engine.state = 'cut off';
      await held('a');
      if (change === 'finish') {
        await outbox.release('a');
        await outbox.claim(1);
      }
      await outbox[change]('a', 1);
      engine.state = 'up';
      await jest.advanceTimersByTimeAsync(4_000);
      expect(await stored.counts()).toEqual(none);
      expect(events.map(({ type }) => type)).toEqual(['storage-degraded', 'storage-recovered']);
    },
  );

  it('leaves no rejection unhandled when an engine that answered late throws', async () => {
    engine.state = 'silent';
    await held('a');
    queue.cancel = () => {
      throw new TypeError('out of order');
    };
    await outbox.cancel('a');
    const unhandled = jest.fn();
    process.once('unhandledRejection', unhandled);
    engine.answer();
    await jest.advanceTimersByTimeAsync(4_000);
    jest.useRealTimers();
    await new Promise((resolve) => setTimeout(resolve));
    process.off('unhandledRejection', unhandled);
    expect(unhandled).not.toHaveBeenCalled();
    expect(outbox.isDegraded).toBe(true); // it has not heard of the end
  });

  it('gives out nothing that was canceled while the engine was away, though its lease has expired', async () => {
    const holding = outbox.hold(entry('a'), 1_000);
    await holding;
    engine.state = 'failing';
    await expect(async () => outbox.cancel('a')).rejects.toThrow(TypeError);
    await jest.advanceTimersByTimeAsync(1_500);
    engine.state = 'up';
    expect(await outbox.claim(10)).toEqual([]);
    expect(await stored.counts()).toEqual(none);
  });

  it('keeps what is parked in memory parked', async () => {
    engine.state = 'failing';
    await held('a');
    await outbox.release('a');
    await outbox.claim(1);
    await outbox.park('a', { attempts: 1, rejections: 0 }, 'a hint');
    engine.state = 'up';
    await jest.advanceTimersByTimeAsync(4_000);
    expect(await allCounts()).toEqual({ ...none, parked: 1 });
    expect(await stored.counts()).toEqual({ ...none, parked: 1 });
    expect(await stored.parked(1)).toMatchObject([{ hint: 'a hint', attempts: 1 }]);
  });

  it('asks a closed engine nothing', async () => {
    await held('a');
    engine.state = 'failing';
    await outbox.close();
    await expect(async () => outbox.cancel('a')).rejects.toThrow(TypeError);
    expect(jest.getTimerCount()).toBe(0);
  });

  it('delivers what comes after a commit that gets no answer for good', async () => {
    engine.state = 'silent';
    const holding = held('a');
    await holding;
    const canceled = Promise.resolve(outbox.cancel('a')).catch(() => undefined);
    engine.state = 'up';
    await jest.advanceTimersByTimeAsync(20_000);
    await canceled;
    await held('b');
    await outbox.release('b');
    const claiming = outbox.claim(10);
    await jest.advanceTimersByTimeAsync(5_000);
    expect(ids(await claiming)).toEqual(['b']);
  });

  it('leaves what is under way to the process that delivers it', async () => {
    engine.state = 'silent';
    await held('a');
    await outbox.release('a');
    await outbox.claim(1);
    engine.answer();
    await jest.advanceTimersByTimeAsync(2_000);
    expect(ids(await outbox.claim(10))).toEqual([]);
    expect(outbox.unpersistedCount).toBe(1);
    await outbox.finish('a', 1);
    await jest.advanceTimersByTimeAsync(2_000);
    expect(await allCounts()).toEqual(none);
    expect(await stored.counts()).toEqual(none);
  });

  it('rejects a claim that the engine does not answer, and then gives out what memory has', async () => {
    queue.claim = () => new Promise<never>(() => undefined);
    const nothing = expect(outbox.claim(10)).rejects.toThrow('no answer in time');
    await jest.advanceTimersByTimeAsync(5_000);
    await nothing;
    engine.state = 'failing';
    await held('a');
    await outbox.release('a');
    expect(ids(await outbox.claim(10))).toEqual(['a']); // immediately
  });

  it.each(['cancel', 'finish'] as const)(
    'repeats to the engine a %s that the engine has missed',
    async (change) => {
      await held('a');
      if (change === 'finish') {
        await outbox.release('a');
        await outbox.claim(1);
      }
      engine.state = 'failing';
      await expect(async () => outbox[change]('a', 1)).rejects.toThrow(TypeError);
      await jest.advanceTimersByTimeAsync(10_000);
      engine.state = 'up';
      await jest.advanceTimersByTimeAsync(2_000);
      expect(await stored.counts()).toEqual(none);
    },
  );

  it('lists what was parked in memory as soon as the storage has it', async () => {
    await held('kept');
    engine.state = 'failing';
    await held('spare');
    await outbox.release('spare');
    engine.state = 'up';
    await outbox.release('kept');
    expect(ids(await outbox.claim(10))).toEqual(['spare']);
    expect(ids(await outbox.claim(10))).toEqual(['kept']);
    for (const id of ['kept', 'spare']) await outbox.park(id, { attempts: 1, rejections: 0 }, 'a hint');
    await jest.advanceTimersByTimeAsync(2_000);
    expect(ids(await queue.parked(10))).toEqual(['kept', 'spare']);
    expect(await queue.retryParked('spare')).toBe(true);
    expect(await queue.discard('kept')).toBe(true);
    expect(await allCounts()).toEqual({ ...none, pending: 1 });
  });

  it('names the problem of a storage that does not take a logout', async () => {
    jest.spyOn(queue, 'hold').mockRejectedValue(new StorageError('Redis failed (OOM: out of memory)'));
    await held('a');
    expect(events).toEqual([{ type: 'storage-degraded', cause: 'Redis failed (OOM: out of memory)' }]);
  });

  it('delivers from memory what the storage holds but does not release', async () => {
    await held('a');
    engine.state = 'failing';
    const releasing = outbox.release('a');
    await jest.advanceTimersByTimeAsync(250);
    await releasing;
    expect(events).toEqual([{ type: 'storage-degraded', cause: 'TypeError' }]);
    expect(ids(await outbox.claim(10))).toEqual(['a']);
    await outbox.finish('a', 1);
    engine.state = 'up';
    await jest.advanceTimersByTimeAsync(4_000);
    expect(await stored.counts()).toEqual(none);
    expect((await queue.ofUser('user of a')).finished).toHaveLength(1);
    expect(events).toHaveLength(2);
  });

  const names = (count: number): string[] => Array.from({ length: count }, (_, n) => `l-${n}`);
  const slowDown = (ms: number): void => {
    jest.spyOn(engine, 'commit').mockImplementation(async (checks, changes) => {
      await new Promise((resolve) => setTimeout(resolve, ms));
      return engine.working.commit(checks, changes);
    });
  };
  const keptInMemory = async (count: number): Promise<void> => {
    engine.state = 'failing';
    for (const id of names(count)) {
      await held(id);
      await outbox.release(id);
    }
  };

  it.each([0, 5, 15])(
    'reports once to a slow storage what was delivered from memory, although it is to give out work %d ms later',
    async (ms) => {
      await keptInMemory(5);
      await outbox.claim(5);
      for (const id of names(5)) await outbox.finish(id, 1);
      await jest.advanceTimersByTimeAsync(10);
      engine.state = 'up';
      slowDown(10);
      const flushing = outbox.flush();
      await jest.advanceTimersByTimeAsync(ms);
      const claiming = outbox.claim(5);
      await jest.advanceTimersByTimeAsync(1_000);
      await flushing;
      expect(await claiming).toEqual([]);
      for (const id of names(5)) expect((await queue.ofUser(`user of ${id}`)).finished).toHaveLength(1);
      expect(await stored.counts()).toEqual(none);
    },
  );

  it.each(['waits', 'was delivered'])(
    'has a slow storage take what %s in memory before a shutdown ends',
    async (what) => {
      await keptInMemory(300);
      if (what === 'was delivered') {
        await outbox.claim(300);
        for (const id of names(300)) await outbox.finish(id, 1);
      }
      await jest.advanceTimersByTimeAsync(10);
      engine.state = 'up';
      slowDown(50);
      const done = jest.fn();
      void outbox.flush().then(done);
      await jest.advanceTimersByTimeAsync(5_000);
      expect(done).toHaveBeenCalled();
      expect(await stored.counts()).toEqual({ ...none, pending: what === 'waits' ? 300 : 0 });
    },
  );

  it('knows when what is in memory is due although the storage cannot be asked', async () => {
    await keptInMemory(1);
    expect(await outbox.nextDueMs()).toBe(0);
    await outbox.claim(1);
    await outbox.retry('l-0', { attempts: 1, rejections: 0 }, 700);
    expect(await outbox.nextDueMs()).toBe(700);
  });

  it('keeps nothing of an erased user in memory', async () => {
    await keptInMemory(2);
    await outbox.claim(1);
    await outbox.park('l-0', { attempts: 1, rejections: 0 }, 'a hint');
    for (const id of names(2)) await outbox.forget(`user of ${id}`).catch(() => undefined); // the storage is away
    expect(outbox.unpersistedCount).toBe(0);
    engine.state = 'up';
    await jest.advanceTimersByTimeAsync(4_000);
    expect(await stored.counts()).toEqual(none);
  });
});
