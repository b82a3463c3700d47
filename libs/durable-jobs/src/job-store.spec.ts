import { beforeEach, describe, expect, it, jest } from '@jest/globals';
import { setImmediate as nextTurn } from 'node:timers/promises';
import { LEASE_MS } from './job-kind.js';
import { jobFamilies, type FoundJob, type Job } from './job-records.js';
import { JobStore } from './job-store.js';
import { MemoryStorage } from './memory.js';
import {
  StorageError,
  type RangeOptions,
  type Storage,
  type StorageRow,
  type StorageValues,
} from './storage.js';
import { transact, Transaction } from './transaction.js';

const FAMILIES = jobFamilies('mail');
const UNREADABLE = 'cannot be read';

/** A storage in memory that several processes share, with a clock and failures of the test. */
class TestStorage implements Storage {
  readonly #memory = new MemoryStorage({ families: [...FAMILIES, 'own'] });
  time = 1_800_000_000_000;
  commits = 0;
  reads = 0;
  isAsynchronous = false;
  /** What becomes of the next commits, whose callers hear only that they failed. */
  readonly unknown: ('made' | 'not made')[] = [];
  /** Runs once, between the reads of a call and its commit. */
  beforeCommit: (() => unknown) | undefined;

  get = (keys: readonly string[]) => this.#read(() => this.#memory.get(keys));
  range = (from: string, to: string, options: RangeOptions) =>
    this.#read(() => this.#memory.range(from, to, options));
  count = (family: string): number => this.#memory.count(family);
  now = (): number => this.time;
  close = (): void => undefined;

  commit(checks: StorageValues, changes: StorageValues): boolean | Promise<boolean> {
    this.commits += 1;
    const before = this.beforeCommit;
    this.beforeCommit = undefined;
    const commit = (): boolean => {
      const outcome = this.unknown.shift();
      const isMade = outcome !== 'not made' && this.#memory.commit(checks, changes);
      if (outcome) throw new StorageError('No answer');
      return isMade;
    };
    if (before) return Promise.resolve(before()).then(commit);
    return this.isAsynchronous ? nextTurn().then(commit) : commit();
  }

  rows(family: string): readonly StorageRow[] {
    return this.#memory.range(`${family}:`, `${family};`, { limit: Infinity });
  }

  /** The keys of all rows. */
  left(): readonly string[] {
    return FAMILIES.flatMap((family) => this.rows(family).map(([key]) => key));
  }

  put(key: string, value: string | undefined): void {
    this.#memory.commit(new Map(), new Map([[key, value]]));
  }

  #read<T>(work: () => T): T | Promise<T> {
    this.reads += 1;
    return this.isAsynchronous ? nextTurn().then(work) : work();
  }
}

let storage: TestStorage;
let reported: FoundJob<string>[];
beforeEach(() => {
  storage = new TestStorage();
  reported = [];
});

/** The store of one more process. */
const newStore = (): JobStore<string> =>
  new JobStore(storage, {
    name: 'mail',
    priorities: 2,
    codec: {
      encode: (text) => ({ text }),
      decode: (stored) => (stored as { text?: string }).text,
    },
    unreadableHint: UNREADABLE,
    onUnreadable: (found) => reported.push(found),
  });
const jobOf = (id: string, key = '') => ({ id, key, value: `value of ${id}` });
const idsOf = (jobs: readonly { readonly id: string }[]) => jobs.map(({ id }) => id);
const [first] = [<T>(all: readonly T[]): T => all[0] as T];
const claimOne = async (store: JobStore<string>): Promise<Job<string>> => first(await store.claim(1));
const pause = (store: JobStore<string>, group: string) =>
  transact(storage, (transaction) => store.pauseGroupIn(transaction, group));
const resume = (store: JobStore<string>, group: string) =>
  transact(storage, (transaction) => store.resumeGroupIn(transaction, group));

