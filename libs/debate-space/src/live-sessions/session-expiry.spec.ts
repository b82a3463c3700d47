import { beforeEach, describe, expect, it } from '@jest/globals';
import { memoryStorage, type Storage } from 'durable-jobs';
import { Containment } from '../async/containment.js';
import { Secret } from '../secrets/secret.js';
import type { SessionEnd, SessionRecord } from '../session-end/session-end.js';
import { sweepExpired } from './session-expiry.js';
import { REPORT_WITHIN_MS, SessionRegistry } from './session-registry.js';

const HOUR = 3_600_000;
const keys = [new Secret('a storage key of a test')];
const session = { sid: 'sid', uid: 'alice' };
const expired = (hoursAgo: number): SessionRecord => ({
  cookie: { expires: new Date(Date.now() - hoursAgo * HOUR) },
});

let storage: Storage;
let registry: SessionRegistry;
let reported: SessionEnd[];
/** The session as the store has it. */
let stored: { readonly uid: string; readonly session: SessionRecord }[];
let isDown: boolean;
/** Happens while a sweep reads the store. */
let comesBack: () => Promise<unknown>;
let movedOn: number;
beforeEach(async () => {
  const context = { namespace: 'app', families: ['session'], contained: () => undefined };
  storage = await memoryStorage().open(context);
  const now = storage.now.bind(storage);
  storage.now = () => now() + movedOn;
  [reported, stored, isDown, movedOn] = [[], [], false, 0];
  comesBack = () => Promise.resolve();
  registry = new SessionRegistry(storage, keys);
  const expiresAt = Date.now() - HOUR;
  await registry.put(session, { expiresAt, dueAt: expiresAt });
});

/** @returns who was reported by now */
async function sweep(instance = registry): Promise<readonly string[]> {
  await sweepExpired({
    registry: instance,
    recorder: { record: (end) => void reported.push(end) },
    containment: new Containment(() => undefined),
    signal: new AbortController().signal,
    find: async () => {
      await comesBack();
      if (isDown) throw new Error('the store is down');
      return stored;
    },
    sweepMs: 60_000,
  });
  return reported.map(({ uid }) => uid);
}

describe('a session that has expired', () => {
  it('is reported once by all instances', async () => {
    const other = new SessionRegistry(storage, keys);
    await Promise.all([sweep(), sweep(other)]);
    movedOn = 2 * HOUR;
    expect(await sweep()).toEqual(['alice']);
    expect(await storage.range('session:', 'session;', { limit: 9 })).toEqual([]);
  });

  it.each([
    { name: 'with the date that the registry knows', hoursAgo: 1, reports: ['alice'] },
    { name: 'with an earlier date, so that it was touched since', hoursAgo: 2, reports: [] },
    { name: 'with a date to come', hoursAgo: -1, reports: [] },
  ])('is reported to $reports when the store still returns it $name', async ({ hoursAgo, reports }) => {
    stored = [{ uid: 'alice', session: expired(hoursAgo) }];
    expect(await sweep()).toEqual(reports);
  });

  it('is looked at again, and reported when it is gone', async () => {
    stored = [{ uid: 'alice', session: expired(2) }];
    await sweep();
    stored = [];
    expect(await sweep()).toEqual([]);
    movedOn = HOUR;
    expect(await sweep()).toEqual(['alice']);
  });

  it('is not reported when its user comes back while the sweep looks for it', async () => {
    comesBack = () => registry.put(session, { expiresAt: Date.now() + HOUR, dueAt: Date.now() + HOUR });
    expect(await sweep()).toEqual([]);
  });

  it('is reported when the store has it with another user', async () => {
    stored = [{ uid: 'bob', session: expired(-1) }];
    expect(await sweep()).toEqual(['alice']);
  });

  it('is not reported while the store cannot be read, and is when it answers', async () => {
    isDown = true;
    expect(await sweep()).toEqual([]);
    isDown = false;
    movedOn = HOUR;
    expect(await sweep()).toEqual(['alice']);
  });
});

describe('a session that a process has ended', () => {
  it('is reported when that process has died, with the time of its end', async () => {
    await registry.end(session);
    movedOn = REPORT_WITHIN_MS + 1;
    expect(await sweep()).toEqual(['alice']);
    expect(reported[0]?.endedAt.getTime()).toBeLessThanOrEqual(Date.now() - REPORT_WITHIN_MS);
  });

  it('is not reported when that process has reported it', async () => {
    await registry.end(session);
    await registry.reported(session);
    movedOn = 2 * HOUR;
    expect(await sweep()).toEqual([]);
  });
});
