import { afterEach, beforeEach, describe, expect, it, jest } from '@jest/globals';
import { Clocks } from '#support/clocks.js';
import { DAY_MS, ErasureRoom, GIVE_UP_AFTER_MS } from '#support/service/erasure-room.js';
import { RateLimitedError, RefusedError, UnavailableError } from '../errors.js';
import { MemoryStorage } from '../storage/memory-storage.js';
import { LEASE_MS, type Claim } from '../storage/storage.js';

const details = { operation: 'deleteUser', retryable: true, attempts: 1 } as const;
const failing = (error: Error) => (): never => {
  throw error;
};
const away = failing(new UnavailableError('away', { ...details, outcome: 'unknown', status: 503 }));
const unsent = failing(new UnavailableError('no token', { ...details, outcome: 'not-sent', status: 503 }));
const refused = failing(new RefusedError('no', { ...details, outcome: 'refused', status: 422 }));
const failedOnce = { attempts: 1, failures: 1, rejections: 0, uncertain: undefined, cause: '422' };
/** Longer than any delay between two attempts. */
const LONG_MS = 6 * 60 * 60_000;

let clocks: Clocks;
let storage: MemoryStorage;
let room: ErasureRoom;
let other: ErasureRoom;
beforeEach(() => {
  clocks = new Clocks();
  storage = new MemoryStorage();
  room = new ErasureRoom(storage);
  other = new ErasureRoom(storage);
});
afterEach(() => {
  jest.restoreAllMocks();
});

async function claim(): Promise<Claim> {
  const [claimed] = (await storage.claim('erasure', 1)).claims;
  if (!claimed) throw new Error('nothing is due');
  return claimed;
}