describe('a job', () => {
  it('is added, claimed and finished in one commit each, and leaves nothing', async () => {
    const store = newStore();
    expect(store.add([jobOf('1', 'user')])).toBeUndefined(); // synchronous, as the storage is
    expect(storage).toMatchObject({ commits: 1, reads: 0 });
    const claim = await claimOne(store);
    expect(claim).toMatchObject({ id: '1', key: 'user', value: 'value of 1' });
    const { reads } = storage;
    expect(
      store.finish(claim, (transaction) => {
        transaction.set('own:1', 'done');
      }),
    ).toBe(true);
    expect(storage).toMatchObject({ commits: 3, reads });
    expect(storage.left()).toEqual([]);
    expect(storage.rows('own')).toEqual([['own:1', 'done']]);
  });

  it('is given to one process only until its lease ends', async () => {
    const [one, other] = [newStore(), newStore()];
    await one.add([jobOf('1')]);
    await one.claim(1);
    storage.time += LEASE_MS - 1;
    expect(await other.claim(1)).toEqual([]);
    expect(await other.nextDueMs()).toBe(1);
    storage.time += 1;
    expect(idsOf(await other.claim(1))).toEqual(['1']);
  });

  it('is added once, however often and in however many calls', async () => {
    const store = newStore();
    await store.add([jobOf('1'), jobOf('1'), jobOf('2')]);
    await store.add([jobOf('2'), jobOf('3')]);
    expect(idsOf(await newStore().claim(9))).toEqual(['1', '2', '3']);
    expect(await newStore().claim(9)).toEqual([]);
  });

  it('does not come again by a repeated addition when it was added by the first one and finished since', async () => {
    const store = newStore();
    storage.unknown.push('made');
    expect(() => store.add([jobOf('1')])).toThrow(StorageError);
    await store.finish(await claimOne(store));
    await store.add([jobOf('1')]);
    expect(storage.left()).toEqual([]);
    await store.add([jobOf('1')]); // which is asked for anew
    expect(storage.rows('mailpending')).toHaveLength(1);
  });

  it('is not confused with an earlier one of the same id', async () => {
    const [one, other] = [newStore(), newStore()];
    await one.add([jobOf('1')]);
    const late = await claimOne(one);
    await other.remove('1'); // its due row is at the end of a lease that only the first process knows
    await other.add([jobOf('1')]);
    const claim = await claimOne(other);
    expect(await one.finish(late)).toBe(false);
    expect(await one.retry(late, 0)).toBe(false);
    storage.time += LEASE_MS;
    expect(idsOf(await one.claim(9))).toEqual(['1']); // the lease of the other process has ended
    expect(await other.finish(claim)).toBe(true);
    storage.time += LEASE_MS;
    await one.claim(9);
    expect(storage.left()).toEqual([]);
  });

  it('is due again after the delay with its new value', async () => {
    const store = newStore();
    await store.add([jobOf('1')]);
    expect(await store.retry(await claimOne(store), 5_000, 'tried')).toBe(true);
    expect(await store.claim(1)).toEqual([]);
    expect(await store.nextDueMs()).toBe(5_000);
    storage.time += 5_000;
    expect(await claimOne(store)).toMatchObject({ value: 'tried' });
  });

  it('is due again at once in its old place when it is given back', async () => {
    const store = newStore();
    await store.add([jobOf('1'), jobOf('2'), jobOf('3')]);
    await store.giveBack(await store.claim(2));
    expect(idsOf(await newStore().claim(9))).toEqual(['1', '2', '3']);
  });

  it('stays claimed with a new value', async () => {
    const store = newStore();
    await store.add([jobOf('1')]);
    const claim = await claimOne(store);
    const update = (value: string) => transact(storage, (t) => store.updateIn(t, claim, value));
    expect(await update('begun')).toBe(true);
    expect(await update('more')).toBe(true);
    expect(first(storage.rows('mailpending'))[1]).toContain('more');
    expect(await store.finish(claim)).toBe(true);
    expect(await update('too late')).toBe(false);
    expect(storage.left()).toEqual([]);
  });

  it('is claimed in the order of priority, then of time', async () => {
    const store = newStore();
    await store.add([{ ...jobOf('list'), priority: 1 }, jobOf('1'), jobOf('2')]);
    expect(await store.nextDueMs()).toBe(0);
    expect(idsOf(await store.claim(2))).toEqual(['1', '2']);
    expect(idsOf(await store.claim(2))).toEqual(['list']);
  });

  it('is found by its key while it waits', async () => {
    const store = newStore();
    await store.add([jobOf('1', 'a'), jobOf('2', 'b'), jobOf('3', 'a')]);
    expect(idsOf(await store.find(['a', 'none']))).toEqual(['1', '3']);
    await store.park(await claimOne(store), 'a hint');
    expect((await store.find(['a'])).map(({ state }) => state)).toEqual(['parked', 'pending']);
    await store.remove('1');
    expect(idsOf(await store.find(['a']))).toEqual(['3']);
  });

  it('is seen in a transaction, and added in one with rows of the caller', async () => {
    const store = newStore();
    const add = () =>
      transact(storage, async (transaction) => {
        transaction.set('own:1', 'added');
        return store.addIn(transaction, [jobOf('1'), jobOf('1'), jobOf('2')]);
      });
    expect(await add()).toEqual(['1', '2']);
    expect(await add()).toEqual([]);
    const [found, none] = await store.findIn(new Transaction(storage), ['1', 'none']);
    expect(found?.job?.value).toBe('value of 1');
    expect(none).toBeUndefined();
  });
});

