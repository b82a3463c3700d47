import { describe, expect, it, jest } from '@jest/globals';
import { setTimeout as sleep } from 'node:timers/promises';
import { Secret } from '../../secrets/secret.js';
import { uidCipher } from '../../secrets/uid-cipher.js';
import { outboxContext } from 'debate-space-fixtures/outbox-context.js';
import { memoryQueue } from 'debate-space-fixtures/outbox-engines.js';
import { SharedStorage, type Outcome } from 'debate-space-fixtures/shared-storage.js';
import type { Storage, StorageEngine } from 'durable-jobs';
import { StorageError } from '../../errors.js';
import type { DebateSpaceEvent } from '../../events.js';
import { EventLog } from '../../module/event-log.js';
import type { LogoutContext, LogoutEntry } from '../logout.js';

import { LogoutHistory } from './stored-logout.js';
import { LogoutQueue } from './logout-queue.js';

const LEASE = 30_000;
const DAY = 86_400_000;
const YEARS = 4 * 365 * DAY;
const none = { attempts: 0, rejections: 0 };
const entry = (id: string): LogoutEntry => ({
  id,
  uid: `user of ${id}`,
  reason: 'destroyed',
  endedAt: 1_750_000_000_000,
});
const numbered = (count: number): string[] =>
  Array.from({ length: count }, (_, n) => `e-${String(n).padStart(4, '0')}`);
const ids = (jobs: readonly { readonly entry: LogoutEntry }[]): string[] => jobs.map((job) => job.entry.id);

/** @param durable as a storage that processes share */
function engineOf(storage: Storage, durable = true): StorageEngine {
  return { name: 'shared', guarantee: 'none', durable, open: () => storage };
}

/** Of a storage that answers synchronously. */
function start(storage: SharedStorage, more: Partial<LogoutContext> = {}, storageKey?: string): LogoutQueue {
  return new LogoutQueue(storage, engineOf(storage), outboxContext(more, storageKey));
}

function pend(outbox: LogoutQueue, names: readonly string[]): void {
  for (const name of names) void outbox.add([entry(name)]);
}
const claim = async (outbox: LogoutQueue, limit = 10): Promise<string[]> =>
  ids(await outbox.claim(limit, LEASE));
const finished = async (outbox: LogoutQueue, name: string): Promise<readonly unknown[]> =>
  (await outbox.ofUser(`user of ${name}`)).finished;

