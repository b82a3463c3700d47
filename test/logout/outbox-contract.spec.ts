import { afterAll, afterEach, beforeAll, beforeEach, expect, it } from '@jest/globals';
import { setTimeout as sleep } from 'node:timers/promises';
import type { LogoutEntry, LogoutJob } from '../../libs/debate-space/src/logout/logout.js';
import type { LogoutQueue } from '../../libs/debate-space/src/logout/queue/logout-queue.js';
import { StorageError } from '../../libs/debate-space/src/errors.js';
import { outboxContext } from 'debate-space-fixtures/outbox-context.js';
import { outboxKinds, type OutboxKind, type OutboxPlaces } from 'debate-space-fixtures/outbox-engines.js';

const context = outboxContext();
const LONG = 60_000;
const none = { attempts: 0, rejections: 0 };
const entry = (id: string, more: Partial<LogoutEntry> = {}): LogoutEntry => ({
  id,
  uid: `user of ${id}`,
  reason: 'destroyed',
  endedAt: 1_750_000_000_000,
  ...more,
});
/** With an id as those of the plugin: ids sort by age. */
const aged = (name: string, endedAt: number): LogoutEntry =>
  entry(`${String(endedAt).padStart(15, '0')}-${name}`, { endedAt });
const ids = (jobs: readonly LogoutJob[]): string[] => jobs.map((job) => job.entry.id);

