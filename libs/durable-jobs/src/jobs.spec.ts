import { afterEach, beforeEach, describe, expect, it } from '@jest/globals';
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { inspect } from 'node:util';
import { openJobs, ParkJob, type JobHandler, type Jobs, type JobsOptions } from './jobs.js';
import { lmdbStorage } from './lmdb.js';
import { memoryStorage, MemoryStorage } from './memory.js';
import { StorageError, type Storage, type StorageEngine } from './storage.js';

/** An engine whose storage stays when it is closed, and can be looked into. */
function keptEngine(): StorageEngine & { readonly storage: () => MemoryStorage; closed: number } {
  let storage: MemoryStorage | undefined;
  const engine = {
    ...memoryStorage(),
    closed: 0,
    storage: () => storage ?? new MemoryStorage({ families: [] }),
    open: (context: Parameters<StorageEngine['open']>[0]): Storage => {
      storage ??= new MemoryStorage(context);
      const kept = storage;
      return {
        get: (keys) => kept.get(keys),
        range: (from, to, options) => kept.range(from, to, options),
        count: (family) => kept.count(family),
        commit: (checks, changes) => kept.commit(checks, changes),
        now: () => kept.now(),
        close: () => void (engine.closed += 1),
      };
    },
  };
  return engine;
}

const opened: Jobs[] = [];
let faults: [string, unknown][];
let folder: string;
beforeEach(async () => {
  faults = [];
  folder = await mkdtemp(join(tmpdir(), 'jobs-'));
});
afterEach(async () => {
  for (const jobs of opened.splice(0)) await jobs.close();
  await rm(folder, { recursive: true });
});

async function open(engine: StorageEngine = memoryStorage(), more: Partial<JobsOptions> = {}): Promise<Jobs> {
  const onFault = (where: string, error: unknown): unknown => faults.push([where, error]);
  const jobs = await openJobs(engine, { namespace: 'app', onFault, ...more });
  opened.push(jobs);
  return jobs;
}

/** Resolves when the work has been called so often. */
function counted(times: number, work: (call: number) => unknown = () => undefined) {
  let calls = 0;
  let done = (): void => undefined;
  const all = new Promise<void>((resolve) => (done = resolve));
  const handler: JobHandler = async (...args) => {
    calls += 1;
    seen.push(args);
    try {
      return (await work(calls)) as Awaited<ReturnType<JobHandler>>;
    } finally {
      if (calls === times) setImmediate(done);
    }
  };
  const seen: Parameters<JobHandler>[] = [];
  return { handler, all, seen, calls: () => calls };
}