describe('the logout queue', () => {
  it('has stored what it adds when the call returns, on a storage that is synchronous', () => {
    const outbox = memoryQueue();
    const changed = jest.fn();
    outbox.onChange(changed);
    expect(outbox.add([entry('a'), entry('b')])).toBeUndefined();
    expect(changed).toHaveBeenCalled();
  });

  it('adds together what comes together, and the others when one of them is stored already', async () => {
    const storage = new SharedStorage();
    const outbox = start(storage);
    pend(outbox, ['a', 'd']);
    await claim(outbox, 1);
    const stored = storage.left();
    await outbox.add(['a', 'b', 'c', 'd'].map(entry));
    expect(storage.left()).toEqual(expect.arrayContaining([...stored]));
    expect(await claim(outbox)).toEqual(['d', 'b', 'c']);
  });

  it('adds, and changes what it has claimed, in one commit, without reading it', async () => {
    const storage = new SharedStorage();
    const outbox = start(storage);
    const inOneCommit = async (change: () => unknown): Promise<void> => {
      storage.calls = [];
      await change();
      expect(storage.calls.map(({ method }) => method)).toEqual(['commit']);
    };
    await inOneCommit(() => outbox.add(['a', 'b'].map(entry)));
    expect(await claim(outbox)).toEqual(['a', 'b']);
    await inOneCommit(() => outbox.retry('a', none, 0));
    await inOneCommit(() => outbox.finish('b', 1));
    expect(await claim(outbox)).toEqual(['a']);
    await inOneCommit(() => outbox.park('a', none, 'a hint'));
  });

  it('leaves nothing of a finished logout but its history, without a uid', async () => {
    const storage = new SharedStorage();
    const outbox = start(storage);
    pend(outbox, ['a', 'b', '000000000001000-c']);
    await claim(outbox);
    const all = [...storage.left(), ...storage.rows('logoutdone')];
    expect(JSON.stringify(all)).not.toContain('user of');
    await outbox.finish('a', 1);
    await outbox.park('b', none, 'a hint');
    await outbox.discard('b');
    await outbox.supersede('user of 000000000001000-c', Date.now() * 2);
    storage.time += LEASE;
    expect(await claim(outbox)).toEqual([]); // removes the row that the superseded one left
    expect(storage.left()).toEqual([]);
    expect(storage.rows('logoutdone')).toHaveLength(3);
    expect(JSON.stringify(storage.rows('logoutdone'))).not.toContain('user of');
  });

  it('leaves nothing at all of a finished logout when no history is kept', async () => {
    const storage = new SharedStorage();
    const outbox = start(storage, { keepFinishedMs: 0 });
    pend(outbox, ['a']);
    await claim(outbox);
    await outbox.finish('a', 1);
    expect([...storage.left(), ...storage.rows('logoutdone')]).toEqual([]);
  });

  it('leaves no row of a logout that comes before, and ends after, a change of the hashes', async () => {
    const storage = new SharedStorage();
    const keys = ['the next storage key', 'the storage key of a test'].map((key) => new Secret(key));
    const [one, other] = [start(storage), start(storage, { uids: uidCipher(keys, 'test') })];
    pend(one, ['a']);
    expect(await claim(other)).toEqual(['a']);
    await other.finish('a', 1);
    expect(storage.left()).toEqual([]);
    expect(await finished(one, 'a')).toHaveLength(1);
  });

  it('gives out a logout again, as often as the process dies that has claimed it', async () => {
    const storage = new SharedStorage();
    pend(start(storage), ['a']);
    for (let death = 0; death < 5; death += 1) {
      expect(await start(storage).claim(10, LEASE)).toMatchObject([{ entry: { id: 'a' }, ...none }]);
      expect(await claim(start(storage))).toEqual([]);
      storage.time += LEASE;
    }
  });

  it('shows by the date of the machine when a logout is due, whatever the clock of the storage', async () => {
    const storage = new SharedStorage();
    const outbox = start(storage);
    const date = jest.spyOn(Date, 'now').mockReturnValue(storage.time - YEARS);
    pend(outbox, ['a']);
    await claim(outbox);
    const { waiting } = await outbox.ofUser('user of a');
    date.mockRestore();
    expect(waiting).toMatchObject([{ dueAt: storage.time - YEARS + LEASE }]);
  });

  it('keeps the order of calls about one logout', async () => {
    const storage = new SharedStorage();
    const outbox = start(storage);
    storage.isAsynchronous = true;
    storage.beforeCommit = () => sleep(20);
    await Promise.all([
      outbox.add(['a', 'b', 'c', 'd'].map(entry)),
      outbox.drop('b'),
      outbox.finish('c', 1),
      outbox.takeOver({ entry: entry('d'), ...none }),
    ]);
    expect(await outbox.counts()).toEqual({ pending: 2, parked: 0 });
    expect(await claim(outbox)).toEqual(['a', 'd']);
  });

  it('keeps that order also where others of the batch are stored already', async () => {
    const storage = new SharedStorage();
    const outbox = start(storage);
    pend(outbox, ['a']);
    storage.isAsynchronous = true;
    await Promise.all([outbox.add(['a', 'b'].map(entry)), outbox.finish('b', 1, entry('b'))]);
    expect(await claim(outbox)).toEqual(['a']);
    expect(await finished(outbox, 'b')).toHaveLength(1);
  });

  it('finishes the calls that are running before it closes', async () => {
    const storage = new SharedStorage();
    const outbox = start(storage);
    storage.isAsynchronous = true;
    pend(outbox, ['a']);
    await outbox.close();
    expect(storage.rows('logoutpending')).toHaveLength(1);
  });

  describe('claims', () => {
    it('take a batch of 32 in one commit', async () => {
      const storage = new SharedStorage();
      const outbox = start(storage);
      pend(outbox, numbered(40));
      storage.calls = [];
      expect(await claim(outbox, 32)).toEqual(numbered(32));
      expect(storage.calls.map(({ method }) => method)).toEqual(['range', 'get', 'commit']);
      expect(storage.calls.at(-1)?.changes).toBe(64); // of each logout only the due row is moved
    });

    it('choose from a wider range after a conflict, and from a narrower one with each success', async () => {
      const storage = new SharedStorage();
      const [one, other] = [start(storage), start(storage)];
      pend(one, numbered(200));
      jest.spyOn(Math, 'random').mockReturnValue(0.5);
      const taken: string[] = [];
      storage.beforeCommit = async () => taken.push(...(await claim(other, 4)));
      storage.calls = [];
      expect(await claim(one, 4)).toEqual(numbered(200).slice(34, 38)); // (4 … 67) are read, and the middle is taken
      expect(taken).toEqual(numbered(4));
      for (let n = 0; n < 40; n += 1) await claim(one, 1);
      jest.restoreAllMocks();
      const limits = storage.calls.flatMap(({ method, limit }) => (method === 'range' ? [limit] : []));
      expect(limits.slice(0, 5)).toEqual([5, 5, 65, 16, 14]);
      expect(limits.at(-1)).toBe(2);
    });

    it('begin at the front again, whatever was taken behind it', async () => {
      const storage = new SharedStorage();
      const [one, other] = [start(storage), start(storage)];
      pend(one, numbered(100));
      storage.beforeCommit = () => claim(other, 1);
      const claimed = new Set<string>();
      for (let jobs = await claim(one, 4); jobs.length > 0; jobs = await claim(one, 4))
        for (const id of jobs) expect(claimed.add(id).size).toBeGreaterThan(0);
      expect(claimed.size).toBe(99);
    });
  });

  it('gives out logouts although an earlier claim was never answered', async () => {
    const storage = new SharedStorage();
    const outbox = start(storage);
    pend(outbox, ['a']);
    jest.spyOn(storage, 'range').mockReturnValueOnce(new Promise(() => undefined));
    void outbox.claim(1, LEASE).catch(() => undefined);
    expect(ids(await outbox.claim(1, LEASE))).toEqual(['a']);
  });

  describe('results', () => {
    async function claimed(count: number): Promise<{ storage: SharedStorage; outbox: LogoutQueue }> {
      const storage = new SharedStorage();
      const outbox = start(storage, { keepFinishedMs: DAY });
      pend(outbox, numbered(count));
      await claim(outbox, count);
      storage.calls = [];
      storage.isAsynchronous = true;
      return { storage, outbox };
    }
    const commitsOf = (storage: SharedStorage): readonly number[] =>
      storage.calls.flatMap(({ method, changes }) => (method === 'commit' ? [changes] : []));

    it('that come while a commit is under way are the next commit, 32 at most', async () => {
      const { storage, outbox } = await claimed(70);
      await Promise.all(numbered(70).map((id) => outbox.finish(id, 1)));
      const rows = 4; // the due row, the record and the row of the user go, the history comes
      expect(commitsOf(storage)).toEqual([rows, 32 * rows, 32 * rows, 5 * rows]);
      expect(storage.left()).toEqual([]);
      expect(storage.rows('logoutdone')).toHaveLength(70);
    });

    it('are recorded one by one when another process has one of the logouts', async () => {
      const { storage, outbox } = await claimed(5);
      const [due = ''] = storage.rows('logoutdue').find(([key]) => key.endsWith('e-0003')) ?? [];
      await storage.commit(new Map(), new Map([[due, undefined]])); // its lease is another one
      await Promise.all(numbered(5).map((id) => outbox.finish(id, 1)));
      expect(storage.left()).toEqual([]);
      expect(storage.rows('logoutdone')).toHaveLength(5);
    });

    it.each(['made', 'not made'] as const)(
      'of a commit that failed and was %s can be repeated',
      async (outcome) => {
        const { storage, outbox } = await claimed(5);
        const finish = (): Promise<unknown> =>
          Promise.allSettled(numbered(5).map((id) => outbox.finish(id, 1)));
        const first = finish();
        storage.beforeCommit = () => storage.unknown.push(outcome, outcome);
        await expect(first).resolves.toMatchObject(Array(5).fill({ status: 'rejected' }));
        await expect(finish()).resolves.toMatchObject(Array(5).fill({ status: 'fulfilled' }));
        expect(storage.left()).toEqual([]);
        expect(storage.rows('logoutdone')).toHaveLength(5);
      },
    );
  });

  describe('a result whose lease another process has', () => {
    async function lost(): Promise<{ storage: SharedStorage; one: LogoutQueue; other: LogoutQueue }> {
      const storage = new SharedStorage();
      const [one, other] = [start(storage), start(storage)];
      pend(one, ['a']);
      expect(await claim(one)).toEqual(['a']);
      storage.time += LEASE + 1;
      expect(await claim(other)).toEqual(['a']);
      return { storage, one, other };
    }

    it('is neither repeated nor parked', async () => {
      const { storage, one, other } = await lost();
      const before = storage.left();
      await one.retry('a', { ...none, attempts: 7 }, 0);
      await one.park('a', none, 'a hint');
      expect(storage.left()).toEqual(before);
      await other.retry('a', none, 0);
      expect(await claim(one)).toEqual(['a']);
    });

    it('is finished none the less, once', async () => {
      const { storage, one, other } = await lost();
      await one.finish('a', 1);
      await other.retry('a', none, 0);
      await other.park('a', none, 'a hint');
      await other.finish('a', 2);
      expect(await finished(one, 'a')).toMatchObject([{ id: 'a', attempts: 1 }]);
      storage.time += LEASE + 1;
      expect(await claim(one)).toEqual([]);
      expect(storage.left()).toEqual([]);
    });
  });

  describe('when a commit fails that may have been made', () => {
    const outcomes = ['made', 'not made'] as const;
    const fail = async (storage: SharedStorage, outcome: Outcome, call: () => unknown): Promise<void> => {
      storage.unknown.push(outcome);
      await expect((async () => await call())()).rejects.toThrow(StorageError);
    };

    it.each(outcomes)('delivers logouts once whose add was %s and is repeated', async (outcome) => {
      const storage = new SharedStorage();
      const outbox = start(storage);
      await fail(storage, outcome, () => outbox.add(['a', 'b'].map(entry)));
      await outbox.add(['a', 'b'].map(entry));
      expect(await claim(outbox)).toEqual(['a', 'b']);
      for (const name of ['a', 'b']) await outbox.finish(name, 1);
      expect(storage.left()).toEqual([]);
    });

    it.each(outcomes)('forgets a logout whose add was %s and which is dropped', async (outcome) => {
      const storage = new SharedStorage();
      const outbox = start(storage);
      await fail(storage, outcome, () => outbox.add([entry('a')]));
      if (outcome === 'made') await fail(storage, outcome, () => outbox.drop('a'));
      await outbox.drop('a');
      storage.time += LEASE;
      expect(await claim(outbox)).toEqual([]); // removes the row that was left
      expect(storage.left()).toEqual([]);
    });

    it.each(outcomes)('gives out once more a logout whose renewal was %s, by one row', async (outcome) => {
      const storage = new SharedStorage();
      const outbox = start(storage);
      pend(outbox, ['a']);
      const jobs = await outbox.claim(1, LEASE);
      storage.time += LEASE / 2;
      await fail(storage, outcome, () => outbox.renew(jobs));
      storage.time += LEASE;
      expect(await claim(outbox)).toEqual([]); // this process is still at it
      for (const job of jobs) outbox.release(job);
      storage.time += LEASE;
      expect(await claim(outbox)).toEqual(['a']);
      expect(await claim(outbox)).toEqual([]);
      await outbox.finish('a', 1);
      expect(storage.left()).toEqual([]);
    });

    it.each(outcomes)(
      'has a logout once in the history that it does not have, and whose end was %s and is repeated',
      async (outcome) => {
        const storage = new SharedStorage();
        const outbox = start(storage);
        await fail(storage, outcome, () => outbox.finish('a', 1, entry('a')));
        storage.time += 1;
        await outbox.finish('a', 1, entry('a'));
        expect(storage.left()).toEqual([]);
        expect(await finished(outbox, 'a')).toMatchObject([{ id: 'a', attempts: 1, outcome: 'delivered' }]);
      },
    );

    it('finishes a logout that is not there yet, and comes before that is noted', async () => {
      const storage = new SharedStorage();
      const [outbox, other] = [start(storage), start(storage)];
      storage.beforeCommit = () => other.add([entry('a')]);
      await outbox.finish('a', 1, entry('a'));
      expect(await claim(other)).toEqual([]);
      expect(await finished(outbox, 'a')).toHaveLength(1);
    });

    it.each(outcomes)(
      'has a logout once in the history whose end was %s and is repeated',
      async (outcome) => {
        const storage = new SharedStorage();
        const outbox = start(storage);
        pend(outbox, ['a']);
        await claim(outbox);
        await fail(storage, outcome, () => outbox.finish('a', 1));
        await outbox.finish('a', 1);
        expect(storage.left()).toEqual([]);
        expect(await finished(outbox, 'a')).toHaveLength(1);
      },
    );

    it.each(outcomes)('gives out a logout again whose claim was %s', async (outcome) => {
      const storage = new SharedStorage();
      const outbox = start(storage);
      pend(outbox, ['a']);
      await fail(storage, outcome, () => outbox.claim(1, LEASE));
      storage.time += LEASE;
      expect(await claim(outbox)).toEqual(['a']);
    });
  });

  describe('parks, with a hint, a record', () => {
    it.each([
      ['that is damaged', '{"v":1,'],
      ['that is empty', ''],
      ['that is no object', '7'],
      ['that is nothing', 'null'],
      ['with a uid that was not encrypted', '{"v":1,"id":"a","uid":"alice","turn":1}'],
      ['of a newer version', '{"v":2,"kind":"logout of a newer version"}'],
    ])('%s, and delivers the others', async (_what, text) => {
      const storage = new SharedStorage();
      const outbox = start(storage);
      pend(outbox, ['a', 'b']);
      const [[key] = ['']] = storage.rows('logoutpending');
      storage.put(key, text);
      expect(await claim(outbox)).toEqual(['b']);
      const [parked] = await outbox.parked(10);
      expect(parked).toMatchObject({
        hint: expect.stringMatching(/cannot be read.*discard/),
        entry: { uid: '' },
      });
      expect(await outbox.counts()).toEqual({ pending: 1, parked: 1 });
      expect(JSON.stringify(storage.rows('logoutparked'))).toContain(
        JSON.stringify(JSON.stringify(text)).slice(1, -1),
      ); // for the version that can read it
      expect(await outbox.retryParked(parked?.entry.id ?? '')).toBe(false);
      expect(await outbox.discard(parked?.entry.id ?? '')).toBe(true);
      expect(await outbox.parked(10)).toEqual([]);
    });

    it('that is the record of another logout, and delivers that one once', async () => {
      const storage = new SharedStorage();
      const outbox = start(storage);
      pend(outbox, ['a', 'b']);
      const [ofA, ofB] = storage.rows('logoutpending');
      storage.put(ofA?.[0] ?? '', ofB?.[1] ?? '');
      expect(await claim(outbox)).toEqual(['b']);
      expect(await outbox.parked(10)).toMatchObject([
        { entry: { uid: '' }, hint: expect.stringContaining('cannot be read') },
      ]);
      expect(await outbox.retryParked('a')).toBe(false);
      expect(await outbox.discard('a')).toBe(true);
      expect(await outbox.counts()).toEqual({ pending: 1, parked: 0 });
    });

    it('that has got the uid of an earlier logout of the same user, and delivers the others', async () => {
      const storage = new SharedStorage();
      const outbox = start(storage);
      const alice = { ...entry('a'), uid: 'alice' };
      for (const logout of [alice, { ...alice, id: 'b' }]) await outbox.add([logout]);
      const [ofA, ofB] = storage.rows('logoutpending');
      const sealedIn = (text = ''): string => /"sealed":"([^"]+)"/.exec(text)?.[1] ?? '';
      storage.put(ofB?.[0] ?? '', ofB?.[1].replace(sealedIn(ofB[1]), sealedIn(ofA?.[1])) ?? '');
      expect(await claim(outbox)).toEqual(['a']);
      expect(await outbox.counts()).toEqual({ pending: 1, parked: 1 });
    });

    it('that was stored with another key, and delivers it with that key', async () => {
      const storage = new SharedStorage();
      const [one, other] = [start(storage), start(storage, {}, 'another storage key')];
      pend(one, ['a']);
      expect(await claim(other)).toEqual([]);
      expect(await other.retryParked('a')).toBe(false);
      expect(await one.retryParked('a')).toBe(true);
      expect(await claim(one)).toEqual(['a']);
    });

    it('that was stored with a lost key, with an event for each: a line for the first, and a count', async () => {
      const storage = new SharedStorage();
      pend(start(storage), numbered(50));
      const events: DebateSpaceEvent[] = [];
      const other = start(storage, { emit: (event) => events.push(event) }, 'another storage key');
      expect(await claim(other, 100)).toEqual([]);
      expect(await claim(other, 100)).toEqual([]);
      expect(events).toHaveLength(50);
      const hint = expect.stringMatching(/another storageKey/);
      const report = { type: 'logout-parked', uid: '', attempts: 0, cause: 'unreadable', hint };
      expect(events).toEqual(events.map(() => expect.objectContaining(report)));
      expect(new Set(events.map((event) => 'id' in event && event.id)).size).toBe(50);
      const error = jest.fn();
      const log = new EventLog({ error, warn: error, log: error });
      for (const event of events) log.write(event);
      log.flush();
      expect(error.mock.calls).toEqual([
        [expect.stringMatching(/^logout e-0000 is parked after attempt 0 \(unreadable\): .*storageKey/)],
        [expect.stringMatching(/^49 more parked, the last: logout e-0049 .*storageKey/)],
      ]);
    });

    it('that was parked before it was damaged, and can discard that record', async () => {
      const storage = new SharedStorage();
      const outbox = start(storage);
      pend(outbox, ['a']);
      await claim(outbox);
      await outbox.park('a', none, 'a hint');
      storage.put(storage.rows('logoutparked')[0]?.[0] ?? '', '{');
      expect(await outbox.parked(10)).toMatchObject([{ hint: expect.stringContaining('cannot be read') }]);
      expect(await outbox.discard('a')).toBe(true);
      expect(await outbox.parked(10)).toEqual([]);
    });
  });

  describe('with a clock that jumps', () => {
    it('back by four years and returns, loses nothing, repeats nothing and keeps its history', async () => {
      jest.useFakeTimers({ doNotFake: ['nextTick', 'setImmediate', 'queueMicrotask', 'Date'] });
      const storage = new SharedStorage();
      const one = start(storage, { keepFinishedMs: DAY });
      pend(one, ['finished', 'under way', 'waiting']);
      await claim(one, 2);
      await one.finish('finished', 1);
      storage.time -= YEARS;
      const other = start(storage, { keepFinishedMs: DAY }); // its clock is that of the jump
      pend(other, ['of the jump', 'under way in the jump']);
      const inJump = await claim(other, 1);
      await other.retry(inJump[0] ?? '', none, LEASE);
      await other.pause(LEASE);
      for (const queue of [one, other]) await queue.maintain();
      jest.advanceTimersByTime(6_000);
      storage.time += YEARS;
      for (const queue of [one, other]) await queue.maintain();
      jest.advanceTimersByTime(6_000);
      await one.finish('under way', 1);
      const delivered: string[] = [];
      for (let minute = 0; minute < 3; minute += 1) {
        for (const id of await claim(one)) {
          delivered.push(id);
          await one.finish(id, 1);
        }
        storage.time += 60_000;
      }
      jest.useRealTimers();
      expect(delivered.sort()).toEqual(['of the jump', 'under way in the jump', 'waiting']);
      expect(await one.counts()).toEqual({ pending: 0, parked: 0 });
      expect(await finished(one, 'finished')).toHaveLength(1);
      storage.time += LEASE;
      expect(await claim(one)).toEqual([]);
    });
  });

  describe('its history', () => {
    it('is removed when its time has passed, by a process whose clock runs steadily', async () => {
      jest.useFakeTimers({ doNotFake: ['nextTick', 'setImmediate', 'queueMicrotask', 'Date'] });
      const storage = new SharedStorage();
      const outbox = start(storage, { keepFinishedMs: 1_000 });
      const pass = async (ms: number): Promise<void> => {
        for (let passed = 0; passed < ms; passed += 1_000) {
          storage.time += 1_000;
          jest.advanceTimersByTime(1_000);
          await outbox.maintain();
        }
      };
      pend(outbox, ['a']);
      await claim(outbox);
      await outbox.finish('a', 1);
      expect(await finished(outbox, 'a')).toHaveLength(1);
      await pass(2_000);
      expect(await finished(outbox, 'a')).toEqual([]);
      storage.time += 2 * DAY;
      await pass(9 * 60_000);
      expect(storage.rows('logoutdone')).toHaveLength(1);
      await pass(2 * 60_000);
      jest.useRealTimers();
      expect(storage.rows('logoutdone')).toEqual([]);
    });

    it('has a limited number of rows in the memory of a process', async () => {
      const storage = new SharedStorage();
      for (let n = 0; n < 900; n += 1) storage.put(`logoutdone:000001:hash:000000000000001:${n}`, '{}');
      await new LogoutHistory(storage, outboxContext(), 500).prune();
      expect(storage.rows('logoutdone').length).toBeLessThanOrEqual(500);
    });
  });
});
