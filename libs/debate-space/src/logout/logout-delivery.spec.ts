import { beforeEach, describe, expect, it, jest } from '@jest/globals';
import type { DebateSpaceEvent } from '../events.js';
import { CircuitBreaker } from '../jobs/circuit-breaker.js';
import { Secret } from '../secrets/secret.js';
import { Keyring } from '../secrets/keyring.js';
import { memoryStorage } from '../storage/memory-storage.js';
import type { Storage } from '../storage/storage.js';
import type { DeliveryAnswer } from './delivery-policy.js';
import { LogoutDelivery, serviceEvents } from './logout-delivery.js';
import { LogoutRepository } from './logout-repository.js';

const HOUR = 3_600_000;
const cipher = (key: string) => new Keyring([new Secret(key)], 'app');

let storage: Storage;
let logouts: LogoutRepository;
let events: DebateSpaceEvent[];
beforeEach(async () => {
  ({ storage } = await memoryStorage().open('app'));
  logouts = new LogoutRepository(storage, cipher('a storage key of a test'), HOUR);
  events = [];
});

const typesOf = (): string[] => events.map(({ type }) => type);

/** Stores a logout of alice, and makes one attempt at it for each answer. */
async function deliver(answers: DeliveryAnswer[], isGuest = false): Promise<LogoutDelivery> {
  const emit = (event: DebateSpaceEvent): void => void events.push(event);
  const delivery = new LogoutDelivery(storage, logouts, {
    breaker: new CircuitBreaker(4, serviceEvents(emit)),
    sender: { send: () => Promise.resolve(answers.shift() ?? {}) },
    giveUpAfterMs: HOUR,
    emit,
    isGuest,
    pause: { unavailableMs: 0 },
  });
  jest.spyOn(Math, 'random').mockReturnValue(0); // retries are due at once
  const id = `${String(Date.now()).padStart(15, '0')}-a`;
  await storage.addLogouts([logouts.rowOf({ id, uid: 'alice', reason: 'destroyed', endedAt: Date.now() })]);
  for (let left = answers.length; left > 0; left -= 1) {
    const { claims } = await storage.claim('logout', 10);
    for (const claim of claims) await delivery.execute(claim);
  }
  jest.restoreAllMocks();
  return delivery;
}

describe('a logout', () => {
  it('that the service takes is kept in the history without its uid', async () => {
    await deliver([{ status: 200 }]);
    expect(events).toMatchObject([{ type: 'logout-delivered', uid: 'alice', attempts: 1 }]);
    expect(await logouts.history('alice')).toMatchObject([{ state: 'delivered', attempts: 1 }]);
    const [job] = await storage.logoutsOf(cipher('a storage key of a test').hashes('logout', 'alice'));
    expect(job?.sealed).toBe('');
  });

  it('that fails is retried', async () => {
    await deliver([{ status: 503 }, { status: 200 }]);
    expect(typesOf()).toEqual(['logout-retrying', 'logout-delivered']);
  });

  it('that is refused three times is parked with the most likely fix', async () => {
    await deliver([{ status: 400 }, { status: 400 }, { status: 400 }]);
    expect(events.at(-1)).toMatchObject({ type: 'logout-parked', attempts: 3, cause: '400' });
    expect(await logouts.parked(10, 0)).toMatchObject([
      { uid: 'alice', cause: '400', hint: expect.stringContaining('secretKey') },
    ]);
  });

  it('whose attempt the shutdown breaks off is due at once, as if there had been no attempt', async () => {
    await deliver([{ aborted: true }]);
    expect(events).toEqual([]);
    expect((await storage.claim('logout', 1)).claims).toMatchObject([{ attempts: 0 }]);
  });

  it('that no storage key opens is parked', async () => {
    const other = new LogoutRepository(storage, cipher('another key of a test'), HOUR);
    const id = `${String(Date.now()).padStart(15, '0')}-b`;
    await storage.addLogouts([other.rowOf({ id, uid: 'bob', reason: 'destroyed', endedAt: Date.now() })]);
    await deliver([{ status: 200 }]);
    expect(events).toContainEqual(
      expect.objectContaining({ type: 'logout-parked', uid: '', cause: 'unreadable' }),
    );
    expect(await logouts.parked(10, 0)).toMatchObject([{ id, uid: '', cause: 'unreadable' }]);
  });
});

describe('a guest, which has none of the options of the app', () => {
  it.each([401, 403, 404, 400])('does not park a logout that is refused with %d', async (status) => {
    await deliver([{ status }, { status }, { status }, { status }], true);
    expect(new Set(typesOf())).toEqual(new Set(['logout-retrying']));
    expect(await logouts.parked(10, 0)).toEqual([]);
    const [job] = await storage.listLogouts('waiting', 10);
    expect(job).toMatchObject({ rejections: 0, cause: expect.stringContaining(String(status)) });
  });

  it('does not park a logout that its keys do not open, or that is older than its own giveUpAfterMs', async () => {
    const other = new LogoutRepository(storage, cipher('another key of a test'), HOUR);
    const endedAt = Date.now();
    for (const [repository, uid] of [
      [other, 'bob'],
      [logouts, 'carol'],
    ] as const) {
      const id = `${String(endedAt).padStart(15, '0')}-${uid}`;
      await repository.add({ id, uid, reason: 'destroyed', endedAt });
    }
    jest.spyOn(Date, 'now').mockReturnValue(Date.now() + 3 * HOUR);
    await deliver([{ status: 503 }], true);
    expect(await logouts.parked(10, 0)).toEqual([]);
    expect(events).not.toContainEqual(
      expect.objectContaining({ hint: expect.stringContaining('giveUpAfterMs') }),
    );
    const waiting = await storage.listLogouts('waiting', 10);
    expect(waiting.map(({ cause }) => cause).sort()).toEqual(['503', 'no answer', undefined]);
  });
});

describe('a service', () => {
  it('that requests a pause gets no logout from any process until then', async () => {
    const delivery = await deliver([{ status: 429, retryAfterMs: HOUR }]);
    expect(delivery.breaker.waitMs).toBeGreaterThan(HOUR / 2);
    const { claims, nextMs } = await storage.claim('logout', 1);
    expect(claims).toEqual([]);
    expect(nextMs).toBeGreaterThan(HOUR / 2);
  });

  it('that is away is reported once, and is not blamed for a failure on this side', async () => {
    const [away, local] = [{ reason: 'ECONNREFUSED' }, { reason: 'x', local: true }];
    const delivery = await deliver([local, away, away, away, away, away, away, local]);
    expect(typesOf().filter((type) => type !== 'logout-retrying')).toEqual(['service-down']);
    expect(delivery.breaker.isOpen).toBe(true);
  });
});

it('the result of an attempt is recorded although the pause cannot be stored', async () => {
  storage.pause = () => Promise.reject(new TypeError('gone'));
  await deliver([{ status: 429, retryAfterMs: HOUR }]);
  expect(typesOf()).toEqual(['fault', 'logout-retrying']);
});
