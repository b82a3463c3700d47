import { describe, expect, it } from '@jest/globals';
import { setTimeout as sleep } from 'node:timers/promises';
import { Containment, faultsTo } from '../async/containment.js';
import { StorageError } from '../errors.js';
import { Keyring } from '../secrets/keyring.js';
import { Secret } from '../secrets/secret.js';
import type { FoundSession } from '../session-end/session-end.js';
import { memoryStorage } from '../storage/memory-storage.js';
import type { NewLogout, Storage } from '../storage/storage.js';
import { LiveSessionTable } from './live-session-table.js';
import { sweepExpired } from './session-sweep.js';

const HOUR = 3_600_000;
const logout = (id: string): NewLogout => ({ id, subject: 'hash', sealed: 'sealed', details: 'destroyed' });

/** Two instances of an app on one storage; `stored` is what the host's store has. */
async function instances(keys: readonly [string[], string[]] = [['a storage key'], ['a storage key']]) {
  const { storage } = await memoryStorage().open('app');
  const faults: string[] = [];
  const stored = new Map<string, FoundSession>();
  const find = (sid: string): Promise<readonly FoundSession[]> =>
    Promise.resolve([stored.get(sid)].filter((found) => found !== undefined));
  const containment = new Containment(
    faultsTo((event) => event.type === 'fault' && faults.push(event.where)),
  );
  const [one, other] = keys.map(
    (some) =>
      new LiveSessionTable(
        storage,
        new Keyring(
          some.map((key) => new Secret(key)),
          'app',
        ),
        find,
        containment,
      ),
  ) as [LiveSessionTable, LiveSessionTable];
  const expired: string[] = [];
  const sweep = (sessions = other): Promise<void> =>
    sweepExpired({
      ...{ storage, sessions, containment, find, sweepMs: 1 },
      emit: ({ type }) => faults.push(type),
      recorder: {
        recordExpired: async (session, uid) => {
          if (await sessions.endExpired(session, logout(`expired ${uid}`))) expired.push(uid);
        },
      },
      signal: new AbortController().signal,
    });
  return { storage, one, other, stored, faults, expired, sweep, logouts: () => logoutsIn(storage) };
}

const logoutsIn = async (storage: Storage): Promise<readonly string[]> =>
  (await storage.listLogouts('waiting', 100)).map(({ id }) => id);
const inTheStore = (uid: string, expiresAt: number): FoundSession => ({
  uid,
  session: { cookie: { expires: new Date(expiresAt) } },
});

/** The two clocks of a process may drift apart by some milliseconds. */
const aMomentLater = (): Promise<void> => sleep(20);

describe('a live session', () => {
  it('is written when it is new, and again when its date has moved by a minute or to an earlier time', async () => {
    const { storage, one } = await instances();
    const dates: number[] = [];
    const seen = storage.registerSession.bind(storage);
    storage.registerSession = (session, expiresAt, ...rest) => {
      dates.push(expiresAt);
      return seen(session, expiresAt, ...rest);
    };
    const expiresAt = Date.now() + HOUR;
    const moved = [0, 10_000, 59_000, 61_000, 62_000, -1_800_000];
    for (const ms of moved) one.register('s', 'alice', expiresAt + ms);
    await one.idle();
    expect(dates.map((date) => date - expiresAt)).toEqual([0, 61_000, -1_800_000]);
  });

  it('is written once in a minute, also when there are more than ten thousand', async () => {
    const { storage, one } = await instances();
    let writes = 0;
    storage.registerSession = () => Promise.resolve((writes += 1) > 0);
    for (let round = 0; round < 3; round += 1)
      for (let n = 0; n < 20_000; n += 1) one.register(`s-${n}`, 'alice', Date.now() + HOUR);
    await one.idle();
    expect(writes).toBe(20_000);
  });

  it('keeps neither its id nor its user readable', async () => {
    const { storage, one } = await instances();
    one.register('the session id', 'alice', Date.now() - HOUR);
    await one.idle();
    const [due] = await storage.dueSessions(10);
    expect(JSON.stringify(due)).not.toMatch(/the session id|alice/);
    expect(due && one.open(due)).toEqual({ sid: 'the session id', uid: 'alice' });
  });

  it('is a fault while the storage is away, and is written with the next request', async () => {
    const { storage, one, faults } = await instances();
    const seen = storage.registerSession.bind(storage);
    storage.registerSession = () => Promise.reject(new StorageError('away'));
    one.register('s', 'alice', Date.now() - HOUR);
    await one.idle();
    expect(faults).toEqual(['live sessions']);
    storage.registerSession = seen;
    one.register('s', 'alice', Date.now() - HOUR);
    await one.idle();
    expect(await storage.dueSessions(10)).toHaveLength(1);
  });
});

