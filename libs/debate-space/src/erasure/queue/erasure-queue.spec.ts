import { afterEach, beforeEach, describe, expect, it, jest } from '@jest/globals';
import { Readable } from 'node:stream';
import { type Clocks } from 'debate-space-fixtures/clocks.js';
import {
  DAY_MS,
  erasureProcess,
  erasureRows,
  RETENTION_MS,
  twoErasureProcesses,
  type ErasureProcess,
} from 'debate-space-fixtures/erasure-process.js';
import { seeded } from 'debate-space-fixtures/seeded.js';
import { LEASE_MS, type Storage } from 'durable-jobs';
import type { ErasureClaim, Setback } from './erasure-queue.js';

const failure: Setback = { cause: '503', unknown: true, sent: true, rejections: 0 };
const notSent: Setback = { cause: 'ECONNREFUSED', unknown: false, sent: false, rejections: 0 };
const erased = { outcome: 'erased', status: 200, loggedOut: true } as const;
const vetoed = { outcome: 'vetoed', reason: 'a hold', loggedOut: false } as const;
const uidsOf = (count: number): string[] => Array.from({ length: count }, (_, n) => `user-${n}`);

let clocks: Clocks;
let shared: Storage;
let one: ErasureProcess;
let other: ErasureProcess;
beforeEach(() => {
  ({ clocks, shared, one, other } = twoErasureProcesses());
});
afterEach(() => {
  jest.restoreAllMocks();
});

async function ask(reference: string, ...uids: string[]): Promise<void> {
  for (const uid of uids)
    await one.requests.add({ reference, mode: 'delete', requestedBy: `for ${reference}` }, uid);
}
async function claim(process = one): Promise<ErasureClaim> {
  const [claimed] = await process.queue.claim(1);
  if (!claimed) throw new Error('nothing is due');
  return claimed;
}
async function outcomesOf(reference: string): Promise<readonly unknown[]> {
  const found: unknown[] = [];
  for await (const { outcome, attempts, uncertain } of one.storage.receipts(reference)) {
    found.push({ outcome, attempts, ...(uncertain ? { uncertain } : {}) });
  }
  return found;
}
const status = (reference: string) => one.storage.status(reference);