describe('a claim', () => {
  it('that was lost changes nothing, but finishes what is done', async () => {
    const [one, other] = [newStore(), newStore()];
    await one.add([jobOf('1', 'user')]);
    const lost = await claimOne(one);
    storage.time += LEASE_MS;
    const claim = await claimOne(other);
    expect(await one.retry(lost, 0)).toBe(false);
    expect(one.isHeld(lost)).toBe(false);
    expect(await one.park(lost, 'a hint')).toBe(false);
    expect(await other.retry(claim, 5_000)).toBe(true);
    let also = 0;
    expect(await one.finish(lost, () => (also += 1))).toBe(true);
    expect(also).toBe(1);
    storage.time += 5_000;
    expect(await other.claim(1)).toEqual([]);
    expect(storage.left()).toEqual([]);
  });

  it('finishes a job that was parked meanwhile, and leaves nothing', async () => {
    const [one, other] = [newStore(), newStore()];
    await one.add([jobOf('1', 'user')]);
    const lost = await claimOne(one);
    storage.time += LEASE_MS;
    await other.park(await claimOne(other), 'a hint');
    expect(await one.finish(lost)).toBe(true);
    expect(storage.left()).toEqual([]);
  });

  it('that is renewed does not take the job from a process that has it now', async () => {
    const [one, other] = [newStore(), newStore()];
    await one.add([jobOf('1'), jobOf('2')]);
    const claims = await one.claim(2);
    storage.time += LEASE_MS;
    const taken = await claimOne(other);
    await one.renew(claims);
    expect(claims.map((claim) => one.isHeld(claim))).toEqual([false, true]);
    expect(await one.retry(first(claims), 0)).toBe(false);
    expect(await other.finish(taken)).toBe(true);
    storage.time += LEASE_MS - 1;
    expect(await other.claim(9)).toEqual([]);
  });

  it('is not given out twice by a process that hung, and goes on with the new lease', async () => {
    const store = newStore();
    await store.add([jobOf('1')]);
    const claim = await claimOne(store);
    storage.time += LEASE_MS;
    expect(await store.claim(1)).toEqual([]);
    expect(await newStore().claim(1)).toEqual([]);
    expect(await store.retry(claim, 0)).toBe(true);
    expect(idsOf(await store.claim(1))).toEqual(['1']);
  });

  it('takes other rows than the process that was faster', async () => {
    const [one, other] = [newStore(), newStore()];
    await one.add(Array.from({ length: 200 }, (_, n) => jobOf(String(n).padStart(3, '0'))));
    let theirs: readonly Job<string>[] = [];
    storage.beforeCommit = async () => (theirs = await other.claim(4));
    const ours = await one.claim(4);
    expect([ours.length, theirs.length]).toEqual([4, 4]);
    expect(new Set([...idsOf(ours), ...idsOf(theirs)]).size).toBe(8);
  });

  it('whose commit is made after its time limit is given back', async () => {
    const store = newStore();
    await store.add([jobOf('1')]);
    const timers = jestTimers();
    let answer = (): void => undefined;
    storage.beforeCommit = () => new Promise<void>((resolve) => (answer = resolve));
    const claimed = store.claim(1).catch((error: unknown) => error);
    await timers.advance(5_000);
    expect(await claimed).toBeInstanceOf(Error);
    answer();
    await timers.advance(1);
    timers.restore();
    expect(idsOf(await newStore().claim(1))).toEqual(['1']);
  });

  it('whose end has an unknown outcome is given out again, or is done when the call is repeated', async () => {
    const store = newStore();
    await store.add([jobOf('1')]);
    const claim = await claimOne(store);
    storage.unknown.push('not made');
    expect(() => store.finish(claim)).toThrow(StorageError);
    store.release(claim);
    storage.time += LEASE_MS;
    expect(idsOf(await store.claim(1))).toEqual(['1']);
    storage.unknown.push('made');
    expect(() => store.finish(claim)).not.toThrow(); // it is not held: the record decides
    expect(await store.finish(claim)).toBe(false);
    expect(storage.left()).toEqual([]);
  });

  it('is one commit with others that end at the same time', async () => {
    storage.isAsynchronous = true;
    const store = newStore();
    await store.add(['1', '2', '3', '4'].map((id) => jobOf(id)));
    const claims = await store.claim(4);
    const { commits } = storage;
    await Promise.all(claims.map(async (claim) => store.finish(claim)));
    expect(storage.commits - commits).toBe(2);
    expect(storage.left()).toEqual([]);
  });

  it('that is renewed while its job is finished in a transaction leaves nothing', async () => {
    storage.isAsynchronous = true;
    const store = newStore();
    await store.add([jobOf('1', 'user')]);
    const claim = await claimOne(store);
    storage.time += 10_000;
    const finished = store.exclusively('1', () => transact(storage, (t) => store.finishIn(t, claim)));
    await Promise.all([finished, store.renew([claim])]);
    expect(await finished).toBe(true);
    expect(storage.left()).toEqual([]);
  });

  it('removes what due rows lead nowhere', async () => {
    const store = newStore();
    storage.put('maildue:0000000000000000001:1', 'of an earlier life');
    await store.add([jobOf('1')]);
    expect(idsOf(await store.claim(9))).toEqual(['1']);
    expect(storage.rows('maildue')).toHaveLength(1);
  });
});