describe('the erasure of a user', () => {
  it('ends with a receipt without the uid, and forgets the logouts that wait', async () => {
    const subject = room.keyring.hash('erasure', 'alice');
    const ofLogouts = room.keyring.hash('logout', 'alice');
    await storage.addLogouts([{ id: '1-a', subject: ofLogouts, sealed: 'sealed', details: 'destroyed' }]);
    await room.request('r', ['alice']);
    await room.work();
    expect(room.sent).toEqual(['delete alice']);
    expect(await room.status('r')).toMatchObject({ state: 'done', total: 1, done: 1, waiting: 0 });
    expect(await room.receipts('r')).toEqual([
      {
        reference: 'r',
        mode: 'delete',
        requestedBy: 'for r',
        subject,
        requestedAt: new Date(Date.now()),
        doneAt: new Date(Date.now()),
        attempts: 1,
        outcome: 'erased',
        status: 200,
        loggedOut: true,
      },
    ]);
    expect(room.events).toMatchObject([
      { type: 'erasure-done', reference: 'r', subject, outcome: 'erased', attempts: 1, status: 200 },
      { type: 'erasure-finished', reference: 'r', total: 1, done: 1 },
    ]);
    expect(await storage.logoutsOf([ofLogouts])).toMatchObject([{ outcome: 'superseded' }]);
  });

  it('is recorded although its logouts cannot be forgotten', async () => {
    await room.request('r', ['alice']);
    storage.supersedeLogouts = () => Promise.reject(new TypeError('no answer'));
    await room.work();
    expect(await room.status('r')).toMatchObject({ done: 1 });
    expect(room.types()).toEqual(['fault', 'erasure-done', 'erasure-finished']);
  });

  it('is tried again, and then a 404 says that the first attempt has erased the user', async () => {
    room.answers.push(away, unsent, () => 404);
    await room.request('r', ['alice']);
    await room.work();
    expect(room.events).toMatchObject([
      { type: 'erasure-service-down', cause: '503' },
      { type: 'erasure-retrying', reference: 'r', attempts: 1, cause: '503' },
    ]);
    const { retrying } = await room.status('r');
    expect(retrying).toEqual({ cause: '503', nextAttemptAt: expect.any(Date) });
    expect(await room.work()).toBe(0);
    for (let n = 0; n < 2; n += 1) {
      clocks.advance(LONG_MS);
      await room.work();
    }
    expect(await room.receipts('r')).toMatchObject([{ outcome: 'erased', status: 404, attempts: 2 }]);
    expect(room.types()).toContain('erasure-service-up');
  });

  it('is not uncertain after attempts of which the service has seen nothing, or has refused all', async () => {
    room.answers.push(unsent, refused, () => 404);
    await room.request('r', ['alice']);
    for (let n = 0; n < 3; n += 1) {
      await room.work();
      clocks.advance(LONG_MS);
    }
    expect(await room.receipts('r')).toMatchObject([{ outcome: 'not-found', attempts: 2 }]);
  });

  it('is uncertain when a process died after it had sent the request', async () => {
    await room.request('r', ['alice']);
    expect(await room.repository.markSending(await claim())).toBe(true);
    clocks.advance(LEASE_MS);
    other.answers.push(() => 404);
    await other.work();
    expect(await room.receipts('r')).toMatchObject([{ outcome: 'erased', status: 404 }]);
  });

  it('is sent by nobody whose lease was lost', async () => {
    await room.request('r', ['alice']);
    const late = await claim();
    clocks.advance(LEASE_MS);
    room.beforeSending = () => other.work();
    await room.worker.execute(late);
    expect([room.sent, other.sent]).toEqual([[], ['delete alice']]);
    expect([room.events, other.types()]).toEqual([[], ['erasure-done', 'erasure-finished']]);
  });

  it('is announced once when the answer comes after another process has done it', async () => {
    await room.request('r', ['alice']);
    room.answers.push(async () => {
      clocks.advance(LEASE_MS);
      await other.work();
      return 200;
    });
    await room.work();
    expect([room.events, other.types()]).toEqual([[], ['erasure-done', 'erasure-finished']]);
  });

  it('lets the others rest when the service wants fewer requests', async () => {
    const message = { ...details, outcome: 'refused', status: 429, retryAfterMs: 42_000 } as const;
    room.answers.push(failing(new RateLimitedError('later', message)));
    await room.request('r', ['alice']);
    await room.work();
    expect(room.worker.breaker.waitMs).toBe(42_000);
    expect(room.types()).toEqual(['erasure-retrying']);
  });

  it.each(['pause', 'cancel'] as const)('is not sent after a %s that came while it waited', async (what) => {
    await room.request('r', ['alice']);
    room.beforeSending = () => other.erasures[what]('r');
    await room.work();
    room.beforeSending = () => Promise.resolve();
    expect(await room.work()).toBe(0);
    expect(room.sent).toEqual([]);
    expect(room.events).toEqual([]);
    await other.erasures.resume('r');
    const { claims } = await storage.claim('erasure', 1);
    expect(claims).toMatchObject(what === 'pause' ? [{ failures: 0, attempts: 0, cause: undefined }] : []);
  });

  it('is given back, and beforeErase is not called, when a process died that had claimed it before a pause', async () => {
    await room.request('r', ['alice']);
    const claimed = await claim();
    room.beforeErase = () => ({ veto: 'it was called' });
    await room.erasures.pause('r');
    const reference = await storage.reference('r');
    await room.worker.execute({ ...claimed, reference });
    expect(await room.status('r')).toMatchObject({ waiting: 1 });
    await room.erasures.resume('r');
    expect(await claim()).toMatchObject({ id: claimed.id });
  });

  it('is not sent when a process died that canceled its reference: the next one cancels the rest', async () => {
    const uids = Array.from({ length: 1_100 }, (_, n) => `user-${n}`);
    await room.requestList('list', uids);
    const cancel = storage.cancelErasures.bind(storage);
    jest.spyOn(storage, 'cancelErasures').mockImplementationOnce(async (...given) => {
      expect(await cancel(...given)).toMatchObject({ more: true });
      throw new Error('the process dies');
    });
    await expect(room.erasures.cancel('list')).rejects.toThrow('dies');
    await other.work(1);
    expect(other.sent).toEqual([]);
    expect(other.events).toMatchObject([{ type: 'erasure-finished', reference: 'list', canceled: 1_100 }]);
  });
});