describe('jobs', () => {
  it('are worked once they are added, and are gone then', async () => {
    const jobs = await open();
    const { handler, all, seen } = counted(2);
    jobs.work('mail', handler);
    const [one] = await jobs.add([
      { kind: 'mail', payload: 'first', key: 'ann', group: 'a list/1', id: 'ü 1' },
      { kind: 'mail', payload: 'second' },
      { kind: 'other', payload: 'nobody works it' },
    ]);
    await all;
    expect(seen[0]?.[0]).toEqual({ ...one, payload: 'first', key: 'ann', group: 'a list/1', attempts: 0 });
    expect(seen[1]?.[0]).toMatchObject({ kind: 'mail', payload: 'second', attempts: 0 });
    await settled(async () => {
      expect(await jobs.stats()).toEqual({ pending: 1, parked: 0 });
    });
  });

  it('that are left in a durable storage are worked by the next process', async () => {
    const before = await open(lmdbStorage({ path: folder }));
    await before.add([{ kind: 'mail', payload: 'left' }]);
    await before.close();
    const { handler, all, seen } = counted(1);
    (await open(lmdbStorage({ path: folder }))).work('mail', handler);
    await all;
    expect(seen[0]?.[0].payload).toBe('left');
  });

  it('are called again after an error, which is reported', async () => {
    const jobs = await open();
    const error = new Error('no connection');
    const { handler, all, seen } = counted(2, (call) => {
      if (call === 1) throw error;
    });
    jobs.work('mail', handler);
    await jobs.add([{ kind: 'mail', payload: 'text' }]);
    await all;
    expect(faults).toEqual([['mail', error]]);
    expect(seen.map(([{ attempts }]) => attempts)).toEqual([0, 1]);
  });

  it('are called again when the handler says so, and not earlier', async () => {
    const jobs = await open();
    const times: number[] = [];
    const { handler, all } = counted(2, (call) => {
      times.push(performance.now());
      return call === 1 ? { retryAt: Date.now() + 200 } : undefined;
    });
    jobs.work('mail', handler);
    await jobs.add([{ kind: 'mail', payload: 'text' }]);
    await all;
    expect((times[1] ?? 0) - (times[0] ?? 0)).toBeGreaterThan(190);
    expect(faults).toEqual([]);
  });

  it.each([
    [
      'throws ParkJob',
      () => {
        throw new ParkJob('ask Ann');
      },
    ],
    ['returns { park }', () => ({ park: 'ask Ann' })],
  ])('are parked when the handler %s, until somebody retries them', async (_, work) => {
    const jobs = await open();
    const { handler, all } = counted(1, (call) => (call === 1 ? work() : undefined));
    jobs.work('mail', handler);
    await jobs.add([{ kind: 'mail', payload: 'text', key: 'ann' }]);
    await all;
    let parked = await jobs.parked('mail');
    await settled(async () => {
      parked = await jobs.parked('mail');
      expect(parked).toMatchObject([
        { kind: 'mail', payload: 'text', key: 'ann', attempts: 1, hint: 'ask Ann' },
      ]);
    });
    const [job] = parked;
    if (!job) throw new Error('none');
    expect(await jobs.retry(job)).toBe(true);
    expect(await jobs.retry(job)).toBe(false);
    await settled(async () => {
      expect(await jobs.stats()).toEqual({ pending: 0, parked: 0 });
    });
    expect(faults).toEqual([]);
  });

  it('are tried again when the handler returns something else', async () => {
    const jobs = await open();
    const { handler, all } = counted(1, () => 'done');
    jobs.work('mail', handler);
    await jobs.add([{ kind: 'mail', payload: 'text' }]);
    await all;
    await settled(() => {
      expect(faults).toEqual([['mail', expect.any(TypeError)]]);
    });
    expect(await jobs.stats()).toEqual({ pending: 1, parked: 0 });
  });

  it('are found by key, and are not worked when they were canceled', async () => {
    const jobs = await open();
    await jobs.add([
      { kind: 'mail', payload: '1', key: 'ann' },
      { kind: 'mail', payload: '2', key: 'bob' },
    ]);
    const [found] = await jobs.find({ kind: 'mail', key: 'ann' });
    if (!found) throw new Error('none');
    expect(found).toMatchObject({ payload: '1', key: 'ann' });
    expect(await jobs.cancel(found)).toBe(true);
    expect(await jobs.cancel(found)).toBe(false);
    const { handler, all, seen } = counted(1);
    jobs.work('mail', handler);
    await all;
    expect(seen.map(([{ payload }]) => payload)).toEqual(['2']);
  });

  it('that wait in a busy process are not worked when they are canceled', async () => {
    const jobs = await open();
    const { handler, all, seen } = counted(1, () => jobs.cancel({ kind: 'mail', id: '2' }));
    await jobs.add(['1', '2'].map((id) => ({ kind: 'mail', payload: id, id })));
    jobs.work('mail', handler, { concurrency: 1 });
    await all;
    await jobs.close();
    expect(seen.map(([{ id }]) => id)).toEqual(['1']);
  });

  it('of a paused group wait until it is resumed', async () => {
    const jobs = await open();
    expect(await jobs.pause('mail', 'list')).toBe(true);
    await jobs.add(['list', 'other'].map((group) => ({ kind: 'mail', payload: group, group })));
    const { handler, all, seen } = counted(2);
    jobs.work('mail', handler);
    await settled(() => {
      expect(seen.map(([{ payload }]) => payload)).toEqual(['other']);
    });
    expect(await jobs.resume('mail', 'list')).toBe(true);
    await all;
    expect(seen.map(([{ group }]) => group)).toEqual(['other', 'list']);
  });

  it.each([
    ['no kind', { kind: '', payload: '' }],
    ['a payload that is no text', { kind: 'mail', payload: 1 as never }],
    ['an empty id', { kind: 'mail', payload: '', id: '' }],
    ['a long id', { kind: 'mail', payload: '', id: 'ü'.repeat(300) }],
  ])('are refused with %s, and none of the call is added', async (_, job) => {
    const jobs = await open();
    await expect(jobs.add([{ kind: 'mail', payload: '' }, job])).rejects.toThrow(TypeError);
    expect(await jobs.stats()).toEqual({ pending: 0, parked: 0 });
  });
});

