import { afterEach, beforeEach, describe, expect, it, jest } from '@jest/globals';
import { outboxContext } from '../../../../test/support/outbox-context.js';
import { openMemory } from '../../../../test/support/outbox-engines.js';
import { seeded } from '../../../../test/support/seeded.js';
import type { ClaimedErasure, Setback } from './claimed-erasure.js';
import { ErasureBatch } from './erasure-batch.js';
import { ErasureControl } from './erasure-control.js';
import { ErasureLedger } from './erasure-ledger.js';
import { ErasureQueue } from './erasure-queue.js';
import { ErasureReceipts } from './erasure-receipts.js';
import { ErasureRecords } from './erasure-records.js';
import { ErasureUpkeep } from './erasure-upkeep.js';
import { StorageRecords } from '../logout/storage-records.js';

const LEASE_MS = 90_000;
const DAY_MS = 24 * 60 * 60 * 1000;
const failure: Setback = { cause: '503', unknown: true, sent: true, rejections: 0 };
const notSent: Setback = { cause: 'ECONNREFUSED', unknown: false, sent: false, rejections: 0 };
const erased = { outcome: 'erased', answer: 200, loggedOut: true } as const;
const vetoed = { outcome: 'vetoed', reason: 'a hold', loggedOut: false } as const;

/** Two processes that share an engine. */
function processOf(engine: StorageRecords) {
  const records = new ErasureRecords(engine, outboxContext());
  const ledger = new ErasureLedger(records, 7 * DAY_MS);
  const queue = new ErasureQueue(records);
  const upkeep = new ErasureUpkeep(records, { overdueAfterMs: [7 * DAY_MS, 21 * DAY_MS], receiptRetentionMs: DAY_MS }); // prettier-ignore
  const receipts = new ErasureReceipts(records);
  return { records, ledger, queue, upkeep, receipts, control: new ErasureControl(records, ledger) };
}

let engine: StorageRecords;
let one: ReturnType<typeof processOf>;
let other: ReturnType<typeof processOf>;
beforeEach(() => {
  jest.useFakeTimers({ doNotFake: ['nextTick', 'queueMicrotask', 'setImmediate', 'performance'] });
  engine = new StorageRecords(openMemory());
  [one, other] = [processOf(engine), processOf(engine)];
});
afterEach(() => {
  jest.useRealTimers();
});

async function ask(reference: string, ...uids: string[]): Promise<void> {
  for (const uid of uids) await one.ledger.add({ reference, mode: 'delete', requestedBy: `for ${reference}` }, uid); // prettier-ignore
}
async function claim(process = one): Promise<ClaimedErasure> {
  const claimed = await process.queue.claim(LEASE_MS);
  if (!claimed) throw new Error('nothing is due');
  return claimed;
}
async function outcomesOf(reference: string): Promise<readonly unknown[]> {
  const found: unknown[] = [];
  for await (const { outcome, attempts, uncertain } of one.receipts.of(reference)) {
    found.push({ outcome, attempts, ...(uncertain ? { uncertain } : {}) });
  }
  return found;
}

