import { describe, expect, it, jest } from '@jest/globals';
import { Secret } from '../secret.js';
import { uidCipher } from '../uid-cipher.js';
import { outboxContext } from '../../../../test/support/outbox-context.js';
import { memoryQueue } from '../../../../test/support/outbox-engines.js';
import { SharedStorage, type Outcome } from '../../../../test/support/shared-storage.js';
import { StorageError } from '../errors.js';
import type { LogoutContext, LogoutEntry } from '../logout/logout.js';

import type { DebateSpaceStorage, StorageEngine } from '../storage/storage.js';
import { LogoutHistory } from './logout-history.js';
import { run } from './steps.js';
import { LogoutQueue } from './logout-queue.js';

const LEASE = 30_000;
const DAY = 86_400_000;
const YEARS = 4 * 365 * DAY;
const none = { attempts: 0, rejections: 0 };
const entry = (id: string): LogoutEntry => ({ id, uid: `user of ${id}`, reason: 'destroyed', endedAt: 1_750_000_000_000 }); // prettier-ignore
const numbered = (count: number): string[] =>
  Array.from({ length: count }, (_, n) => `e-${String(n).padStart(4, '0')}`);
const ids = (jobs: readonly { readonly entry: LogoutEntry }[]): string[] => jobs.map((job) => job.entry.id);

/** @param durable as a storage that processes share */
function engineOf(storage: DebateSpaceStorage, durable = true): StorageEngine {
  return { name: 'shared', guarantee: 'none', durable, open: () => storage };
}

/** Of a storage that answers synchronously. */
function start(storage: SharedStorage, more: Partial<LogoutContext> = {}, storageKey?: string): LogoutQueue {
  return new LogoutQueue(storage, engineOf(storage), outboxContext(more, storageKey));
}

function pend(outbox: LogoutQueue, names: readonly string[]): void {
  for (const name of names) {
    void outbox.hold(entry(name), LEASE);
    void outbox.release(name);
  }
}
const claim = (outbox: LogoutQueue, limit = 10): string[] => ids(outbox.claim(limit, LEASE) as []);
const finished = (outbox: LogoutQueue, name: string): readonly unknown[] =>
  (outbox.ofUser(`user of ${name}`) as { finished: readonly unknown[] }).finished;