describe('the hook beforeErase', () => {
  it('vetoes for one reference, and its reason is kept', async () => {
    room.beforeErase = ({ reference }) => (reference === 'held' ? { veto: 'legal hold' } : undefined);
    await room.request('held', ['alice']);
    await room.request('r', ['alice']);
    await room.work();
    expect(room.sent).toHaveLength(1);
    expect(await room.receipts('held')).toMatchObject([
      { outcome: 'vetoed', reason: 'legal hold', attempts: 0, loggedOut: false },
    ]);
    expect((await room.receipts('held'))[0]).not.toHaveProperty('uncertain');
    expect(room.events[0]).toMatchObject({ type: 'erasure-vetoed', reference: 'held', reason: 'legal hold' });
    expect(await room.status('held')).toMatchObject({ state: 'done', vetoed: 1 });
  });

  it('is a fault when it throws, and the erasure is retried', async () => {
    room.beforeErase = () => Promise.reject(new RangeError('of the host'));
    await room.request('r', ['alice']);
    await room.work();
    expect(room.events).toMatchObject([
      { type: 'fault', where: 'erasure.beforeErase', error: 'RangeError' },
      { type: 'erasure-retrying', cause: 'beforeErase failed', attempts: 0 },
    ]);
  });

  it('comes too late after an attempt that may have erased the user, and the receipt says so', async () => {
    room.answers.push(away);
    await room.request('r', ['alice']);
    await room.work();
    room.beforeErase = () => ({ veto: 'legal hold' });
    clocks.advance(LONG_MS);
    await room.work();
    expect(await room.receipts('r')).toMatchObject([{ outcome: 'vetoed', attempts: 1, uncertain: true }]);
  });
});

describe('an anonymization', () => {
  it('waits for the deletion of the same user, and logs nobody out before', async () => {
    room.beforeErase = ({ mode }) => void called.push(mode);
    const called: string[] = [];
    await room.request('a', ['alice'], 'anonymize');
    await room.request('d', ['alice']);
    room.answers.push(
      away,
      () => 200,
      () => 404,
    );
    await room.work();
    expect(await room.work()).toBe(0);
    clocks.advance(60_000);
    await room.work(1);
    expect(called).toEqual(['delete', 'delete']);
    clocks.advance(60_000);
    await room.work();
    expect(room.sent).toEqual(['delete alice', 'delete alice', 'anonymize alice']);
    expect(await room.receipts('a')).toMatchObject([{ outcome: 'not-found' }]);
  });

  it('waits for a deletion that was requested while it waited for its turn', async () => {
    await room.request('a', ['alice'], 'anonymize');
    room.beforeSending = () => other.request('d', ['alice']);
    await room.work();
    room.beforeSending = () => Promise.resolve();
    await room.work();
    expect(room.sent[0]).toBe('delete alice');
  });

  it('does not wait for a deletion that is parked', async () => {
    await room.request('d', ['alice']);
    await storage.park(await claim(), 'a hint', failedOnce);
    await room.request('a', ['alice'], 'anonymize');
    await room.work();
    expect(room.sent).toEqual(['anonymize alice']);
  });
});