describe('the queue of erasures', () => {
  it('gives each out once, until its lease is over', async () => {
    await ask('r', 'alice');
    expect(await claim()).toMatchObject({ uid: 'alice', attempts: 0, unknownBefore: false });
    expect(await other.queue.claim(LEASE_MS)).toBeUndefined();
    jest.advanceTimersByTime(LEASE_MS);
    expect(await claim(other)).toMatchObject({ uid: 'alice' });
  });

  it('lets only one of two processes have it', async () => {
    await ask('r', 'alice');
    const claims = await Promise.all([one.queue.claim(LEASE_MS), other.queue.claim(LEASE_MS)]);
    expect(claims.filter((claimed) => claimed !== undefined)).toHaveLength(1);
  });

  it('lets the references take turns', async () => {
    await ask('list', 'a', 'b', 'c');
    jest.advanceTimersByTime(10);
    await ask('single', 'z');
    const claimed = [];
    for (let n = 0; n < 4; n += 1) {
      claimed.push((await claim()).references[0]);
      jest.advanceTimersByTime(1);
    }
    expect(claimed.indexOf('single')).toBeLessThan(3);
  });

  it('counts an attempt when it is sent, and knows for ever that it may have been carried out', async () => {
    await ask('r', 'alice');
    const first = await claim();
    expect(await one.queue.send(first)).toBe(true);
    await one.queue.retry(first, failure, 0);
    const second = await claim();
    expect(second).toMatchObject({ attempts: 1, unknownBefore: true, failures: 1 });
    await one.queue.retry(second, notSent, 0);
    expect(await claim()).toMatchObject({ attempts: 1, unknownBefore: true, failures: 2 });
  });

  it('does not take for sent what a process that died had only claimed', async () => {
    await ask('r', 'alice');
    await claim();
    jest.advanceTimersByTime(LEASE_MS);
    expect(await claim()).toMatchObject({ attempts: 0, unknownBefore: false });
  });

  it('sends nothing of a claim that another process has taken over', async () => {
    await ask('r', 'alice');
    const late = await claim();
    jest.advanceTimersByTime(LEASE_MS);
    const taken = await claim(other);
    expect(await one.queue.send(late)).toBe(false);
    expect(await other.queue.send(taken)).toBe(true);
    await one.queue.retry(late, notSent, 0);
    expect(await one.queue.claim(LEASE_MS)).toBeUndefined();
    await one.control.cancel('r');
    expect(await one.ledger.status('r')).toMatchObject({ waiting: 1, cancelled: 0 });
    await other.queue.finish(taken, erased);
    expect(await one.ledger.status('r')).toMatchObject({ state: 'done', done: 1 });
  });

  it('does not end a later erasure of the same user by what comes late of an earlier one', async () => {
    await ask('first', 'alice');
    const late = await claim();
    jest.advanceTimersByTime(LEASE_MS);
    await other.queue.finish(await claim(other), erased);
    await ask('second', 'alice');
    expect(await one.queue.finish(late, erased)).toMatchObject({ references: [] });
    expect(await one.ledger.status('second')).toMatchObject({ waiting: 1, done: 0 });
  });

  it('sends nothing that was cancelled or paused while it waited for its turn', async () => {
    await ask('cancelled', 'alice');
    await ask('paused', 'bob');
    const claims = [await claim(), await claim()];
    await other.control.cancel('cancelled');
    await other.control.pause('paused');
    expect(await one.ledger.status('cancelled')).toMatchObject({ state: 'cancelled', cancelled: 1 });
    for (const claimed of claims) {
      expect(await one.queue.send(claimed)).toBe(false);
      await one.queue.retry(claimed, notSent, 0);
    }
    expect(await one.queue.claim(LEASE_MS)).toBeUndefined();
    await other.control.resume('paused');
    expect(await claim()).toMatchObject({ uid: 'bob' });
  });

  it('gives up what a cancellation that a crash interrupted has left', async () => {
    await ask('r', 'alice');
    await one.records.change(async (draft) => {
      const batch = await ErasureBatch.find(draft, 'r');
      if (batch) batch.stored.cancelling = true;
      batch?.save(Date.now());
    });
    expect(await one.queue.claim(LEASE_MS)).toBeUndefined();
    expect(await one.ledger.status('r')).toMatchObject({ state: 'cancelled', cancelled: 1 });
  });

  it('goes on with what may have been carried out when it is cancelled, and ends it when it was given up', async () => {
    await ask('r', 'alice', 'bob');
    const [sent, parked] = [await claim(), await claim()];
    await one.queue.send(sent);
    await one.queue.send(parked);
    await one.queue.park(parked, failure);
    expect(await one.control.cancel('r')).toMatchObject({ waiting: 1, cancelled: 1, failed: 0 });
    expect(await outcomesOf('r')).toEqual([{ outcome: 'cancelled', attempts: 1, uncertain: true }]);
    await one.queue.retry(sent, failure, 0);
    const again = await claim();
    expect(await one.queue.send(again)).toBe(true);
    await one.queue.finish(again, erased);
    expect(await one.ledger.status('r')).toMatchObject({ state: 'cancelled', done: 1, cancelled: 1 });
  });

  it('vetoes for those that the host was asked for, and says when it came too late', async () => {
    await ask('asked', 'alice');
    const claimed = await claim();
    await ask('joined', 'alice');
    expect(claimed).toMatchObject({ references: ['asked'], requestedBy: 'for asked' });
    await one.queue.finish(claimed, vetoed);
    expect(await outcomesOf('asked')).toEqual([{ outcome: 'vetoed', attempts: 0 }]);
    expect(await one.ledger.status('joined')).toMatchObject({ waiting: 1, vetoed: 0 });
    jest.advanceTimersByTime(LEASE_MS);
    const second = await claim();
    await one.queue.send(second);
    await one.queue.retry(second, failure, 0);
    await one.queue.finish(await claim(), vetoed);
    expect(await outcomesOf('joined')).toEqual([{ outcome: 'vetoed', attempts: 1, uncertain: true }]);
  });

  it('tells the host of the earliest reference, and who asked for that', async () => {
    await ask('earlier', 'alice');
    await one.control.pause('earlier');
    await ask('later', 'alice');
    expect(await claim()).toMatchObject({ references: ['earlier', 'later'], requestedBy: 'for earlier' });
  });

  it('lets a deletion go before an anonymisation only as long as it is going', async () => {
    await ask('delete', 'alice');
    await one.ledger.add({ reference: 'anonymize', mode: 'anonymize' }, 'alice');
    const deletion = await claim();
    expect(deletion.mode).toBe('delete');
    expect(await one.queue.claim(LEASE_MS)).toBeUndefined();
    await one.queue.park(deletion, failure);
    jest.advanceTimersByTime(60_000);
    expect(await claim()).toMatchObject({ mode: 'anonymize' });
  });

  it('counts a parked one for each of its references, and revives it for each', async () => {
    await ask('a', 'alice');
    await ask('b', 'alice');
    await one.queue.park(await claim(), failure);
    for (const reference of ['a', 'b']) {
      expect(await one.ledger.status(reference)).toMatchObject({ failed: 1, waiting: 0, state: 'overdue' });
    }
    await one.control.resume('b');
    expect(await one.ledger.status('a')).toMatchObject({ failed: 0, waiting: 1 });
    await one.queue.finish(await claim(), erased);
    expect(await one.ledger.status('b')).toMatchObject({ state: 'done' });
  });

  it('does not count the time of a pause', async () => {
    await ask('r', 'alice');
    await one.control.pause('r');
    jest.advanceTimersByTime(29 * DAY_MS);
    const resumedAt = Date.now();
    await one.control.resume('r');
    expect((await claim()).since).toBe(resumedAt);
  });

  it('leaves nothing behind when the time of a receipt is over', async () => {
    await ask('r', 'alice');
    await one.queue.finish(await claim(), erased);
    expect(await one.upkeep.prune()).toBe(false);
    jest.advanceTimersByTime(DAY_MS + 1);
    expect(await one.upkeep.prune()).toBe(true);
    expect(engine.range('', '~', 10)).toEqual([]);
  });

  it('tells once of what is overdue, over all processes', async () => {
    await ask('r', 'alice');
    jest.advanceTimersByTime(7 * DAY_MS + 1);
    const told = await Promise.all([one.upkeep.nextOverdue(), other.upkeep.nextOverdue()]);
    expect(told.filter((status) => status !== undefined)).toMatchObject([{ reference: 'r', state: 'overdue' }]); // prettier-ignore
    jest.advanceTimersByTime(DAY_MS);
    expect(await one.upkeep.nextOverdue()).toBeUndefined();
    jest.advanceTimersByTime(14 * DAY_MS);
    expect(await one.upkeep.nextOverdue()).toMatchObject({ waiting: 1 });
  });

  for (const seed of [1, 2, 3]) {
    it(`adds up, whatever two processes do in which order (${seed})`, async () => {
      const random = seeded(seed);
      const pick = <T>(items: readonly T[]): T => items[Math.floor(random() * items.length)] as T;
      const references = ['r0', 'r1', 'r2', 'r3'];
      const held: ClaimedErasure[] = [];
      const steps: readonly ((process: typeof one) => Promise<unknown>)[] = [
        ({ ledger }) => ledger.add({ reference: pick(references), mode: 'delete' }, `user-${Math.floor(random() * 12)}`), // prettier-ignore
        async ({ queue }) => {
          const claimed = await queue.claim(LEASE_MS);
          if (claimed) held.push(claimed);
        },
        async ({ queue }) => {
          const claimed = held.splice(Math.floor(random() * held.length), 1)[0];
          if (!claimed) return;
          const sent = random() < 0.8 && (await queue.send(claimed));
          const end = pick([erased, vetoed, { outcome: 'not-found', answer: 404, loggedOut: true } as const]); // prettier-ignore
          const what = pick(['finish', 'finish', 'retry', 'park'] as const);
          if (what === 'finish') await queue.finish(claimed, end);
          if (what === 'retry') await queue.retry(claimed, sent ? failure : notSent, 1_000);
          if (what === 'park') await queue.park(claimed, failure);
        },
        ({ control }) => control.pause(pick(references)),
        ({ control }) => control.resume(pick(references)),
        ({ control }) => (random() < 0.1 ? control.cancel(pick(references)) : Promise.resolve()),
        () => {
          jest.advanceTimersByTime(pick([1, 500, LEASE_MS]));
          return Promise.resolve();
        },
      ];
      const refused = ({ code }: { code?: string }): void => {
        expect(code).toMatch(/_ERASURE(_CONFLICT)?$/);
      };
      for (let step = 0; step < 600; step += 1) {
        const both = [pick(steps)(one), pick(steps)(other)].map((work) => work.catch(refused));
        await Promise.all(both);
        for await (const status of one.ledger.list()) {
          const { total, done, notFound, vetoed: forbidden, cancelled, failed, waiting } = status;
          expect(Math.min(done, notFound, forbidden, cancelled, failed, waiting)).toBeGreaterThanOrEqual(0);
          expect(done + notFound + forbidden + cancelled + failed + waiting).toBe(total);
        }
      }
      for (const reference of references) await one.control.resume(reference).catch(refused);
      for (let idle = 0; idle < 3;) {
        jest.advanceTimersByTime(LEASE_MS);
        const claimed = await one.queue.claim(LEASE_MS);
        if (claimed) await one.queue.finish(claimed, erased);
        else idle += 1;
      }
      for await (const { reference, state, waiting, failed, total, cancelled } of one.ledger.list()) {
        expect({ reference, over: ['done', 'cancelled'].includes(state), waiting, failed }).toEqual({ reference, over: true, waiting: 0, failed: 0 }); // prettier-ignore
        expect((await outcomesOf(reference)).length).toBeGreaterThanOrEqual(total - cancelled);
      }
      for (const [from, to] of [['d/', 'f'], ['o/', 'q'], ['s/', 't']] as const) expect(engine.range(from, to, 10)).toEqual([]); // prettier-ignore
    });
  }
});