describe('the logout queue', () => {
  it('stays synchronous on a storage that is', () => {
    const outbox = memoryQueue();
    const answers = [
      outbox.hold(entry('a'), LEASE),
      outbox.extend('a', LEASE),
      outbox.release('a'),
      outbox.hold(entry('b'), LEASE),
      outbox.cancel('b'),
      outbox.claim(1, LEASE),
      outbox.retry('a', none, 0),
      outbox.claim(1, LEASE),
      outbox.park('a', none, 'a hint'),
      outbox.parked(1),
      outbox.retryParked('a'),
      outbox.counts(),
      outbox.oldestPending(),
      outbox.nextDueMs(),
      outbox.ofUser('user of a'),
      outbox.supersede('user of a', 0),
      outbox.pause(1),
      outbox.finish('a', 1),
      outbox.discard('a'),
    ];
    expect(answers.map((answer) => answer instanceof Promise)).toEqual(answers.map(() => false));
  });

  it('changes what it holds or has claimed in one commit, without reading it', () => {
    const storage = new SharedStorage();
    const outbox = start(storage);
    const inOneCommit = (change: () => unknown): void => {
      storage.calls = [];
      change();
      expect(storage.calls.map(({ method }) => method)).toEqual(['commit']);
    };
    for (const name of ['a', 'b', 'c']) inOneCommit(() => outbox.hold(entry(name), LEASE));
    inOneCommit(() => outbox.extend('a', 2 * LEASE));
    inOneCommit(() => outbox.cancel('c'));
    for (const name of ['a', 'b']) inOneCommit(() => outbox.release(name));
    expect(claim(outbox)).toEqual(['a', 'b']);
    inOneCommit(() => outbox.retry('a', none, 0));
    inOneCommit(() => outbox.finish('b', 1));
    expect(claim(outbox)).toEqual(['a']);
    inOneCommit(() => outbox.park('a', none, 'a hint'));
  });

  it('leaves nothing of a finished logout but its history, without a uid', () => {
    const storage = new SharedStorage();
    const outbox = start(storage);
    pend(outbox, ['a', 'b', '000000000001000-c']);
    claim(outbox);
    const all = [...storage.left(), ...storage.rows('done')];
    expect(JSON.stringify(all)).not.toContain('user of');
    void outbox.finish('a', 1);
    void outbox.park('b', none, 'a hint');
    void outbox.discard('b');
    void outbox.supersede('user of 000000000001000-c', Date.now() * 2);
    storage.time += LEASE;
    expect(claim(outbox)).toEqual([]); // removes the row that the superseded one left
    expect(storage.left()).toEqual([]);
    expect(storage.rows('done')).toHaveLength(3);
    expect(JSON.stringify(storage.rows('done'))).not.toContain('user of');
  });

  it('leaves nothing at all of a finished logout when no history is kept', () => {
    const storage = new SharedStorage();
    const outbox = start(storage, { keepFinishedMs: 0 });
    pend(outbox, ['a']);
    claim(outbox);
    void outbox.finish('a', 1);
    expect([...storage.left(), ...storage.rows('done')]).toEqual([]);
  });

  it('leaves no row of a logout that comes before, and ends after, a change of the hashes', () => {
    const storage = new SharedStorage();
    const keys = ['the next storage key', 'the storage key of a test'].map((key) => new Secret(key));
    const [one, other] = [start(storage), start(storage, { uids: uidCipher(keys, 'test') })];
    pend(one, ['a']);
    expect(claim(other)).toEqual(['a']);
    void other.finish('a', 1);
    expect(storage.left()).toEqual([]);
    expect(finished(one, 'a')).toHaveLength(1);
  });

  it('gives out a logout again, as often as the process dies that has claimed it', () => {
    const storage = new SharedStorage();
    pend(start(storage), ['a']);
    for (let death = 0; death < 5; death += 1) {
      expect(start(storage).claim(10, LEASE)).toMatchObject([{ entry: { id: 'a' }, ...none }]);
      expect(claim(start(storage))).toEqual([]);
      storage.time += LEASE;
    }
  });

  it('tells people by the date of the machine when a logout is due, whatever the clock of the storage', () => {
    const storage = new SharedStorage();
    const outbox = start(storage);
    storage.time = Date.now() + YEARS;
    void outbox.hold(entry('a'), LEASE);
    const { waiting } = outbox.ofUser('user of a') as { waiting: readonly { dueAt: number }[] };
    expect(Math.abs((waiting[0]?.dueAt ?? 0) - Date.now() - LEASE)).toBeLessThan(5_000);
  });

  it('keeps the order of calls about one logout', async () => {
    const storage = new SharedStorage();
    const outbox = start(storage);
    storage.isAsynchronous = true;
    await Promise.all([outbox.hold(entry('a'), LEASE), outbox.release('a'), outbox.hold(entry('b'), LEASE), outbox.cancel('b')]); // prettier-ignore
    expect(await outbox.counts()).toEqual({ held: 0, pending: 1, parked: 0 });
  });

  it('finishes the calls that are running before it closes', async () => {
    const storage = new SharedStorage();
    const outbox = start(storage);
    storage.isAsynchronous = true;
    void outbox.hold(entry('a'), LEASE);
    void outbox.release('a');
    await outbox.close();
    expect(storage.rows('pending')).toHaveLength(1);
  });

  describe('claims', () => {
    it('take a batch of 32 in one commit', () => {
      const storage = new SharedStorage();
      const outbox = start(storage);
      pend(outbox, numbered(40));
      storage.calls = [];
      expect(claim(outbox, 32)).toEqual(numbered(32));
      expect(storage.calls.map(({ method }) => method)).toEqual(['range', 'get', 'commit']);
      expect(storage.calls.at(-1)?.changes).toBe(64); // of each logout only the due row is moved
    });

    it('choose from a wider range after a conflict, and from a narrower one with each success', () => {
      const storage = new SharedStorage();
      const [one, other] = [start(storage), start(storage)];
      pend(one, numbered(200));
      jest.spyOn(Math, 'random').mockReturnValue(0.5);
      const taken: string[] = [];
      storage.beforeCommit = () => taken.push(...claim(other, 4));
      storage.calls = [];
      expect(claim(one, 4)).toEqual(numbered(200).slice(34, 38)); // (4 … 67) are read, and the middle is taken
      expect(taken).toEqual(numbered(4));
      for (let n = 0; n < 40; n += 1) claim(one, 1);
      jest.restoreAllMocks();
      const limits = storage.calls.flatMap(({ method, limit }) => (method === 'range' ? [limit] : []));
      expect(limits.slice(0, 5)).toEqual([5, 5, 65, 16, 14]);
      expect(limits.at(-1)).toBe(2);
    });

    it('begin at the front again, whatever was taken behind it', () => {
      const storage = new SharedStorage();
      const [one, other] = [start(storage), start(storage)];
      pend(one, numbered(100));
      storage.beforeCommit = () => void claim(other, 1);
      const claimed = new Set<string>();
      for (let jobs = claim(one, 4); jobs.length > 0; jobs = claim(one, 4))
        for (const id of jobs) expect(claimed.add(id).size).toBeGreaterThan(0);
      expect(claimed.size).toBe(99);
    });
  });

  it('gives out logouts although an earlier claim was never answered', async () => {
    const storage = new SharedStorage();
    const outbox = start(storage);
    pend(outbox, ['a']);
    jest.spyOn(storage, 'range').mockReturnValueOnce(new Promise(() => undefined));
    void outbox.claim(1, LEASE);
    expect(ids(await outbox.claim(1, LEASE))).toEqual(['a']);
  });

  describe('whose lease another process has', () => {
    function lost(): { storage: SharedStorage; one: LogoutQueue; other: LogoutQueue } {
      const storage = new SharedStorage();
      const [one, other] = [start(storage), start(storage)];
      pend(one, ['a']);
      expect(claim(one)).toEqual(['a']);
      storage.time += LEASE + 1;
      expect(claim(other)).toEqual(['a']);
      return { storage, one, other };
    }

    it('is neither repeated nor parked', () => {
      const { storage, one, other } = lost();
      const before = storage.left();
      void one.retry('a', { ...none, attempts: 7 }, 0);
      void one.park('a', none, 'a hint');
      expect(storage.left()).toEqual(before);
      void other.retry('a', none, 0);
      expect(claim(one)).toEqual(['a']);
    });

    it('is finished none the less, once', () => {
      const { storage, one, other } = lost();
      void one.finish('a', 1);
      void other.retry('a', none, 0);
      void other.park('a', none, 'a hint');
      void other.finish('a', 2);
      expect(finished(one, 'a')).toMatchObject([{ id: 'a', attempts: 1 }]);
      storage.time += LEASE + 1;
      expect(claim(one)).toEqual([]);
      expect(storage.left()).toEqual([]);
    });
  });

  describe('when a commit fails that may have been made', () => {
    const outcomes = ['made', 'not made'] as const;
    const fail = (storage: SharedStorage, outcome: Outcome, call: () => unknown): void => {
      storage.unknown.push(outcome);
      expect(call).toThrow(StorageError);
    };

    it.each(outcomes)('delivers a logout once whose hold was %s and is repeated', (outcome) => {
      const storage = new SharedStorage();
      const outbox = start(storage);
      fail(storage, outcome, () => outbox.hold(entry('a'), LEASE));
      void outbox.hold(entry('a'), LEASE);
      void outbox.release('a');
      expect(claim(outbox)).toEqual(['a']);
      void outbox.finish('a', 1);
      expect(storage.left()).toEqual([]);
    });

    it.each(outcomes)('forgets a logout whose hold was %s and is cancelled', (outcome) => {
      const storage = new SharedStorage();
      const outbox = start(storage);
      fail(storage, outcome, () => outbox.hold(entry('a'), LEASE));
      fail(storage, outcome, () => outbox.cancel('a'));
      void outbox.cancel('a');
      expect(storage.left()).toEqual([]);
    });

    it.each(outcomes)('voids the due row of an extension that was %s, by the turn', (outcome) => {
      const storage = new SharedStorage();
      const outbox = start(storage);
      void outbox.hold(entry('a'), LEASE);
      fail(storage, outcome, () => outbox.extend('a', 2 * LEASE));
      void outbox.release('a');
      expect(storage.rows('due')).toHaveLength(outcome === 'made' ? 2 : 1);
      expect(claim(outbox)).toEqual(['a']);
      void outbox.retry('a', none, DAY);
      storage.time += 2 * LEASE;
      expect(claim(outbox)).toEqual([]); // not by the row of the hold
      expect(storage.rows('due')).toHaveLength(1);
      expect(outbox.counts()).toMatchObject({ pending: 1 });
    });

    it.each(outcomes)('has a logout once in the history whose end was %s and is repeated', (outcome) => {
      const storage = new SharedStorage();
      const outbox = start(storage);
      pend(outbox, ['a']);
      claim(outbox);
      fail(storage, outcome, () => outbox.finish('a', 1));
      void outbox.finish('a', 1);
      expect(storage.left()).toEqual([]);
      expect(finished(outbox, 'a')).toHaveLength(1);
    });

    it.each(outcomes)('gives out a logout again whose claim was %s', (outcome) => {
      const storage = new SharedStorage();
      const outbox = start(storage);
      pend(outbox, ['a']);
      fail(storage, outcome, () => outbox.claim(1, LEASE));
      storage.time += LEASE;
      expect(claim(outbox)).toEqual(['a']);
    });
  });

  describe('parks, with a hint, a record', () => {
    it.each([
      ['that is damaged', '{"v":1,'],
      ['that is no object', '7'],
      ['that is nothing', 'null'],
      ['with a uid that was not encrypted', '{"v":1,"id":"a","uid":"alice","turn":1}'],
      ['of a newer version', '{"v":2,"kind":"logout of a newer version"}'],
    ])('%s, and delivers the others', (_what, text) => {
      const storage = new SharedStorage();
      const outbox = start(storage);
      pend(outbox, ['a', 'b']);
      const [[key] = ['']] = storage.rows('pending');
      storage.put(key, text);
      expect(claim(outbox)).toEqual(['b']);
      const [parked] = outbox.parked(10) as readonly { hint: string; entry: LogoutEntry }[];
      expect(parked).toMatchObject({
        hint: expect.stringMatching(/cannot be read.*discard/),
        entry: { uid: '' },
      });
      expect(outbox.counts()).toEqual({ held: 0, pending: 1, parked: 1 });
      expect(JSON.stringify(storage.rows('parked'))).toContain(
        JSON.stringify(JSON.stringify(text)).slice(1, -1),
      ); // for the version that can read it
      expect(outbox.retryParked(parked?.entry.id ?? '')).toBe(false);
      expect(outbox.discard(parked?.entry.id ?? '')).toBe(true);
      expect(outbox.parked(10)).toEqual([]);
    });

    it('that is the record of another logout, and delivers that one once', () => {
      const storage = new SharedStorage();
      const outbox = start(storage);
      pend(outbox, ['a', 'b']);
      const [ofA, ofB] = storage.rows('pending');
      storage.put(ofA?.[0] ?? '', ofB?.[1] ?? '');
      expect(claim(outbox)).toEqual(['b']);
      expect(outbox.parked(10)).toMatchObject([{ entry: { uid: '' }, hint: expect.stringContaining('cannot be read') }]); // prettier-ignore
      expect(outbox.retryParked('a')).toBe(false);
      expect(outbox.discard('a')).toBe(true);
      expect(outbox.counts()).toEqual({ held: 0, pending: 1, parked: 0 });
    });

    it('of a held logout, when its lease has run out', () => {
      const storage = new SharedStorage();
      const outbox = start(storage);
      void outbox.hold(entry('a'), LEASE);
      storage.put(storage.rows('held')[0]?.[0] ?? '', '');
      storage.time += LEASE;
      expect(claim(outbox)).toEqual([]);
      expect(outbox.counts()).toEqual({ held: 0, pending: 0, parked: 1 });
    });

    it('that was stored with another key, and delivers it with that key', () => {
      const storage = new SharedStorage();
      const [one, other] = [start(storage), start(storage, {}, 'another storage key')];
      pend(one, ['a']);
      expect(claim(other)).toEqual([]);
      expect(other.retryParked('a')).toBe(false);
      expect(one.retryParked('a')).toBe(true);
      expect(claim(one)).toEqual(['a']);
    });

    it('and can discard one that was damaged after it was parked', () => {
      const storage = new SharedStorage();
      const outbox = start(storage);
      pend(outbox, ['a']);
      claim(outbox);
      void outbox.park('a', none, 'a hint');
      storage.put(storage.rows('parked')[0]?.[0] ?? '', '{');
      expect(outbox.parked(10)).toMatchObject([{ hint: expect.stringContaining('cannot be read') }]);
      expect(outbox.discard('a')).toBe(true);
      expect(outbox.parked(10)).toEqual([]);
    });
  });

  describe('with a clock that jumps', () => {
    it.each([
      ['ahead', YEARS],
      ['back', -YEARS],
    ])(
      'by four years %s and returns, loses nothing, repeats nothing and keeps its history',
      (_where, jump) => {
        jest.useFakeTimers({ doNotFake: ['nextTick', 'setImmediate', 'queueMicrotask', 'Date'] });
        const storage = new SharedStorage();
        const one = start(storage, { keepFinishedMs: DAY });
        pend(one, ['finished', 'under way', 'waiting']);
        claim(one, 2);
        void one.finish('finished', 1);
        storage.time += jump;
        const other = start(storage, { keepFinishedMs: DAY }); // its clock is that of the jump
        pend(other, ['of the jump', 'under way in the jump']);
        const inJump = claim(other, 1);
        void other.retry(inJump[0] ?? '', none, LEASE);
        void other.pause(LEASE);
        for (const queue of [one, other]) void queue.maintain();
        jest.advanceTimersByTime(6_000);
        storage.time -= jump;
        for (const queue of [one, other]) void queue.maintain();
        jest.advanceTimersByTime(6_000);
        void one.finish('under way', 1);
        const delivered: string[] = [];
        for (let minute = 0; minute < 3; minute += 1) {
          for (const id of claim(one)) {
            delivered.push(id);
            void one.finish(id, 1);
          }
          storage.time += 60_000;
        }
        jest.useRealTimers();
        expect(delivered.sort()).toEqual(['of the jump', 'under way in the jump', 'waiting']);
        expect(one.counts()).toEqual({ held: 0, pending: 0, parked: 0 });
        expect(finished(one, 'finished')).toHaveLength(1);
        storage.time += LEASE;
        expect(claim(one)).toEqual([]);
      },
    );
  });

  describe('whose history', () => {
    it('is removed when its time is over, by a process whose clock runs steadily', () => {
      jest.useFakeTimers({ doNotFake: ['nextTick', 'setImmediate', 'queueMicrotask', 'Date'] });
      const storage = new SharedStorage();
      const outbox = start(storage, { keepFinishedMs: 1_000 });
      const pass = (ms: number): void => {
        for (let passed = 0; passed < ms; passed += 1_000) {
          storage.time += 1_000;
          jest.advanceTimersByTime(1_000);
          void outbox.maintain();
        }
      };
      pend(outbox, ['a']);
      claim(outbox);
      void outbox.finish('a', 1);
      expect(finished(outbox, 'a')).toHaveLength(1);
      pass(2_000);
      expect(finished(outbox, 'a')).toEqual([]);
      storage.time += 2 * DAY;
      pass(9 * 60_000);
      expect(storage.rows('done')).toHaveLength(1);
      pass(2 * 60_000);
      jest.useRealTimers();
      expect(storage.rows('done')).toEqual([]);
    });

    it('has a highest number of rows in the memory of a process', () => {
      const storage = new SharedStorage();
      for (let n = 0; n < 900; n += 1) storage.put(`done:000001:hash:000000000000001:${n}`, '{}');
      void run(new LogoutHistory(storage, outboxContext(), 500).prune());
      expect(storage.rows('done').length).toBeLessThanOrEqual(500);
    });
  });
});