describe('a parked job', () => {
  it('stands in the order of parking, and is due again with a new value when it is retried', async () => {
    const store = newStore();
    await store.add([jobOf('1'), jobOf('2', 'user')]);
    const claims = await store.claim(2);
    await store.park(first(claims.slice(1)), 'second', 'tried');
    await store.park(first(claims), 'first');
    expect(await store.claim(9)).toEqual([]);
    const parked = await store.list('parked', { limit: 9 });
    expect(parked.map(({ id, parked: { hint = '' } = {} }) => [id, hint])).toEqual([
      ['2', 'second'],
      ['1', 'first'],
    ]);
    expect(idsOf(await store.list('parked', { limit: 1, skip: 1 }))).toEqual(['1']);
    expect(await store.counts()).toEqual({ pending: 0, parked: 2 });
    expect(await store.retryParked('2', ({ value }) => `${value} again`)).toBe(true);
    expect(await store.retryParked('2')).toBe(false);
    expect(await claimOne(store)).toMatchObject({ id: '2', value: 'tried again' });
    expect(idsOf(await store.find(['user']))).toEqual(['2']);
  });

  it('may be added as such', async () => {
    const store = newStore();
    await store.add([{ ...jobOf('1', 'user'), hint: 'a hint' }]);
    expect(await store.claim(1)).toEqual([]);
    expect(first(await store.find(['user'])).parked?.hint).toBe('a hint');
    expect(await store.remove('1', { states: ['pending'] })).toBe(false);
    expect(await store.remove('1', { states: ['parked'] })).toBe(true);
    expect(storage.left()).toEqual([]);
  });
});