describe('an erasure that fails for too long', () => {
  it('is parked with a hint after three attempts in a row, and continues when it is retried', async () => {
    await room.request('r', ['alice']);
    clocks.advance(GIVE_UP_AFTER_MS);
    for (let n = 0; n < 3; n += 1) {
      room.answers.push(refused);
      await room.work();
      clocks.advance(1_000);
    }
    expect(room.events.map((event) => ('cause' in event ? [event.type, event.cause] : event))).toEqual([
      ['erasure-retrying', '422'],
      ['erasure-retrying', '422'],
      ['erasure-parked', '422'],
    ]);
    expect(room.events.at(-1)).toMatchObject({ attempts: 3, hint: expect.stringContaining('operator') });
    expect(await room.status('r')).toMatchObject({ state: 'overdue', failed: 1, waiting: 0 });
    clocks.advance(LONG_MS);
    expect(await room.work()).toBe(0);
    expect(await room.erasures.retry('r')).toMatchObject({ failed: 0, waiting: 1 });
    await room.work();
    expect(await room.receipts('r')).toMatchObject([{ outcome: 'erased', attempts: 4 }]);
  });

  it('is left to the app by a guest, and so is one that its keys do not open', async () => {
    const guest = new ErasureRoom(storage, ['a key'], 'app', true);
    await guest.request('r', ['alice']);
    clocks.advance(2 * GIVE_UP_AFTER_MS);
    for (let n = 0; n < 4; n += 1) {
      guest.answers.push(refused);
      await guest.work();
      clocks.advance(LONG_MS);
    }
    const stranger = new ErasureRoom(storage, ['another key'], 'app', true);
    expect(await stranger.work()).toBe(1);
    expect(stranger.sent).toEqual([]);
    expect([...guest.types(), ...stranger.types()]).not.toContain('erasure-parked');
    expect(await room.status('r')).toMatchObject({ failed: 0, waiting: 1 });
  });

  it('is not late by the time of a pause', async () => {
    await room.request('r', ['alice']);
    await room.erasures.pause('r');
    clocks.advance(2 * GIVE_UP_AFTER_MS);
    await room.erasures.resume('r');
    for (let n = 0; n < 4; n += 1) {
      room.answers.push(refused);
      await room.work();
      clocks.advance(LONG_MS);
    }
    expect(room.types()).not.toContain('erasure-parked');
  });
});

describe('an erasure that no storage key vouches for', () => {
  it('is parked while its key is missing, and executed when the key is back', async () => {
    await room.request('r', ['alice']);
    const stranger = new ErasureRoom(storage, ['another key']);
    await stranger.work();
    expect(stranger.types()).toEqual(['record-unverified', 'erasure-parked']);
    await room.erasures.retry('r');
    await room.work();
    expect(room.sent).toEqual(['delete alice']);
  });

  it('is found by the maintenance though nobody claims it, reported once, and may be canceled only', async () => {
    await room.request('r', ['alice']);
    const found = await storage.reference('r');
    if (!found) throw new Error('no such reference');
    await storage.setPaused(found, true, 'a mark of somebody else');
    for (let n = 0; n < 2; n += 1) {
      await room.worker.maintain();
      clocks.advance(60_000);
    }
    expect(room.events).toEqual([{ type: 'record-unverified', record: 'reference', reference: 'r' }]);
    expect(room.repository.unverified).toBe(1);
    expect(await room.erasures.resume('r')).toMatchObject({ state: 'unverified', waiting: 1 });
    const code = 'ERR_DEBATE_SPACE_ERASURE_CONFLICT';
    await expect(room.request('r', ['bob'])).rejects.toMatchObject({ code });
    expect(await room.erasures.cancel('r')).toMatchObject({ state: 'canceled', canceled: 1, waiting: 0 });
    expect(room.repository.unverified).toBe(0);
  });
});

describe('a reference that is overdue', () => {
  it('is reported once for each age, over all processes', async () => {
    await room.request('r', ['alice']);
    await room.worker.maintain();
    expect(await room.repository.problems()).toEqual({ parked: 0 });
    clocks.advance(7 * DAY_MS + 1);
    await Promise.all([room.worker.maintain(), other.worker.maintain()]);
    const reported = () => [...room.events, ...other.events];
    expect(reported()).toEqual([
      { type: 'erasure-overdue', reference: 'r', mode: 'delete', waiting: 1, days: 7 },
    ]);
    expect(await room.repository.problems()).toMatchObject({ overdueMs: 7 * DAY_MS + 1 });
    expect(await room.status('r')).toMatchObject({ state: 'overdue' });
    clocks.advance(15 * DAY_MS);
    await room.worker.maintain();
    await room.work();
    expect(reported()).toMatchObject([{ days: 7 }, { days: 22 }, { type: 'erasure-done' }, {}]);
    expect(await room.repository.problems()).toEqual({ parked: 0 });
  });
});