describe('the end of a session', () => {
  it('is stored with its logout by the first of two instances that have seen it', async () => {
    const { one, other, logouts } = await instances();
    for (const each of [one, other]) each.register('s', 'alice', Date.now() + HOUR);
    await Promise.all([one.idle(), other.idle()]);
    await aMomentLater();
    expect(await one.end('s', 'alice', logout('first'))).toBe(true);
    expect(await other.end('s', 'alice', logout('second'))).toBe(false);
    expect(await logouts()).toEqual(['first']);
  });

  it('is stored each time when the user logs in again with the same session, at whichever instance', async () => {
    const { one, other, stored, logouts } = await instances();
    stored.set('s', inTheStore('alice', Date.now() + HOUR));
    for (const n of [1, 2, 3]) {
      one.register('s', 'alice', Date.now() + HOUR); // the login
      await aMomentLater();
      other.register('s', 'alice', Date.now() + HOUR);
      expect(await other.end('s', 'alice', logout(`end ${n}`))).toBe(true);
      await aMomentLater();
    }
    expect(await logouts()).toEqual(['end 1', 'end 2', 'end 3']);
  });

  it('is not undone by a request of another instance that was running, and is by the next login', async () => {
    const { storage, one, other, stored, expired, sweep } = await instances();
    await one.end('s', 'alice', logout('first'));
    other.register('s', 'alice', Date.now() - HOUR);
    await other.idle();
    await sweep();
    expect(expired).toEqual([]);
    stored.set('s', inTheStore('alice', Date.now() + HOUR));
    other.register('s', 'alice', Date.now() - HOUR);
    await other.idle();
    expect(await storage.dueSessions(10)).toHaveLength(1);
  });

  it('is forgotten when the same user logs in again with the same session', async () => {
    const { one, other, stored, logouts } = await instances();
    await one.end('s', 'alice', logout('first'));
    stored.set('s', inTheStore('alice', Date.now() + HOUR));
    other.register('s', 'alice', Date.now() + HOUR);
    await other.idle();
    expect(await one.end('s', 'alice', logout('second'))).toBe(true);
    expect(await logouts()).toEqual(['first', 'second']);
  });

  it('that the storage has missed is made up for when the storage answers again', async () => {
    const { storage, one, expired, sweep } = await instances();
    one.register('s', 'alice', Date.now() - HOUR);
    await one.idle();
    const gone = storage.endSession.bind(storage);
    storage.endSession = () => Promise.reject(new StorageError('away'));
    await expect(one.end('s', 'alice', logout('first'))).rejects.toThrow('away');
    storage.endSession = gone;
    one.register('another', 'bob', Date.now() + HOUR);
    await one.idle();
    await sweep();
    expect(expired).toEqual([]);
  });

  it('ends the row of a former storage key, too', async () => {
    const { one, other, expired, sweep } = await instances([['former'], ['current', 'former']]);
    one.register('s', 'alice', Date.now() - HOUR);
    await one.idle();
    await other.end('s', 'alice', logout('first'));
    await sweep();
    expect(expired).toEqual([]);
  });
});

describe('a sweep', () => {
  it('reports a session that has expired, once', async () => {
    const { one, other, expired, sweep, logouts } = await instances();
    one.register('s', 'alice', Date.now() - HOUR);
    await one.idle();
    await Promise.all([sweep(one), sweep(other)]);
    await sweep();
    expect(expired).toEqual(['alice']);
    expect(await logouts()).toEqual(['expired alice']);
  });

  it('leaves a session alone that is in the store of the host', async () => {
    const { one, stored, expired, sweep } = await instances();
    stored.set('s', inTheStore('alice', Date.now() + HOUR));
    one.register('s', 'alice', Date.now() - HOUR);
    await one.idle();
    await sweep();
    expect(expired).toEqual([]);
  });

  it('reports a session in which another user has logged in', async () => {
    const { one, stored, expired, sweep } = await instances();
    stored.set('s', inTheStore('bob', Date.now() + HOUR));
    one.register('s', 'alice', Date.now() - HOUR);
    await one.idle();
    await sweep();
    expect(expired).toEqual(['alice']);
  });

  it('forgets a session that no key opens', async () => {
    const { storage, one, expired, sweep } = await instances([['lost'], ['current']]);
    one.register('s', 'alice', Date.now() - HOUR);
    await one.idle();
    await sweep();
    expect(expired).toEqual([]);
    expect(await storage.dueSessions(10)).toEqual([]);
  });
});