describe('a record that cannot be read', () => {
  const damage = (key: string, text = '{') => {
    storage.put(key, text);
  };

  it('is parked and reported, and the others are claimed', async () => {
    const store = newStore();
    await store.add([jobOf('1', 'user'), jobOf('2'), jobOf('3', 'user')]);
    const intact = first(storage.rows('mailpending'))[1];
    damage('mailpending:1');
    damage('mailpending:3', JSON.stringify({ v: 2, id: '3' }));
    expect(idsOf(await store.claim(9))).toEqual(['2']);
    expect(idsOf(reported)).toEqual(['1', '3']);
    const parked = await store.list('parked', { limit: 9 });
    expect(parked.map(({ parked }) => parked?.hint)).toEqual([UNREADABLE, UNREADABLE]);
    expect(await store.retryParked('1')).toBe(false);
    const wrapper = first(storage.rows('mailparked'))[1];
    damage('mailparked:1', JSON.stringify({ ...(JSON.parse(wrapper) as object), record: intact }));
    expect(await store.retryParked('1')).toBe(true); // it was restored
    await store.finish(await claimOne(store));
    expect(await store.remove('3')).toBe(true);
    expect(storage.rows('mailkey')).toEqual([]);
    expect(storage.rows('mailsince')).toEqual([]);
  });

  it('leaves nothing when it is removed, though its parked record is damaged too', async () => {
    const store = newStore();
    await store.add([jobOf('1', 'user'), jobOf('11', 'user')]);
    await store.park(await claimOne(store), 'a hint');
    damage('mailparked:1', 'damaged');
    expect(await store.remove('1')).toBe(true);
    expect(storage.rows('mailsince')).toEqual([]);
    expect(storage.rows('mailkey')).toEqual([['mailkey:user:11', '']]);
  });
});

describe('a removed job', () => {
  it('is not claimed any more, and a claim of it changes nothing', async () => {
    const store = newStore();
    await store.add([jobOf('1', 'user'), jobOf('2')]);
    const claim = await claimOne(store);
    expect(await store.remove('1')).toBe(true);
    expect(await store.remove('2')).toBe(true);
    expect(store.isHeld(claim)).toBe(false);
    expect(await store.retry(claim, 0)).toBe(false);
    expect(await store.park(claim, 'a hint')).toBe(false);
    expect(await store.finish(claim)).toBe(false);
    expect(storage.left()).toEqual([]);
  });

  it('is not claimed by a process that is about to', async () => {
    const [one, other] = [newStore(), newStore()];
    await one.add([jobOf('1')]);
    storage.beforeCommit = () => other.remove('1');
    expect(await one.claim(1)).toEqual([]);
    expect(storage.left()).toEqual([]);
  });

  it('brings rows of the caller in the same commit', async () => {
    const store = newStore();
    await store.add([jobOf('1')]);
    await store.remove('1', {
      also: (t, found) => {
        t.set('own:1', found.job?.value);
      },
    });
    expect(storage.rows('own')).toEqual([['own:1', 'value of 1']]);
    expect(
      await store.remove('1', {
        also: (t) => {
          t.set('own:1', 'twice');
        },
      }),
    ).toBe(false);
  });
});

