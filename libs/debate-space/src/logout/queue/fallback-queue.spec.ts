import { afterEach, beforeEach, describe, expect, it, jest } from '@jest/globals';
import { outboxContext } from 'debate-space-fixtures/outbox-context.js';
import { StorageError } from '../../errors.js';
import type { DebateSpaceEvent } from '../../events.js';
import { FlakyStorage } from 'debate-space-fixtures/flaky-storage.js';
import { openMemory } from 'debate-space-fixtures/outbox-engines.js';
import type { FinishedEntry, LogoutCounts, LogoutEntry, LogoutJob } from '../logout.js';
import { FallbackQueue } from './fallback-queue.js';
import { LogoutQueue } from './logout-queue.js';

const context = outboxContext({ keepFinishedMs: 3_600_000 });
const entry = (id: string): LogoutEntry => ({ id, uid: `user of ${id}`, reason: 'destroyed', endedAt: 1 });
const ids = (jobs: readonly LogoutJob[]): string[] => jobs.map((job) => job.entry.id);
const names = (count: number): string[] => Array.from({ length: count }, (_, n) => `l-${n}`);
const none = { pending: 0, parked: 0 };
const once = { attempts: 1, rejections: 0 };
const pass = (ms: number): Promise<void> => jest.advanceTimersByTimeAsync(ms);

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

  const eventTypes = (): string[] => events.map(({ type }) => type);
  /** Of the storage and of memory together. */
  const allCounts = async (): Promise<LogoutCounts> => {
    const [inStorage, inMemory] = [await stored.counts(), await outbox.memory.counts()];
    return { pending: inStorage.pending + inMemory.pending, parked: inStorage.parked + inMemory.parked };
  };
  const history = async (id: string): Promise<readonly FinishedEntry[]> =>
    (await stored.ofUser(`user of ${id}`)).finished;
  const added = async (...added: string[]): Promise<void> => {
    const adding = outbox.add(added.map(entry));
    await pass(250);
    await adding;
  };
  const keptInMemory = async (count: number): Promise<void> => {
    engine.state = 'failing';
    for (const id of names(count)) await added(id);
  };

  it('keeps nothing in memory while the engine works, and answers synchronously where the engine does', async () => {
    await added('a', 'b');
    expect(await stored.counts()).toEqual({ ...none, pending: 2 });
    const synchronous = new FallbackQueue(stored, 250, jest.fn());
    expect(synchronous.add([entry('c')])).toBeUndefined();
    expect(events).toEqual([]);
    expect(outbox.isDegraded).toBe(false);
    expect(outbox.unpersistedCount).toBe(0);
  });

  it.each(['failing', 'silent'] as const)(
    'delivers from memory what a %s engine does not take, and says so once',
    async (state) => {
      engine.state = state;
      await added('a');
      await added('b', 'c');
      const cause = state === 'silent' ? 'it did not answer in time' : 'TypeError';
      expect(events).toEqual([{ type: 'storage-degraded', cause }]);
      expect(outbox.isDegraded).toBe(true);
      expect(outbox.unpersistedCount).toBe(3);
      expect(ids(await outbox.claim(10))).toEqual(['a', 'b', 'c']); // immediately
      for (const id of ['a', 'b', 'c']) await outbox.finish(id, 1);
      expect(await outbox.memory.counts()).toEqual(none);
      engine.answer();
      await pass(2_000);
      for (const id of ['a', 'b', 'c'])
        expect(await history(id)).toMatchObject([{ id, attempts: 1, outcome: 'delivered' }]);
      expect(await stored.counts()).toEqual(none);
      expect(eventTypes()).toEqual(['storage-degraded', 'storage-recovered']);
    },
  );

  it('waits for a silent engine no longer than its time limit', async () => {
    engine.state = 'silent';
    let over = false;
    void Promise.resolve(outbox.add([entry('a')])).then(() => (over = true));
    await pass(249);
    expect(over).toBe(false);
    await pass(1);
    expect(over).toBe(true);
  });

  const steps = [
    { name: 'waits', step: () => undefined, left: { ...none, pending: 1 } },
    {
      name: 'is superseded',
      step: () => outbox.supersede('user of a', 1).catch(() => undefined), // the storage cannot be asked
      left: none,
    },
    {
      name: 'was delivered',
      step: async () => {
        await outbox.claim(1);
        await outbox.finish('a', 1);
      },
      left: none,
    },
  ];
  const returns = [
    { how: 'failed and works again', state: 'failing' as const },
    { how: 'made all, and lost the answers', state: 'cut off' as const },
    { how: 'answers late', state: 'silent' as const },
  ];
  const cases = returns.flatMap((back) => steps.map((step) => ({ ...back, ...step })));
  it.each(cases)(
    'hands a logout that $name over to an engine that $how, and nothing twice',
    async ({ state, step, left }) => {
      engine.state = state;
      await added('a');
      const done = step();
      engine.answer();
      await pass(2_000);
      await done;
      expect(await stored.counts()).toEqual(left);
      expect(await allCounts()).toEqual(left);
      expect(outbox.unpersistedCount).toBe(0);
      expect((await history('a')).length).toBeLessThanOrEqual(1);
      expect(eventTypes()).toEqual(['storage-degraded', 'storage-recovered']);
      expect(outbox.isDegraded).toBe(false);
    },
  );

  it.each([100, 1_700, 1_800, 2_500, 6_000])(
    'loses nothing that an engine takes after %d ms more',
    async (ms) => {
      engine.state = 'silent';
      await added('a', 'b');
      await pass(ms);
      engine.answer();
      await pass(4_000);
      expect(outbox.unpersistedCount).toBe(0);
      expect(await stored.counts()).toEqual({ ...none, pending: 2 });
    },
  );

  it.each(['finish', 'supersede'] as const)(
    'leaves nothing in an engine that gets a %s before the add',
    async (change) => {
      engine.state = 'silent';
      await added('a', 'b');
      engine.state = 'up';
      if (change === 'finish') {
        await outbox.claim(10);
        for (const id of ['a', 'b']) await outbox.finish(id, 1);
      } else for (const id of ['a', 'b']) expect(await outbox.supersede(`user of ${id}`, 1)).toBe(1);
      await pass(4_000);
      engine.answer();
      await pass(4_000);
      expect(await stored.counts()).toEqual(none);
      for (const id of ['a', 'b']) expect(await history(id)).toHaveLength(1);
    },
  );

  it('leaves memory when a late answer says that the engine has it, and stores it no second time', async () => {
    engine.delayMs = 600;
    await added('a'); // another process may have delivered it before it is moved
    expect(outbox.unpersistedCount).toBe(1);
    await pass(350);
    expect(outbox.unpersistedCount).toBe(0);
    engine.delayMs = 0;
    for (const job of await stored.claim(1)) await stored.finish(job.entry.id, 1);
    await pass(4_000);
    expect(await stored.counts()).toEqual(none);
    expect(eventTypes()).toEqual(['storage-degraded', 'storage-recovered']);
  });

  it('keeps in memory nothing that the engine has given out before it has answered the add', async () => {
    engine.delayMs = 400;
    const adding = outbox.add(['a', 'b'].map(entry));
    await pass(201); // it is stored
    engine.delayMs = 0;
    expect(ids(await outbox.claim(1))).toEqual(['a']);
    await pass(49);
    await adding;
    expect(outbox.unpersistedCount).toBe(1);
    expect(ids(await outbox.claim(10))).toEqual(['b']);
    const done = Promise.all(['a', 'b'].map(async (id) => outbox.finish(id, 1)));
    await pass(4_000);
    await done;
    expect(await outbox.claim(10)).toEqual([]);
    expect(await stored.counts()).toEqual(none);
    for (const id of ['a', 'b']) expect(await history(id)).toHaveLength(1);
  });

  it.each([0, 100, 200, 300, 400, 500, 600, 700, 800, 900, 1_000])(
    'delivers a logout once that is delivered from memory %d ms after a claim began that finds it in the storage',
    async (ms) => {
      engine.state = 'cut off';
      await added('a');
      await outbox.claim(1);
      engine.state = 'up';
      engine.delayMs = 300;
      const claiming = outbox.claim(1);
      await pass(ms);
      void outbox.finish('a', 1);
      await pass(2_000);
      expect(await claiming).toEqual([]);
      expect(queue.isClaimed('a')).toBe(false);
      expect(await stored.counts()).toEqual(none);
      expect(await history('a')).toHaveLength(1);
    },
  );

  const paces = [2, 240, 260, 300, 500, 900, 1_500].flatMap((ms) =>
    [10, 150, 800].map((sendMs) => [ms, sendMs]),
  );
  it.each(paces)(
    'delivers each logout once where each call to the storage takes %d ms, and each delivery %d ms',
    async (ms, sendMs) => {
      const sent: string[] = [];
      const send = async (id: string): Promise<void> => {
        sent.push(id);
        await new Promise((resolve) => setTimeout(resolve, sendMs));
        await Promise.resolve(outbox.finish(id, 1)).catch(() => undefined); // it is repeated
      };
      let isOver = false;
      const work = async (): Promise<void> => {
        while (!isOver) {
          const jobs = await outbox.claim(10).catch(() => []);
          for (const id of ids(jobs)) void send(id);
          await new Promise((resolve) => setTimeout(resolve, 7));
        }
      };
      void work();
      engine.delayMs = ms;
      const all = names(40);
      for (let n = 0; n < all.length; n += 2) {
        void outbox.add(all.slice(n, n + 2).map(entry));
        await pass(45);
      }
      await pass(10_000);
      engine.delayMs = 0;
      await pass(35_000); // what was claimed and not given out in time is due again
      isOver = true;
      expect(sent.toSorted()).toEqual(all.toSorted());
      expect(await allCounts()).toEqual(none);
      expect(outbox.unpersistedCount).toBe(0);
      for (const id of all) expect(await history(id)).toHaveLength(1);
    },
  );

  it.each([
    ['waits', 'has it once', 1],
    ['is superseded', 'has nothing of it', 0],
    ['is parked, of a user who is erased', 'has nothing of it', 0],
    ['is delivered', 'has nothing of it', 0],
  ] as const)(
    'moves a logout that %s at any moment of a flush: the storage %s',
    async (what, _result, left) => {
      for (let ticks = 0; ticks < 60; ticks += 1) {
        const id = `000000000000001-${ticks}`;
        engine.state = 'failing';
        await added(id);
        if (what.startsWith('is parked')) {
          await outbox.claim(1);
          await outbox.park(id, once, 'a hint');
        }
        engine.state = 'up';
        const flushing = outbox.flush();
        for (let tick = 0; tick < ticks; tick += 1) await Promise.resolve();
        if (what === 'is superseded') await outbox.supersede(`user of ${id}`, 1);
        if (what.startsWith('is parked')) await outbox.forget(`user of ${id}`);
        if (what === 'is delivered') {
          expect(ids(await outbox.claim(1))).toEqual([id]);
          expect(await outbox.claim(1)).toEqual([]);
          await outbox.finish(id, 1);
          expect(await outbox.claim(1)).toEqual([]);
        }
        await flushing;
      }
      await pass(4_000);
      expect(await allCounts()).toEqual({ ...none, pending: 60 * left });
      expect(outbox.unpersistedCount).toBe(0);
    },
  );

  it('leaves no rejection unhandled when an engine that answered late throws', async () => {
    engine.state = 'silent';
    await added('a');
    queue.finish = () => {
      throw new TypeError('out of order');
    };
    await outbox.claim(1);
    await outbox.finish('a', 1);
    const unhandled = jest.fn();
    process.once('unhandledRejection', unhandled);
    engine.answer();
    await pass(4_000);
    jest.useRealTimers();
    await new Promise((resolve) => setTimeout(resolve));
    process.off('unhandledRejection', unhandled);
    expect(unhandled).not.toHaveBeenCalled();
    expect(outbox.isDegraded).toBe(true); // it has not heard of the end
  });

  it('gives out nothing that was delivered and not recorded while the engine was away, when its lease has ended', async () => {
    await added('a');
    expect(ids(await outbox.claim(1))).toEqual(['a']);
    engine.state = 'failing';
    await expect(async () => outbox.finish('a', 1)).rejects.toThrow(TypeError);
    await pass(31_000);
    engine.state = 'up';
    expect(await outbox.claim(10)).toEqual([]);
    expect(await stored.counts()).toEqual(none);
  });

  it('keeps what is parked in memory parked', async () => {
    engine.state = 'failing';
    await added('a');
    await outbox.claim(1);
    await outbox.park('a', once, 'a hint');
    engine.state = 'up';
    await pass(4_000);
    expect(await allCounts()).toEqual({ ...none, parked: 1 });
    expect(await stored.parked(1)).toMatchObject([{ hint: 'a hint', attempts: 1 }]);
  });

  it('asks a closed engine nothing', async () => {
    await added('a');
    await outbox.claim(1);
    engine.state = 'failing';
    await outbox.close();
    await expect(async () => outbox.finish('a', 1)).rejects.toThrow(TypeError);
    expect(jest.getTimerCount()).toBe(0);
  });

  it('delivers what comes after a commit that gets no answer for good', async () => {
    engine.state = 'silent';
    await added('a');
    void outbox.supersede('user of a', 1).catch(() => undefined);
    engine.state = 'up';
    await pass(20_000);
    await added('b');
    const claiming = outbox.claim(10);
    await pass(5_000);
    expect(ids(await claiming)).toEqual(['b']);
  });

  it.each([
    ['delivered', () => outbox.finish('a', 1), none],
    ['retried', () => outbox.retry('a', once, 60_000), { ...none, pending: 1 }],
    ['parked', () => outbox.park('a', once, 'a hint'), { ...none, parked: 1 }],
    ['given back', () => outbox.giveBack([{ entry: entry('a'), ...once }]), { ...none, pending: 1 }],
  ] as const)(
    'gives out nothing that is sent from memory when the engine has it, too, and records there what is %s',
    async (_what, record, left) => {
      engine.state = 'silent';
      await added('a');
      const jobs = await outbox.claim(1);
      engine.answer();
      await pass(2_000);
      expect(await outbox.claim(10)).toEqual([]);
      await pass(20_000);
      await outbox.renew(jobs);
      await pass(20_000);
      expect(await stored.claim(10)).toEqual([]); // no more than another process
      await record();
      await pass(2_000);
      expect(outbox.unpersistedCount).toBe(0);
      expect(await allCounts()).toEqual(left);
      expect(await stored.counts()).toEqual(left);
      expect((await stored.ofUser('user of a')).waiting).toMatchObject(
        left.pending + left.parked ? [once] : [],
      );
    },
  );

  it('rejects a claim that the engine does not answer, and then gives out what memory has', async () => {
    queue.claim = () => new Promise<never>(() => undefined);
    const nothing = expect(outbox.claim(10)).rejects.toThrow('no answer in time');
    await pass(5_000);
    await nothing;
    engine.state = 'failing';
    await added('a');
    expect(ids(await outbox.claim(10))).toEqual(['a']); // immediately
  });

  it('repeats to the engine a delivery that the engine has missed', async () => {
    await added('a');
    await outbox.claim(1);
    engine.state = 'failing';
    await expect(async () => outbox.finish('a', 1)).rejects.toThrow(TypeError);
    await pass(10_000);
    engine.state = 'up';
    await pass(2_000);
    expect(await stored.counts()).toEqual(none);
    expect(await history('a')).toHaveLength(1);
  });

  it('lists what was parked in memory as soon as the storage has it', async () => {
    await added('kept');
    engine.state = 'failing';
    await added('spare');
    engine.state = 'up';
    expect(ids(await outbox.claim(10))).toEqual(['spare']);
    expect(ids(await outbox.claim(10))).toEqual(['kept']);
    for (const id of ['kept', 'spare']) await outbox.park(id, once, 'a hint');
    await pass(2_000);
    expect(ids(await queue.parked(10))).toEqual(['kept', 'spare']);
    expect(await queue.retryParked('spare')).toBe(true);
    expect(await queue.discard('kept')).toBe(true);
    expect(await allCounts()).toEqual({ ...none, pending: 1 });
  });

  it('names the problem of a storage that does not take a logout', async () => {
    jest.spyOn(queue, 'add').mockRejectedValue(new StorageError('Redis failed (OOM: out of memory)'));
    await outbox.add([entry('a')]);
    expect(events).toEqual([{ type: 'storage-degraded', cause: 'Redis failed (OOM: out of memory)' }]);
  });

  it.each([0, 5, 15])(
    'reports once to a slow storage what was delivered from memory, although it is to give out work %d ms later',
    async (ms) => {
      await keptInMemory(5);
      await outbox.claim(5);
      for (const id of names(5)) await outbox.finish(id, 1);
      await pass(10);
      engine.state = 'up';
      engine.delayMs = 10;
      const flushing = outbox.flush();
      await pass(ms);
      const claiming = outbox.claim(5);
      await pass(1_000);
      await flushing;
      expect(await claiming).toEqual([]);
      for (const id of names(5)) expect(await history(id)).toHaveLength(1);
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
      await pass(10);
      engine.state = 'up';
      engine.delayMs = 50;
      const done = jest.fn();
      void outbox.flush().then(done);
      await pass(5_000);
      expect(done).toHaveBeenCalled();
      expect(await stored.counts()).toEqual({ ...none, pending: what === 'waits' ? 300 : 0 });
    },
  );

  it('knows when what is in memory is due although the storage cannot be asked', async () => {
    await keptInMemory(1);
    expect(await outbox.nextDueMs()).toBe(0);
    await outbox.claim(1);
    await outbox.retry('l-0', once, 700);
    expect(await outbox.nextDueMs()).toBe(700);
  });

  it('keeps nothing of an erased user in memory', async () => {
    await keptInMemory(2);
    await outbox.claim(1);
    await outbox.park('l-0', once, 'a hint');
    for (const id of names(2)) await outbox.forget(`user of ${id}`).catch(() => undefined); // the storage is away
    expect(outbox.unpersistedCount).toBe(0);
    engine.state = 'up';
    await pass(4_000);
    expect(await stored.counts()).toEqual(none);
  });

  it('keeps nothing of an erased user whose parked logout was on its way to the storage', async () => {
    await keptInMemory(1);
    await outbox.claim(1);
    await outbox.park('l-0', once, 'a hint');
    engine.state = 'silent';
    void outbox.flush();
    await pass(10);
    engine.state = 'up';
    await outbox.forget('user of l-0');
    engine.answer();
    await pass(4_000);
    expect(await allCounts()).toEqual(none);
  });
});