/** The queue on every storage keeps this contract, and so does its fallback. */
const contract = (kind: OutboxKind): void => {
  const opened: LogoutQueue[] = [];
  let places: OutboxPlaces;
  let place: ReturnType<OutboxPlaces['place']>;
  let outbox: LogoutQueue;
  beforeAll(async () => {
    places = await kind.start();
  });
  beforeEach(async () => {
    place = places.place();
    outbox = await open();
  });
  afterEach(async () => {
    for (const one of opened.splice(0)) await one.close();
  });
  afterAll(async () => {
    await places.stop();
  });

  async function open(): Promise<LogoutQueue> {
    const one = await place(context);
    opened.push(one);
    return one;
  }

  async function pend(...names: string[]): Promise<void> {
    for (const name of names) await outbox.add([entry(name)]);
  }

  /** Claims as soon as something is due. */
  async function claimNext(limit = 10, leaseMs = LONG): Promise<readonly LogoutJob[]> {
    for (;;) {
      const dueMs = await outbox.nextDueMs();
      if (dueMs === undefined) throw new Error('nothing will ever be due');
      await sleep(Math.ceil(dueMs));
      const jobs = await outbox.claim(limit, leaseMs);
      if (jobs.length > 0) return jobs;
    }
  }

  it('is empty at first', async () => {
    expect(await outbox.counts()).toEqual({ pending: 0, parked: 0 });
    expect(await outbox.claim(10, LONG)).toEqual([]);
    expect(await outbox.nextDueMs()).toBeUndefined();
  });

  it('gives out what is added, immediately and as it came', async () => {
    const all = entry('a', { uid: 'Zoë 🦊/007', reason: 'requested' });
    await outbox.add([all]);
    expect(await outbox.counts()).toEqual({ pending: 1, parked: 0 });
    expect(await outbox.nextDueMs()).toBe(0);
    expect(await outbox.claim(10, LONG)).toEqual([{ entry: all, ...none }]);
  });

  it('adds many at once, in their order, and leaves one that it has as it is', async () => {
    const names = Array.from({ length: 100 }, (_, n) => `e-${n}`);
    await pend('e-50');
    expect(ids(await outbox.claim(1, LONG))).toEqual(['e-50']);
    await outbox.add(names.map((name) => entry(name)));
    expect(await outbox.counts()).toEqual({ pending: 100, parked: 0 });
    const others = names.filter((name) => name !== 'e-50');
    expect(ids(await outbox.claim(100, LONG)).toSorted()).toEqual(others.toSorted());
    const more = Array.from({ length: 100 }, (_, n) => `more-${n}`);
    await outbox.add(more.map((name) => entry(name)));
    expect(ids(await outbox.claim(100, LONG))).toEqual(more);
  });

  it('gives out no more what is dropped', async () => {
    await pend('a', 'parked');
    await outbox.claim(1, 1);
    await outbox.drop('a');
    await outbox.claim(1, LONG);
    await outbox.park('parked', none, 'a hint');
    for (const name of ['parked', 'unknown', 'a']) await outbox.drop(name);
    expect(await outbox.counts()).toEqual({ pending: 0, parked: 0 });
    expect(await outbox.parked(10)).toEqual([]);
    expect(await outbox.claim(10, LONG)).toEqual([]);
    expect((await outbox.ofUser('user of a')).finished).toMatchObject([{ outcome: 'superseded' }]);
  });

  it('gives out no more than requested, the earliest first', async () => {
    await pend('a', 'b', 'c', 'd');
    expect(ids(await outbox.claim(3, LONG))).toEqual(['a', 'b', 'c']);
    expect(ids(await outbox.claim(3, LONG))).toEqual(['d']);
    expect(await outbox.claim(3, LONG)).toEqual([]);
  });

  it('goes by the due time of what is repeated', async () => {
    await pend('late', 'soon');
    await outbox.claim(10, LONG);
    await outbox.retry('late', none, 1_000);
    await outbox.retry('soon', none, 20);
    expect(ids(await claimNext(1))).toEqual(['soon']);
    expect(ids(await claimNext(1))).toEqual(['late']);
  });

  it('gives nothing out twice, also to claims at the same time', async () => {
    await pend(...Array.from({ length: 20 }, (_, n) => `e-${n}`));
    const claims = await Promise.all(Array.from({ length: 10 }, async () => outbox.claim(3, LONG)));
    const claimed = claims.flatMap(ids);
    expect(claimed).toHaveLength(20);
    expect(new Set(claimed).size).toBe(20);
  });

  it('gives out again what was claimed and not heard of before the lease ran out', async () => {
    await pend('a');
    expect(ids(await outbox.claim(10, LONG))).toEqual(['a']);
    expect(await outbox.claim(10, LONG)).toEqual([]);
    expect(await outbox.counts()).toEqual({ pending: 1, parked: 0 });
    await pend('b');
    const [b] = await outbox.claim(10, 30);
    if (!b) throw new Error('it was not claimed');
    outbox.release(b);
    expect(await claimNext()).toEqual([{ entry: entry('b'), ...none }]);
  });

  it('does not give out again what is renewed, however often, and renews nothing else', async () => {
    await pend('a', 'b', 'c');
    const [a, b, c] = await outbox.claim(10, 20);
    if (!a || !b || !c) throw new Error('not all were claimed');
    await outbox.renew([a]);
    await outbox.renew([a, { ...a, entry: entry('unknown') }]);
    outbox.release(b);
    expect(ids(await claimNext(1))).toEqual(['b']);
    await outbox.retry('c', none, 0);
    await outbox.renew([c]);
    expect(ids(await claimNext())).toEqual(['c']);
    expect(await outbox.counts()).toEqual({ pending: 3, parked: 0 });
  });

  it('repeats after the delay, and knows how far it has come', async () => {
    await pend('a', 'b');
    await outbox.claim(10, LONG);
    await outbox.retry('a', { attempts: 3, rejections: 1 }, LONG);
    expect(await outbox.claim(10, LONG)).toEqual([]);
    expect(await outbox.nextDueMs()).toBeGreaterThan(LONG / 2);
    await outbox.retry('b', { attempts: 3, rejections: 1 }, 30);
    expect(await outbox.nextDueMs()).toBeLessThanOrEqual(30);
    expect(await claimNext()).toEqual([{ entry: entry('b'), attempts: 3, rejections: 1 }]);
  });

  it('forgets what is finished', async () => {
    await pend('a', 'b');
    await outbox.claim(1, LONG);
    await outbox.finish('a', 1);
    expect(await outbox.counts()).toEqual({ pending: 1, parked: 0 });
    expect(ids(await outbox.claim(10, LONG))).toEqual(['b']);
  });

  it('keeps what is parked, and gives it out no more', async () => {
    await pend('a');
    await outbox.claim(10, 1);
    await outbox.park('a', { attempts: 1, rejections: 0 }, 'a hint');
    expect(await outbox.counts()).toEqual({ pending: 0, parked: 1 });
    expect(await outbox.nextDueMs()).toBeUndefined();
    expect(await outbox.claim(10, LONG)).toEqual([]);
  });

  it('ignores what does not fit the entry’s state', async () => {
    await pend('parked', 'pending', 'finished');
    await outbox.claim(10, LONG);
    await outbox.park('parked', none, 'a hint');
    await outbox.finish('finished', 1);
    await pend('parked');
    for (const name of ['parked', 'finished', 'unknown']) await outbox.retry(name, none, 0);
    for (const name of ['finished', 'unknown']) await outbox.park(name, none, 'a hint');
    for (const name of ['finished', 'unknown']) await outbox.drop(name);
    await outbox.finish('unknown', 1);
    expect(await outbox.counts()).toEqual({ pending: 1, parked: 1 });
    expect(await outbox.claim(10, LONG)).toEqual([]);
  });

  it('accepts each call twice', async () => {
    await outbox.add([entry('a')]);
    await outbox.add([entry('a', { uid: 'somebody else' })]);
    expect(await outbox.claim(10, LONG)).toEqual([{ entry: entry('a'), ...none }]);
    await outbox.retry('a', { attempts: 1, rejections: 0 }, 0);
    await outbox.retry('a', { attempts: 1, rejections: 0 }, 0);
    expect(ids(await claimNext())).toEqual(['a']);
    await outbox.park('a', none, 'a hint');
    await outbox.park('a', none, 'a hint');
    expect(await outbox.counts()).toEqual({ pending: 0, parked: 1 });
    await outbox.finish('a', 1);
    await outbox.finish('a', 1);
    await outbox.drop('a');
    expect(await outbox.counts()).toEqual({ pending: 0, parked: 0 });
  });

  it('says how old the oldest is that is pending', async () => {
    expect(await outbox.oldestPending()).toBeUndefined();
    const [a, b, c] = [aged('a', 1000), aged('b', 2000), aged('c', 3000)];
    await outbox.add([b, a, c]);
    expect(await outbox.oldestPending()).toBe(1000);
    await outbox.claim(10, LONG);
    await outbox.retry(a.id, none, LONG);
    expect(await outbox.oldestPending()).toBe(1000);
    await outbox.finish(a.id, 1);
    expect(await outbox.oldestPending()).toBe(2000);
    await outbox.park(b.id, none, 'a hint');
    expect(await outbox.oldestPending()).toBe(3000);
    await outbox.retryParked(b.id);
    expect(await outbox.oldestPending()).toBe(2000);
  });

  it('gives out nothing while paused, and says how long that is', async () => {
    await pend('a');
    await outbox.pause(1_000);
    await outbox.pause(1);
    expect(await outbox.claim(10, LONG)).toEqual([]);
    expect(await outbox.nextDueMs()).toBeGreaterThan(10);
    expect(ids(await claimNext())).toEqual(['a']);
  });

  it('lists what is parked, the longest parked first, with what is known of it', async () => {
    await pend('a', 'b', 'c');
    await outbox.claim(10, LONG);
    const before = Date.now();
    for (const name of ['b', 'a', 'c']) {
      await outbox.park(name, { attempts: 3, rejections: 2, cause: '400' }, `fix ${name}`);
      await sleep(5);
    }
    const parked = await outbox.parked(10);
    expect(ids(parked)).toEqual(['b', 'a', 'c']);
    expect(parked[0]).toEqual({
      entry: entry('b'),
      attempts: 3,
      rejections: 2,
      cause: '400',
      hint: 'fix b',
      parkedAt: expect.any(Number),
    });
    expect(parked[0]?.parkedAt).toBeGreaterThanOrEqual(before);
    expect(ids(await outbox.parked(1, 1))).toEqual(['a']);
    expect(await outbox.parked(10, 3)).toEqual([]);
  });

  it('delivers what is retried as if it had never been tried', async () => {
    await pend('a', 'b');
    await outbox.claim(10, LONG);
    await outbox.park('a', { attempts: 3, rejections: 3, cause: '400' }, 'a hint');
    expect(await outbox.retryParked('a')).toBe(true);
    expect(await outbox.retryParked('a')).toBe(false);
    expect(await outbox.retryParked('b')).toBe(false);
    expect(await outbox.retryParked('unknown')).toBe(false);
    expect(await outbox.parked(10)).toEqual([]);
    expect(await outbox.counts()).toEqual({ pending: 2, parked: 0 });
    expect(await claimNext()).toEqual([{ entry: entry('a'), ...none, retriedAt: expect.any(Number) }]);
  });

  it('gives up what is discarded', async () => {
    await pend('a', 'b');
    await outbox.claim(10, LONG);
    await outbox.park('a', { attempts: 3, rejections: 3, cause: '400' }, 'a hint');
    expect(await outbox.discard('a')).toBe(true);
    expect(await outbox.discard('a')).toBe(false);
    expect(await outbox.discard('b')).toBe(false);
    expect(await outbox.counts()).toEqual({ pending: 1, parked: 0 });
    const { waiting, finished } = await outbox.ofUser('user of a');
    expect(waiting).toEqual([]);
    expect(finished).toMatchObject([{ id: 'a', outcome: 'discarded', attempts: 3 }]);
  });

  it('shows the state of the logouts of a user, and which are finished', async () => {
    const mine = (id: string, endedAt: number): LogoutEntry => entry(id, { uid: 'alice', endedAt });
    await pend('somebody else’s');
    await outbox.add(['done', 'retried', 'parked'].map(mine));
    await outbox.claim(10, LONG);
    await outbox.finish('done', 2);
    await outbox.retry('retried', { attempts: 1, rejections: 0, cause: '503' }, LONG);
    await outbox.park('parked', { attempts: 1, rejections: 0, cause: '404' }, 'a hint');

    const { waiting, finished } = await outbox.ofUser('alice');
    const inOrder = [...waiting].sort((one, other) => one.entry.endedAt - other.entry.endedAt);
    expect(inOrder).toEqual([
      {
        entry: mine('retried', 1),
        attempts: 1,
        rejections: 0,
        cause: '503',
        state: 'pending',
        dueAt: expect.any(Number),
      },
      { entry: mine('parked', 2), attempts: 1, rejections: 0, cause: '404', state: 'parked', hint: 'a hint' },
    ]);
    expect(Math.abs((inOrder[0]?.dueAt ?? 0) - Date.now() - LONG)).toBeLessThan(LONG / 2);
    const over = {
      id: 'done',
      reason: 'destroyed',
      endedAt: 0,
      attempts: 2,
      outcome: 'delivered',
      finishedAt: expect.any(Number),
    };
    expect(finished).toEqual([over]);
    expect(await outbox.ofUser('nobody')).toEqual({ waiting: [], finished: [] });
  });

  it('supersedes what is pending for a user and ended before', async () => {
    const mine = (id: string, endedAt: number): LogoutEntry => ({ ...aged(id, endedAt), uid: 'alice' });
    const [early, parked, late] = [mine('early', 1000), mine('parked', 1000), mine('late', 2000)];
    await outbox.add([early, late, parked]);
    await pend('somebody else’s');
    await outbox.claim(3, LONG);
    await outbox.park(parked.id, none, 'a hint');
    expect(await outbox.supersede('alice', 1000)).toBe(1);
    expect(await outbox.supersede('alice', 1000)).toBe(0);
    expect(await outbox.counts()).toEqual({ pending: 2, parked: 1 });
    const { waiting, finished } = await outbox.ofUser('alice');
    expect(waiting.map(({ entry: { id } }) => id)).toEqual([parked.id, late.id]);
    expect(finished).toMatchObject([{ id: early.id, outcome: 'superseded' }]);
    await outbox.finish(early.id, 1); // it was under way
    expect((await outbox.ofUser('alice')).finished).toHaveLength(1);
  });

  it('calls its listener whenever something may have become due earlier', async () => {
    let changes = 0;
    outbox.onChange(() => (changes += 1));
    const tells = async (change: () => void | Promise<void>): Promise<void> => {
      const before = changes;
      await change();
      for (let turn = 0; turn < 200 && changes === before; turn += 1) await sleep(10); // an engine may be elsewhere
      expect(changes).toBeGreaterThan(before);
    };
    await tells(() => outbox.add([entry('a')]));
    await outbox.claim(10, LONG);
    await tells(() => outbox.retry('a', none, 0));
  });

  if (kind.isShared) sharedContract();

  function sharedContract(): void {
    it('has everything again after a restart', async () => {
      await pend('pending', 'parked', 'finished');
      await outbox.claim(10, 1);
      await outbox.park('parked', { ...none, cause: '404' }, 'a hint');
      await outbox.finish('finished', 2);
      await outbox.close();

      outbox = await open();
      expect(await outbox.counts()).toEqual({ pending: 1, parked: 1 });
      const [parked] = await outbox.parked(10);
      expect(parked).toMatchObject({ entry: entry('parked'), cause: '404', hint: 'a hint' });
      const { finished } = await outbox.ofUser('user of finished');
      expect(finished).toMatchObject([{ id: 'finished', attempts: 2 }]);
      expect(await claimNext()).toEqual([{ entry: entry('pending'), ...none }]);
    });

    it('gives each entry to one instance only, however many claim at the same time, and goes on when one closes', async () => {
      const all = [outbox, await open(), await open()];
      const names = Array.from({ length: 120 }, (_, n) => `e-${n}`);
      await Promise.all(names.map(async (name, n) => all[n % 3]?.add([entry(name)])));
      const claimed: { readonly by: LogoutQueue; readonly id: string }[] = [];
      const claimAll = async (by: LogoutQueue): Promise<void> => {
        for (let jobs = await by.claim(5, LONG); jobs.length > 0; jobs = await by.claim(5, LONG))
          claimed.push(...ids(jobs).map((id) => ({ by, id })));
      };
      await Promise.all([...all, ...all].map(claimAll));
      expect(claimed.map(({ id }) => id).sort()).toEqual(names.sort());
      await outbox.close();
      for (const { by, id } of claimed) if (by !== outbox) await by.finish(id, 1);
      const left = claimed.filter(({ by }) => by === outbox).length;
      expect(await all[1]?.counts()).toEqual({ pending: left, parked: 0 });
    });

    it('can be opened while another instance writes', async () => {
      const names = Array.from({ length: 500 }, (_, n) => `e-${n}`);
      const writing = Promise.all(names.map(async (name) => outbox.add([entry(name)])));
      const other = await open();
      await writing;
      expect(await other.counts()).toEqual({ pending: 500, parked: 0 });
    });

    it('pauses all instances', async () => {
      const other = await open();
      await pend('a');
      await outbox.pause(1_000);
      await other.pause(1);
      expect(await Promise.all([outbox.claim(1, LONG), other.claim(1, LONG)])).toEqual([[], []]);
      expect(await other.nextDueMs()).toBeGreaterThan(100);
      outbox = other;
      expect(ids(await claimNext())).toEqual(['a']);
    });

    it('refuses calls after it is closed, and has what was under way', async () => {
      const adding = outbox.add([entry('a')]);
      await Promise.all([outbox.close(), outbox.close()]);
      await adding;
      const calls: (() => unknown)[] = [
        () => outbox.add([entry('b')]),
        () => outbox.drop('a'),
        () => outbox.claim(1, LONG),
        () => outbox.finish('a', 1),
        () => outbox.pause(1),
        () => outbox.counts(),
        () => outbox.nextDueMs(),
        () => outbox.oldestPending(),
        () => outbox.parked(1),
        () => outbox.ofUser('a'),
      ];
      for (const call of calls)
        await expect(Promise.resolve().then(call)).rejects.toBeInstanceOf(StorageError);
      expect(await (await open()).counts()).toMatchObject({ pending: 1 });
    });
  }
};

for (const kind of outboxKinds) {
  kind.describe(`the ${kind.name}`, () => {
    contract(kind);
  });
}