describe('the queue of erasures', () => {
  it('gives each erasure out once, until its lease ends', async () => {
    await ask('r', 'alice');
    expect(await claim()).toMatchObject({ uid: 'alice', attempts: 0, unknown: false });
    expect(await other.queue.claim(1)).toEqual([]);
    clocks.advance(LEASE_MS);
    expect(await claim(other)).toMatchObject({ uid: 'alice' });
  });

  it('keeps a claim as long as it is renewed', async () => {
    await ask('r', 'alice', 'bob');
    const claims = await one.queue.claim(2);
    for (let beat = 0; beat < 9; beat += 1) {
      clocks.advance(10_000);
      await one.queue.renew(claims);
      expect(await other.queue.claim(2)).toEqual([]);
    }
    clocks.advance(LEASE_MS);
    expect(await other.queue.claim(2)).toHaveLength(2);
    await one.queue.renew(claims);
    clocks.advance(LEASE_MS);
    expect(await one.queue.claim(2)).toHaveLength(2);
  });

  it('gives back what was not begun, as if it had never been claimed', async () => {
    await ask('r', 'alice', 'bob');
    const claims = await one.queue.claim(2);
    const woken = jest.fn();
    one.queue.onChange(woken);
    await one.queue.giveBack(claims);
    expect(woken).toHaveBeenCalledTimes(1);
    expect(await one.queue.nextDueMs()).toBe(0);
    expect(await other.queue.claim(2)).toMatchObject([
      { attempts: 0, failures: 0 },
      { attempts: 0, failures: 0 },
    ]);
    await one.queue.giveBack(claims); // they are the other's now
    expect(await one.queue.claim(2)).toEqual([]);
  });

  it('claims up to the limit in one commit, a single user before a list', async () => {
    await one.requests.addList({ reference: 'list', mode: 'delete' }, Readable.from(uidsOf(40)));
    await ask('single', 'z');
    expect(await one.queue.claim(10)).toMatchObject([{ reference: 'single' }]); // and brings the list back
    const commits = jest.spyOn(shared, 'commit');
    const claims = await one.queue.claim(10);
    expect(claims.map(({ reference }) => reference)).toEqual(Array<string>(10).fill('list'));
    expect(new Set(claims.map(({ uidHash }) => uidHash)).size).toBe(10);
    expect(commits).toHaveBeenCalledTimes(1);
    expect(await other.queue.claim(100)).toHaveLength(30);
    expect(await one.queue.nextDueMs()).toBe(LEASE_MS);
  });

  it('carries nothing of a list out before it is read to its end', async () => {
    const request = { reference: 'list', mode: 'delete' } as const;
    const broken = async function* (): AsyncGenerator<string> {
      yield* await Promise.resolve(uidsOf(300));
      throw new TypeError('of the source');
    };
    await expect(one.requests.addList(request, broken())).rejects.toThrow(TypeError);
    expect(await one.queue.claim(9)).toEqual([]);
    await one.control.pause('list');
    await one.requests.addList(request, Readable.from(uidsOf(300)));
    expect(await one.queue.claim(9)).toEqual([]);
    await other.control.resume('list');
    const claims = [...(await one.queue.claim(500)), ...(await one.queue.claim(500))];
    expect(claims).toHaveLength(300);
    expect(await status('list')).toMatchObject({ total: 300, waiting: 300 });
  });

  it('gives an erasure to only one of two processes', async () => {
    await ask('r', 'alice');
    const claims = await Promise.all([one.queue.claim(1), other.queue.claim(1)]);
    expect(claims.flat()).toHaveLength(1);
  });

  it('counts an attempt when it is sent, and knows for ever that it may have been carried out', async () => {
    await ask('r', 'alice');
    const first = await claim();
    expect(await one.queue.markSending(first)).toBe(true);
    await one.queue.retry(first, failure, 0);
    const second = await claim();
    expect(second).toMatchObject({ attempts: 1, unknown: true, failures: 1 });
    await one.queue.retry(second, notSent, 0);
    expect(await claim()).toMatchObject({ attempts: 1, unknown: true, failures: 2 });
  });

  it('does not take for sent what a process that died had only claimed', async () => {
    await ask('r', 'alice');
    await claim(other);
    clocks.advance(LEASE_MS);
    expect(await claim()).toMatchObject({ attempts: 0, unknown: false });
  });

  it('sends nothing of a claim that another process has taken over', async () => {
    await ask('r', 'alice');
    const late = await claim();
    clocks.advance(LEASE_MS);
    const taken = await claim(other);
    expect(await one.queue.markSending(late)).toBe(false);
    expect(await other.queue.markSending(taken)).toBe(true);
    await one.queue.retry(late, notSent, 0);
    expect(await one.queue.claim(1)).toEqual([]);
    await one.control.cancel('r');
    expect(await status('r')).toMatchObject({ waiting: 1, canceled: 0 });
    await other.queue.finish(taken, erased);
    expect(await status('r')).toMatchObject({ state: 'done', done: 1 });
  });

  it('does not end a later erasure of the same user by what comes late of an earlier one', async () => {
    await ask('first', 'alice');
    const late = await claim();
    clocks.advance(LEASE_MS);
    await other.queue.finish(await claim(other), erased);
    await ask('second', 'alice');
    const announced = jest.fn();
    await one.queue.finish(late, erased, announced);
    expect(announced).not.toHaveBeenCalled();
    expect(await status('second')).toMatchObject({ waiting: 1, done: 0 });
  });

  it('sends nothing that was canceled or paused while it waited for its turn', async () => {
    await ask('canceled', 'alice');
    await ask('paused', 'bob');
    const claims = [await claim(), await claim()];
    await other.control.cancel('canceled');
    await other.control.pause('paused');
    expect(await status('canceled')).toMatchObject({ state: 'canceled', canceled: 1 });
    for (const claimed of claims) {
      expect(await one.queue.markSending(claimed)).toBe(false);
      await one.queue.retry(claimed, notSent, 0);
    }
    expect(await one.queue.claim(1)).toEqual([]);
    await other.control.resume('paused');
    expect(await claim()).toMatchObject({ uid: 'bob' });
  });

  it('gives up what a cancellation that a crash interrupted has left', async () => {
    await ask('r', 'alice');
    await one.storage.change('r', async (change) => {
      (await change.edit()).canceling = true;
    });
    expect(await one.queue.claim(1)).toEqual([]);
    expect(await status('r')).toMatchObject({ state: 'canceled', canceled: 1 });
    expect(one.events).toMatchObject([{ type: 'erasure-finished', reference: 'r', canceled: 1 }]);
  });

  it('says once that a reference is finished, also when it is canceled while its last user is erased', async () => {
    await ask('r', 'alice');
    const claimed = await claim();
    await one.queue.markSending(claimed);
    const cancellation = one.control.cancel('r');
    await Promise.all([one.queue.finish(claimed, erased), cancellation]);
    expect(await cancellation).toMatchObject({ state: 'done', done: 1 });
    expect(one.events).toMatchObject([{ type: 'erasure-finished', reference: 'r', done: 1 }]);
  });

  it('goes on with what may have been carried out when it is canceled, and ends it when it was given up', async () => {
    await ask('r', 'alice', 'bob');
    const [sent, parked] = [await claim(), await claim()];
    await one.queue.markSending(sent);
    await one.queue.markSending(parked);
    await one.queue.park(parked, failure, 'a hint');
    expect(await one.control.cancel('r')).toMatchObject({ waiting: 1, canceled: 1, failed: 0 });
    expect(await outcomesOf('r')).toEqual([{ outcome: 'canceled', attempts: 1, uncertain: true }]);
    await one.queue.retry(sent, failure, 0);
    const again = await claim();
    expect(await one.queue.markSending(again)).toBe(true);
    await one.queue.finish(again, erased);
    expect(await status('r')).toMatchObject({ state: 'canceled', done: 1, canceled: 1 });
  });

  it('is asked of the host for each reference, and says when a veto came too late', async () => {
    await ask('first', 'alice');
    await ask('second', 'alice');
    const [claimed, second] = await one.queue.claim(2);
    if (!claimed || !second) throw new Error('they are not due');
    expect(claimed).toMatchObject({ reference: 'first', requestedBy: 'for first' });
    expect(second).toMatchObject({ reference: 'second', requestedBy: 'for second' });
    await one.queue.finish(claimed, vetoed);
    expect(await outcomesOf('first')).toEqual([{ outcome: 'vetoed', attempts: 0 }]);
    expect(await status('second')).toMatchObject({ waiting: 1, vetoed: 0 });
    await one.queue.markSending(second);
    await one.queue.retry(second, failure, 0);
    await one.queue.finish(await claim(), vetoed);
    expect(await outcomesOf('second')).toEqual([{ outcome: 'vetoed', attempts: 1, uncertain: true }]);
  });

  it('gives an anonymization out when the deletion of the same user is parked, and not before', async () => {
    await ask('delete', 'alice');
    await one.requests.add({ reference: 'anonymize', mode: 'anonymize' }, 'alice');
    const deletion = await claim();
    expect(deletion.mode).toBe('delete');
    expect(await one.queue.claim(1)).toEqual([]);
    await one.queue.park(deletion, failure, 'a hint');
    clocks.advance(60_000);
    expect(await claim()).toMatchObject({ mode: 'anonymize' });
  });

  it('sends no anonymization when the deletion of the same user was requested while it waited for its turn', async () => {
    await one.requests.add({ reference: 'anonymize', mode: 'anonymize' }, 'alice');
    const anonymization = await claim();
    await ask('delete', 'alice');
    expect(await one.queue.markSending(anonymization)).toBe(false);
    await one.queue.retry(anonymization, notSent, 0);
    const deletion = await claim(other);
    expect(deletion.mode).toBe('delete');
    expect(await one.queue.claim(1)).toEqual([]);
    expect(await other.queue.markSending(deletion)).toBe(true);
    await other.queue.finish(deletion, erased);
    clocks.advance(60_000);
    expect(await one.queue.markSending(await claim())).toBe(true);
  });

  it('reads all users of a page in one round trip when a reference is canceled or retried', async () => {
    await one.requests.addList({ reference: 'list', mode: 'delete' }, Readable.from(uidsOf(40)));
    const claims = await one.queue.claim(20);
    for (const claimed of claims) await one.queue.park(claimed, failure, 'a hint');
    const reads = jest.spyOn(shared, 'get');
    expect(await other.control.retry('list')).toMatchObject({ failed: 0, waiting: 40 });
    expect(await other.control.cancel('list')).toMatchObject({ waiting: 20, canceled: 20 });
    expect(reads.mock.calls.length).toBeLessThan(10);
  });

  it('dates a finished reference anew when another user is requested under it', async () => {
    await ask('r', 'alice');
    await one.queue.finish(await claim(), erased);
    clocks.advance(8 * DAY_MS);
    await one.requests.add({ reference: 'r', mode: 'delete', requestedBy: 'somebody else' }, 'bob');
    const asked = { requestedBy: 'somebody else', requestedAt: new Date(Date.now()) };
    expect(await status('r')).toMatchObject({ state: 'running', ...asked });
    expect(await status('r')).not.toHaveProperty('finishedAt');
    for await (const receipt of one.storage.receipts('r')) expect(receipt.requestedBy).toBe('for r');
    expect(await one.storage.overdueMs()).toBeUndefined();
    clocks.advance(7 * DAY_MS + 1);
    await one.queue.maintain();
    expect(one.events.at(-1)).toMatchObject({ type: 'erasure-overdue', days: 7 });
  });

  it('counts, retries and parks the erasures of a user for each reference alone', async () => {
    await ask('a', 'alice');
    await ask('b', 'alice');
    for (const claimed of await one.queue.claim(2)) await one.queue.park(claimed, failure, 'a hint');
    await one.control.resume('b');
    for (const reference of ['a', 'b'])
      expect(await status(reference)).toMatchObject({ failed: 1, waiting: 0, state: 'overdue' });
    await one.control.retry('b');
    expect(await status('a')).toMatchObject({ failed: 1, waiting: 0 });
    expect(await status('b')).toMatchObject({ failed: 0, waiting: 1 });
    await one.queue.finish(await claim(), erased);
    expect(await status('b')).toMatchObject({ state: 'done' });
  });

  it('retries the parked ones of a paused reference after the pause', async () => {
    await ask('r', 'alice');
    await one.queue.park(await claim(), failure, 'a hint');
    await one.control.pause('r');
    await one.control.retry('r');
    expect(await one.queue.claim(1)).toEqual([]);
    await one.control.resume('r');
    expect(await claim()).toMatchObject({ uid: 'alice', failures: 0, ageMs: 0 });
  });

  it('does not count the time of a pause', async () => {
    await ask('r', 'alice');
    await one.control.pause('r');
    clocks.advance(29 * DAY_MS);
    await one.control.resume('r');
    clocks.advance(5);
    expect((await claim()).ageMs).toBe(5);
  });

  it('leaves nothing behind when the retention of a receipt has ended', async () => {
    await ask('r', 'alice');
    await one.queue.finish(await claim(), erased);
    clocks.advance(RETENTION_MS - 1);
    await one.queue.maintain();
    expect(await outcomesOf('r')).toHaveLength(1);
    clocks.advance(1);
    await one.queue.maintain();
    expect(await erasureRows(shared)).toEqual([]);
  });

  it('reports once what is overdue, over all processes', async () => {
    const reported = () => [...one.events, ...other.events];
    await ask('r', 'alice');
    clocks.advance(7 * DAY_MS + 1);
    await Promise.all([one.queue.maintain(), other.queue.maintain()]);
    expect(reported()).toEqual([
      { type: 'erasure-overdue', reference: 'r', mode: 'delete', waiting: 1, days: 7 },
    ]);
    expect(await one.storage.overdueMs()).toBe(7 * DAY_MS + 1);
    clocks.advance(DAY_MS);
    await one.queue.maintain();
    expect(reported()).toHaveLength(1);
    clocks.advance(14 * DAY_MS);
    await one.queue.maintain();
    expect(reported()).toMatchObject([{ days: 7 }, { days: 22 }]);
  });

  it('finds an erasure and its receipt under every storage key', async () => {
    await ask('before', 'alice');
    const rotated = erasureProcess(shared, clocks, ['a new key', 'a key']);
    const request = { reference: 'after', mode: 'delete' } as const;
    expect(await rotated.requests.openReference('alice', 'delete')).toBe('before');
    expect(await rotated.requests.countRequested(['alice', 'bob'], ['delete'])).toBe(1);
    expect(await rotated.requests.add({ ...request, reference: 'before' }, 'alice')).toBe(false);
    expect(await rotated.requests.add(request, 'alice')).toBe(true);
    expect(await rotated.storage.count()).toBe(2);
    await rotated.requests.add({ reference: 'anonymize', mode: 'anonymize' }, 'alice');
    const claims = await rotated.queue.claim(10);
    expect(
      claims.map(({ reference, uidHash, uid, mode }) => [reference, uidHash, uid, mode]).toSorted(),
    ).toEqual([
      ['after', rotated.uids.hash('alice'), 'alice', 'delete'],
      ['before', one.uids.hash('alice'), 'alice', 'delete'],
    ]);
    for (const found of claims) await rotated.queue.finish(found, erased);
    const receipts = [];
    for await (const { reference } of rotated.storage.receiptsOf('alice')) receipts.push(reference);
    expect(receipts).toEqual(['after', 'before']);
    await rotated.requests.add(request, 'alice');
    expect(await status('after')).toMatchObject({ total: 1, done: 1 });
  });

  it('parks a record that was copied to the key of another user', async () => {
    await ask('r', 'alice', 'bob');
    const entryOf = (uid: string): string => `erasurepending:r/${one.uids.hash(uid)}`;
    const [alice] = await shared.get([entryOf('alice')]);
    await shared.commit(new Map(), new Map([[entryOf('bob'), alice]]));
    expect((await one.queue.claim(2)).map(({ uid }) => uid)).toEqual(['alice']);
    expect(await status('r')).toMatchObject({ failed: 1, waiting: 1 });
  });

  it("does not open a uid that was copied from another user's erasure", async () => {
    await ask('r', 'alice', 'bob');
    const entryOf = (uid: string): string => `erasurepending:r/${one.uids.hash(uid)}`;
    const entries = await shared.get([entryOf('alice'), entryOf('bob')]);
    const sealedIn = (text = ''): string => /"sealed":"([^"]+)"/.exec(text)?.[1] ?? '';
    const [alice = '', bob] = entries;
    const moved = alice.replace(sealedIn(alice), sealedIn(bob));
    await shared.commit(new Map(), new Map([[entryOf('alice'), moved]]));
    const claims = await one.queue.claim(2);
    expect(claims.map(({ uid }) => uid)).toEqual(expect.arrayContaining(['bob', undefined]));
    expect(claims.find(({ uid }) => uid === undefined)?.hint).toContain('storageKey');
  });

  describe('for somebody who writes to the storage and has no key', () => {
    const jobKey = (reference: string, uid: string): string =>
      `erasurepending:${reference}/${one.uids.hash(uid)}`;
    const read = async (key: string): Promise<string> => String((await shared.get([key]))[0]);
    const write = (rows: Readonly<Record<string, string>>) =>
      shared.commit(new Map(), new Map(Object.entries(rows)));
    const toDelete = (text: string): string => text.replaceAll('"anonymize"', '"delete"');

    it('does not turn an anonymization into a deletion', async () => {
      await one.requests.add({ reference: 'r', mode: 'anonymize' }, 'alice');
      const key = jobKey('r', 'alice');
      await write({
        [key]: toDelete(await read(key)),
        'erasurebatch:r': toDelete(await read('erasurebatch:r')),
      });
      const [claim] = await one.queue.claim(1);
      expect(claim).toMatchObject({
        uid: undefined,
        mode: 'delete',
        hint: expect.stringContaining('cannot be read'),
      });
      if (claim) await one.queue.park(claim, notSent, claim.hint ?? '');
      expect(await status('r')).toMatchObject({ failed: 1, waiting: 0 });
    });

    it('does not erase the user of a paused reference for another one', async () => {
      await ask('paused', 'alice');
      await one.control.pause('paused');
      await ask('r', 'bob');
      const rows = await shared.range('erasuredue:', 'erasuredue;', { limit: 9 });
      const [due = '', born = ''] = rows.find(([key]) => key.includes('r/')) ?? [];
      const forged = (await read(jobKey('paused', 'alice')))
        .replaceAll('paused/', 'r/')
        .replace(/"born":"[^"]+"/, `"born":"${born}"`);
      await write({
        [jobKey('r', 'alice')]: forged,
        [due.replace(one.uids.hash('bob'), one.uids.hash('alice'))]: born,
      });
      const uids = (await one.queue.claim(9)).map(({ uid }) => uid);
      expect(uids).toEqual(expect.arrayContaining(['bob', undefined]));
      expect(uids).toHaveLength(2);
    });

    it.each(['earlier erasure', 'logout'])("does not open the uid of a user's %s", async (kind) => {
      await ask('r', 'alice');
      const sealedIn = (text: string): string => /"sealed":"([^"]+)"/.exec(text)?.[1] ?? '';
      const earlier = sealedIn(await read(jobKey('r', 'alice')));
      const [claim] = await one.queue.claim(1);
      if (claim) await one.queue.finish(claim, erased);
      await ask('again', 'alice');
      const key = jobKey('again', 'alice');
      const text = await read(key);
      const uidHash = one.uids.hash('alice');
      const logout = { kind: 'logout', id: `again/${uidHash}`, uidHash } as const;
      const sealed = kind === 'logout' ? one.uids.seal('alice', logout) : earlier;
      await write({ [key]: text.replace(sealedIn(text), sealed) });
      expect(await one.queue.claim(9)).toMatchObject([{ uid: undefined, reference: 'again' }]);
    });
  });

  it('has a status that says why the last attempt failed, and when the next one is due', async () => {
    await ask('r', 'alice', 'bob');
    expect(await status('r')).not.toHaveProperty('retrying');
    const claimed = await claim();
    await one.queue.retry(claimed, failure, 5_000);
    expect(await status('r')).toMatchObject({
      waiting: 2,
      retrying: { cause: '503', nextAttemptAt: new Date(Date.now() + 5_000) },
    });
    await one.control.pause('r');
    expect(await status('r')).not.toHaveProperty('retrying');
    await one.control.resume('r');
    clocks.advance(5_000);
    await one.queue.claim(2);
    expect((await status('r')).retrying).toEqual({ cause: '503' });
  });

  it('erases a user whose erasure was canceled for another reference', async () => {
    await ask('left', 'alice');
    await ask('r', 'alice');
    await one.control.cancel('left');
    expect(await one.queue.claim(2)).toMatchObject([{ uid: 'alice', reference: 'r' }]);
  });

  for (const seed of [1, 2, 3]) {
    it(`counts each user exactly once, whatever two processes do in which order (${seed})`, async () => {
      const random = seeded(seed);
      const pick = <T>(items: readonly T[]): T => items[Math.floor(random() * items.length)] as T;
      const references = ['r0', 'r1', 'r2', 'r3'];
      const held: { readonly by: typeof one; readonly claimed: ErasureClaim }[] = [];
      const steps: readonly ((process: typeof one) => Promise<unknown>)[] = [
        ({ requests }) =>
          requests.add({ reference: pick(references), mode: 'delete' }, `user-${Math.floor(random() * 12)}`),
        async (by) => {
          for (const claimed of await by.queue.claim(pick([1, 3]))) held.push({ by, claimed });
        },
        async () => {
          const [taken] = held.splice(Math.floor(random() * held.length), 1);
          if (!taken) return;
          const { claimed, by } = taken;
          const { queue } = by;
          const sent = random() < 0.8 && (await queue.markSending(claimed));
          const end = pick([erased, vetoed, { outcome: 'not-found', status: 404, loggedOut: true } as const]);
          const what = pick(['finish', 'finish', 'retry', 'park'] as const);
          if (what === 'finish') await queue.finish(claimed, end);
          if (what === 'retry') await queue.retry(claimed, sent ? failure : notSent, 1_000);
          if (what === 'park') await queue.park(claimed, failure, 'a hint');
          queue.release(claimed);
        },
        ({ control }) => control.pause(pick(references)),
        ({ control }) => control.resume(pick(references)),
        ({ control }) => control.retry(pick(references)),
        async () => {
          for (const { by, claimed } of held.slice(0, 3)) await by.queue.renew([claimed]);
        },
        async () => {
          for (const { by, claimed } of held.splice(0, pick([0, 0, 1, 2])))
            await by.queue.giveBack([claimed]);
        },
        ({ queue }) => queue.maintain(),
        ({ control }) => (random() < 0.1 ? control.cancel(pick(references)) : Promise.resolve()),
        () => {
          clocks.advance(pick([1, 500, LEASE_MS]));
          return Promise.resolve();
        },
      ];
      const refused = ({ code }: { code?: string }): void => {
        expect(code).toMatch(/_ERASURE(_CONFLICT)?$/);
      };
      for (let step = 0; step < 600; step += 1) {
        const both = [pick(steps)(one), pick(steps)(other)].map((work) => work.catch(refused));
        await Promise.all(both);
        for await (const found of one.storage.list()) {
          if (found.state === 'unreadable') throw new Error(found.cause);
          const { total, done, notFound, vetoed: forbidden, canceled, failed, waiting } = found;
          expect(Math.min(done, notFound, forbidden, canceled, failed, waiting)).toBeGreaterThanOrEqual(0);
          expect(done + notFound + forbidden + canceled + failed + waiting).toBe(total);
        }
      }
      for (const { by, claimed } of held) by.queue.release(claimed);
      for (const reference of references) {
        await one.control.resume(reference).catch(refused);
        await one.control.retry(reference).catch(refused);
      }
      for (let idle = 0; idle < 3;) {
        clocks.advance(LEASE_MS);
        const claims = await one.queue.claim(5);
        for (const claimed of claims) await one.queue.finish(claimed, erased);
        if (claims.length === 0) idle += 1;
      }
      for await (const found of one.storage.list()) {
        if (found.state === 'unreadable') throw new Error(found.cause);
        const { reference, state, waiting, failed, total, canceled } = found;
        expect({ reference, over: ['done', 'canceled'].includes(state), waiting, failed }).toEqual({
          reference,
          over: true,
          waiting: 0,
          failed: 0,
        });
        expect((await outcomesOf(reference)).length).toBeGreaterThanOrEqual(total - canceled);
      }
      const left = (await erasureRows(shared)).map(([key]) => /^erasure(time:)?[a-z]+/.exec(key)?.[0]);
      expect(new Set(left)).toEqual(
        new Set([
          'erasurebatch',
          'erasuretime:finished',
          'erasuretime:asked',
          'erasurereceipt',
          'erasureuser',
        ]),
      );
      clocks.advance(RETENTION_MS + DAY_MS);
      await one.queue.maintain();
      expect(await erasureRows(shared)).toEqual([]);
    });
  }
});