describe('the storage of jobs', () => {
  const textOf = (engine: ReturnType<typeof keptEngine>) =>
    JSON.stringify(
      ['jobpending', 'jobkey', 'jobdue'].map((f) => engine.storage().range(`${f}:`, `${f};`, { limit: 9 })),
    );

  it('has no payload and no key in it when there is a storage key, and is read with any of several', async () => {
    const engine = keptEngine();
    const jobs = await open(engine, { storageKey: 'secret one' });
    await jobs.add([{ kind: 'mail', payload: 'for nobody', key: 'ann' }]);
    expect(textOf(engine)).not.toMatch(/nobody|ann"|:ann/);
    expect(inspect(jobs, { depth: 9 })).not.toContain('secret one');
    const rotated = await open(engine, { storageKey: ['secret two', 'secret one'] });
    expect(await rotated.find({ kind: 'mail', key: 'ann' })).toMatchObject([{ payload: 'for nobody' }]);
    const other = await open(engine, { storageKey: 'secret two' });
    const { handler } = counted(1);
    other.work('mail', handler);
    await settled(async () => {
      expect(await other.parked('mail')).toMatchObject([
        { payload: '', hint: expect.stringContaining('storageKey') },
      ]);
    });
    const [job] = await other.parked('mail');
    expect(await other.retry(job ?? { kind: '', id: '' })).toBe(false);
    expect(await jobs.retry(job ?? { kind: '', id: '' })).toBe(true);
  });

  it('is closed when it was written by a newer version', async () => {
    const engine = keptEngine();
    await open(engine);
    engine.storage().commit(new Map(), new Map([['format:', JSON.stringify({ v: 99, id: 'x' })]]));
    await expect(open(engine)).rejects.toThrow(StorageError);
    expect(engine.closed).toBe(1);
  });

  it('is closed once the jobs that run have come to their end', async () => {
    const engine = keptEngine();
    const jobs = await open(engine);
    const { handler, calls } = counted(1, () => new Promise((resolve) => setTimeout(resolve, 100)));
    jobs.work('mail', handler);
    await jobs.add([{ kind: 'mail', payload: '' }]);
    await settled(() => {
      expect(calls()).toBe(1);
    });
    await jobs.close();
    expect(engine.closed).toBe(1);
    expect(engine.storage().count('jobpending')).toBe(0);
    expect(() => {
      jobs.work('other', handler);
    }).toThrow(TypeError);
  });

  it('gets a job back at once whose handler stops because the jobs are closed', async () => {
    const engine = keptEngine();
    const jobs = await open(engine);
    const { handler, calls, seen } = counted(1, () => stopped);
    const stopped = new Promise((_, reject) => {
      setTimeout(
        () =>
          seen[0]?.[1].addEventListener('abort', () => {
            reject(new Error('stopped'));
          }),
        50,
      );
    });
    stopped.catch(() => undefined);
    jobs.work('mail', handler);
    await jobs.add([{ kind: 'mail', payload: '' }]);
    await settled(() => {
      expect(calls()).toBe(1);
    });
    await new Promise((resolve) => setTimeout(resolve, 100));
    await jobs.close({ timeoutMs: 50 });
    expect(faults).toEqual([]);
    const next = counted(1);
    (await open(engine)).work('mail', next.handler);
    await next.all;
    expect(next.seen[0]?.[0].attempts).toBe(0);
  });
});

/** Waits until the expectations hold. */
async function settled(expectations: () => unknown): Promise<void> {
  for (let attempt = 0; attempt < 200; attempt += 1) {
    try {
      await expectations();
      return;
    } catch {
      await new Promise((resolve) => setTimeout(resolve, 10));
    }
  }
  await expectations();
}