describe('a group', () => {
  const add = (store: JobStore<string>, count: number, group = 'g') =>
    store.add(Array.from({ length: count }, (_, n) => jobOf(`${group}/${String(n).padStart(4, '0')}`)));

  it('that is paused holds up no other, and is due again in its old order when it is resumed', async () => {
    const store = newStore();
    await add(store, 3);
    await store.add([jobOf('other')]);
    expect(await pause(store, 'g')).toBe(true);
    expect(await pause(store, 'g')).toBe(false);
    expect(idsOf(await store.claim(1))).toEqual(['other']);
    expect(await store.nextDueMs()).toBe(LEASE_MS);
    expect(await resume(store, 'g')).toBe(true);
    expect(await resume(store, 'g')).toBe(false);
    expect(idsOf(await store.claim(9))).toEqual(['g/0000', 'g/0001', 'g/0002']);
    expect(storage.rows('mailpaused')).toEqual([]);
    expect(storage.rows('mailaside')).toEqual([]);
  });

  it('with many jobs is put aside and brought back in batches', async () => {
    const store = newStore();
    await add(store, 900);
    await store.add([jobOf('other')]);
    await pause(store, 'g');
    expect(idsOf(await store.claim(1))).toEqual(['other']);
    await resume(store, 'g');
    const claimed: string[] = [];
    for (let some = await store.claim(64); some.length > 0; some = await store.claim(64)) {
      claimed.push(...idsOf(some));
      for (const claim of some) await store.finish(claim);
    }
    expect(claimed).toHaveLength(900);
    expect(new Set(claimed).size).toBe(900);
    expect(storage.rows('mailaside')).toEqual([]);
    expect(storage.rows('mailpaused')).toEqual([]);
  });

  it('that is resumed and paused again stays paused', async () => {
    const store = newStore();
    await add(store, 2);
    await pause(store, 'g');
    await store.claim(9);
    await resume(store, 'g');
    await pause(store, 'g');
    expect(await store.claim(9)).toEqual([]);
    await resume(store, 'g');
    expect(await store.claim(9)).toHaveLength(2);
    expect(storage.rows('mailpaused')).toEqual([]);
  });

  it('that is resumed while a claim files its jobs aside loses none', async () => {
    const [one, other] = [newStore(), newStore()];
    await add(one, 2);
    await pause(one, 'g');
    storage.beforeCommit = async () => {
      await resume(other, 'g');
      await other.claim(1);
    };
    const claimed = await one.claim(9);
    const more = await other.claim(9);
    expect(claimed.length + more.length + 1).toBe(2);
  });

  it('whose jobs are removed during the pause leaves nothing when it is resumed', async () => {
    const store = newStore();
    await add(store, 2);
    await pause(store, 'g');
    await store.claim(9);
    for (const { id } of await store.list('pending', { limit: 9, group: 'g' })) await store.remove(id);
    await resume(store, 'g');
    expect(await store.claim(9)).toEqual([]);
    expect(storage.left()).toEqual([]);
  });

  it('that is paused takes jobs aside from the beginning', async () => {
    const store = newStore();
    await transact(storage, async (transaction) => {
      await store.pauseGroupIn(transaction, 'g');
      await store.addIn(transaction, [{ ...jobOf('g/1', 'user'), isAside: true }]);
    });
    expect(storage.rows('maildue')).toEqual([]);
    expect(await store.claim(9)).toEqual([]);
    expect(await store.countIn('g', 'pending')).toBe(1);
    await resume(store, 'g');
    await store.finish(await claimOne(store));
    expect(storage.left()).toEqual([]);
  });

  it('is listed alone', async () => {
    const store = newStore();
    await add(store, 2, 'a');
    await add(store, 2, 'ab');
    expect(idsOf(await store.list('pending', { limit: 9, group: 'a' }))).toEqual(['a/0000', 'a/0001']);
    expect(idsOf(await store.list('pending', { limit: 2, skip: 1 }))).toEqual(['a/0001', 'ab/0000']);
  });
});

describe('the queue', () => {
  it('gives out nothing during a pause, which is never made shorter', async () => {
    const [one, other] = [newStore(), newStore()];
    await one.add([jobOf('1')]);
    await one.pause(5_000);
    const { commits } = storage;
    await other.pause(1_000);
    expect(storage.commits).toBe(commits); // a change that changes nothing is not committed
    expect(await other.claim(1)).toEqual([]);
    expect(await other.nextDueMs()).toBe(5_000);
    storage.time += 5_000;
    expect(idsOf(await other.claim(1))).toEqual(['1']);
  });

  it('says when this process has made something due', async () => {
    const store = newStore();
    let changes = 0;
    const stop = store.onChange(() => (changes += 1));
    await store.add([jobOf('1')]);
    await store.park(await claimOne(store), 'a hint');
    expect(changes).toBe(1);
    await store.retryParked('1');
    await store.retry(await claimOne(store), 0);
    await store.giveBack(await store.claim(1));
    expect(changes).toBe(4);
    stop();
    await store.add([jobOf('2')]);
    expect(changes).toBe(4);
  });

  it('keeps the order of the calls about one job', async () => {
    storage.isAsynchronous = true;
    const store = newStore();
    const added = store.add([jobOf('1')]);
    const removed = store.remove('1');
    const again = store.add([jobOf('1')]);
    await added;
    expect(await removed).toBe(true);
    await again;
    expect(storage.rows('mailpending')).toHaveLength(1);
  });
});

/** Timers that the test moves on. */
function jestTimers() {
  jest.useFakeTimers({ doNotFake: ['setImmediate', 'nextTick', 'performance'] });
  return {
    advance: (ms: number) => jest.advanceTimersByTimeAsync(ms),
    restore: (): void => {
      jest.useRealTimers();
    },
  };
}
