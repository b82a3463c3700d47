import { beforeEach, describe, expect, it } from '@jest/globals';
import { Containment } from '../async/containment.js';
import type { SessionEnd, SessionRecord } from '../session-end/session-end.js';
import { memoryStorage, type Storage } from 'durable-jobs';
import { Secret } from '../secrets/secret.js';
import { keyedHash } from '../secrets/uid-cipher.js';
import { sweepExpired } from './session-expiry.js';
import { REPORTED_MS, SessionRegistry } from './session-registry.js';

const HOUR = 3_600_000;
const MINUTE = 60_000;
const [A, B] = [new Secret('storage key A of a test'), new Secret('storage key B of a test')];
const session = { sid: 'sid', uid: 'alice' };
const hashUnder = (key: Secret): string => keyedHash(key, 'session', session.sid);

describe('a session that expires after the storage key was rotated', () => {
  let storage: Storage;
  let underA: SessionRegistry;
  let underB: SessionRegistry;
  let rotated: SessionRegistry;
  let reported: string[];
  let alive: SessionRecord | undefined;
  beforeEach(async () => {
    storage = await memoryStorage().open({
      namespace: 'app',
      families: ['session'],
      contained: () => undefined,
    });
    underA = new SessionRegistry(storage, [A]);
    underB = new SessionRegistry(storage, [B]);
    rotated = new SessionRegistry(storage, [B, A]);
    [reported, alive] = [[], undefined];
    await underA.put(session, Date.now() - HOUR);
  });

  async function sweep(registry: SessionRegistry): Promise<void> {
    const record = ({ uid }: SessionEnd): void => void reported.push(uid);
    const containment = new Containment((event) => {
      throw new Error(event.type);
    });
    const { signal } = new AbortController();
    const find = () => Promise.resolve(alive ? [{ uid: 'alice', session: alive }] : []);
    const indexing = { registry, lastOnly: true, sweepMs: 60_000 };
    await sweepExpired({ ...indexing, recorder: { record }, containment, signal, find });
  }
  const rows = async (): Promise<string> =>
    JSON.stringify(await storage.range('session:', 'session;', { limit: 99 }));

  it('is reported once, and nothing of it stays for longer than a minute', async () => {
    await sweep(rotated);
    await sweep(underA);
    expect(reported).toEqual(['alice']);
    const now = storage.now.bind(storage);
    storage.now = () => now() + REPORTED_MS;
    await sweep(rotated);
    expect(reported).toEqual(['alice']);
    expect(await rows()).toBe('[]');
  });

  it('is not reported while the user has a session under the new key', async () => {
    await rotated.put({ sid: 'another', uid: 'alice' }, Date.now() + HOUR);
    await sweep(rotated);
    expect(reported).toEqual([]);
  });

  it('moves to the new key when the store still has it', async () => {
    alive = { cookie: { expires: new Date(Date.now() + HOUR) } };
    await sweep(rotated);
    expect(reported).toEqual([]);
    expect(await rows()).toContain(hashUnder(B));
    expect(await rows()).not.toContain(hashUnder(A));
  });

  it('is not renewed when the store still has it, with the date that the registry knows', async () => {
    alive = { cookie: { expires: new Date(Date.now() - HOUR) } };
    await sweep(rotated);
    expect(reported).toEqual(['alice']);
  });

  it('is looked at again when the store has it with an earlier date: it was touched', async () => {
    alive = { cookie: { expires: new Date(Date.now() - 2 * HOUR) } };
    await sweep(rotated);
    expect(reported).toEqual([]);
    alive = undefined;
    await sweep(rotated);
    expect(reported).toEqual([]);
    const now = storage.now.bind(storage);
    storage.now = () => now() + HOUR;
    await sweep(rotated);
    expect(reported).toEqual(['alice']);
  });

  it('is reported once when its user logs out at the same time', async () => {
    const logOut = async (): Promise<void> => {
      const { isFirst } = await rotated.end(session, { leaseMs: MINUTE });
      if (isFirst) reported.push('alice');
    };
    await Promise.all([sweep(rotated), logOut(), sweep(new SessionRegistry(storage, [B, A]))]);
    expect(reported).toEqual(['alice']);
  });

  it.each([
    { name: 'is reported by one sweep when a process has ended it and died', isReported: false },
    { name: 'is reported by no sweep when a process has ended it and reported the end', isReported: true },
  ])('$name', async ({ isReported }) => {
    await rotated.end(session, { leaseMs: MINUTE });
    if (isReported) await rotated.reported(session);
    await sweep(rotated);
    expect(reported).toEqual([]);
    const now = storage.now.bind(storage);
    storage.now = () => now() + MINUTE;
    await Promise.all([sweep(rotated), sweep(new SessionRegistry(storage, [B, A]))]);
    expect(reported).toEqual(isReported ? [] : ['alice']);
  });

  it('is forgotten unreported when its key has been removed', async () => {
    await sweep(underB);
    expect(reported).toEqual([]);
    expect(await rows()).toBe('[]');
  });
});
