import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, it } from '@jest/globals';
import { inspect } from 'node:util';
import { memoryStorage, type Storage } from 'durable-jobs';
import { storageKinds, type StoragePlaces } from 'debate-space-fixtures/storage-engines.js';
import { Secret } from '../secrets/secret.js';
import {
  REPORTED_MS,
  REPORT_WITHIN_MS,
  SessionRegistry,
  type SessionDates,
  type UserSession,
} from './session-registry.js';

const HOUR = 3_600_000;
const LONG = HOUR;
const [NOW, FORMER] = [new Secret('the storage key of now'), new Secret('the storage key of before')];
const inHours = (hours: number): SessionDates => {
  const expiresAt = Date.now() + hours * HOUR;
  return { expiresAt, dueAt: expiresAt };
};
const sidsOf = (sessions: readonly UserSession[]): string[] => sessions.map(({ sid }) => sid);
const rowsOf = (storage: Storage) => storage.range('session:', 'session;', { limit: 10_000 });
const open = () =>
  memoryStorage().open({ namespace: 'app', families: ['session'], contained: () => undefined });

const alice = { sid: 's', uid: 'alice' };
const bob = { sid: 's', uid: 'bob' };

for (const kind of storageKinds) {
  kind.describe(`two instances that share their live sessions in ${kind.name}`, () => {
    const opened: Storage[] = [];
    let places: StoragePlaces;
    let movedOn: number;
    let storage: Storage;
    let one: SessionRegistry;
    let other: SessionRegistry;
    beforeAll(async () => {
      places = await kind.start();
    });
    beforeEach(async () => {
      movedOn = 0;
      const engine = places.place();
      const again = async (): Promise<Storage> => {
        const each = await engine.open({
          namespace: 'app',
          families: ['session'],
          contained: () => undefined,
        });
        const now = each.now.bind(each);
        each.now = () => now() + movedOn;
        opened.push(each);
        return each;
      };
      storage = await again();
      one = new SessionRegistry(storage, [NOW]);
      other = kind.isShared ? new SessionRegistry(await again(), [NOW]) : one;
    });
    afterEach(async () => {
      for (const each of opened.splice(0)) await each.close();
    });
    afterAll(() => places.stop());

    it('claim each expired session once, the longest ago first, and no live one', async () => {
      for (const hours of [-3, -5, 2, -4]) await one.put({ sid: `h${hours}`, uid: 'alice' }, inHours(hours));
      expect(sidsOf(await other.claimExpired(2, LONG))).toEqual(['h-5', 'h-4']);
      expect(await one.claimExpired(10, LONG)).toMatchObject([{ sid: 'h-3', uid: 'alice' }]);
      expect(await other.claimExpired(10, LONG)).toEqual([]);
      movedOn = LONG + 1;
      expect(sidsOf(await one.claimExpired(10, LONG))).toEqual(['h-5', 'h-4', 'h-3']);
    });

    it('claim a session again when a postponed look is due, unless it was used since', async () => {
      for (const sid of ['kept', 'used']) await one.put({ sid, uid: 'alice' }, inHours(-1));
      const claimed = await one.claimExpired(10, LONG);
      await other.put({ sid: 'used', uid: 'alice' }, inHours(9));
      for (const session of claimed) await one.postpone(session, Date.now() - 1);
      expect(sidsOf(await other.claimExpired(10, LONG))).toEqual(['kept']);
    });

    it('report an end once, also when both end the session at the same time', async () => {
      const sids = Array.from({ length: 50 }, (_, n) => `s-${n}`);
      for (const sid of sids) await one.put({ sid, uid: 'alice' }, inHours(1));
      const ends = sids.map((sid) =>
        Promise.all([one.end({ sid, uid: 'alice' }), other.end({ sid, uid: 'alice' })]),
      );
      for (const both of await Promise.all(ends)) expect(both.toSorted()).toEqual([false, true]);
    });

    it('report the end of a session that was never registered', async () => {
      expect([await one.end(alice), await other.end(alice)]).toEqual([true, false]);
    });

    it('do not report an end again for a minute after it was reported', async () => {
      await one.put(alice, inHours(1));
      await one.end(alice);
      await one.reported(alice);
      movedOn = REPORTED_MS / 2;
      expect(await other.end(alice)).toBe(false);
      movedOn = REPORTED_MS + 1;
      expect(await other.claimExpired(10, LONG)).toEqual([]);
      expect(await rowsOf(storage)).toEqual([]);
      expect(await other.end(alice)).toBe(true);
    });

    it('leave an end to the sweep when the process that ended the session does not report it', async () => {
      await one.put(alice, inHours(1));
      await one.end(alice);
      expect(await other.claimExpired(10, LONG)).toEqual([]);
      movedOn = REPORT_WITHIN_MS + 1;
      expect(await other.claimExpired(10, LONG)).toMatchObject([{ ...alice, endedAt: expect.any(Number) }]);
    });

    it('report the next end of a session that has its user again', async () => {
      for (const instance of [one, other, one]) {
        await instance.put(alice, inHours(1));
        expect(await instance.end(alice)).toBe(true);
        await instance.reported(alice);
      }
      // Another instance has seen the next login.
      expect(await other.end(alice, { aliveAt: other.now() + 1 })).toBe(true);
    });

    it('do not register a session again by a request that was under way when it ended', async () => {
      const aliveAt = one.now();
      await one.put(alice, inHours(1), { aliveAt, isNew: true });
      movedOn = 1;
      await other.end(alice);
      expect(await one.put(alice, inHours(1), { aliveAt, isNew: true })).toBe(false);
      await other.reported(alice);
      movedOn += REPORTED_MS + 1;
      expect(await one.put(alice, inHours(1), { aliveAt: one.now(), isNew: false })).toBe(false);
      movedOn += 2 * HOUR;
      expect(await one.claimExpired(10, LONG)).toEqual([]);
    });

    it('have a sweep look soon who has a session that ends for one user and is registered with another', async () => {
      await other.end(alice);
      await one.put(bob, inHours(1));
      expect(await other.end(alice)).toBe(false);
      expect(await one.claimExpired(10, LONG)).toMatchObject([{ ...bob, endedAt: undefined }]);
    });

    it('have only the last user of a session registered, and end it for each', async () => {
      await one.put(alice, inHours(-1));
      await other.put(bob, inHours(-1));
      expect(await one.claimExpired(10, LONG)).toMatchObject([bob]);
      expect([await one.end(alice), await other.end(bob)]).toEqual([true, true]);
    });

    it('end a claimed session only if nobody has used it since', async () => {
      await one.put(alice, inHours(-1));
      const [claimed] = await one.claimExpired(10, LONG);
      await other.put(alice, inHours(2));
      expect(await one.end(alice, { claim: claimed?.claim ?? 0 })).toBe(false);
      expect(await other.end(alice)).toBe(true);
    });

    it('forget a session that is removed', async () => {
      await one.put(alice, inHours(-1));
      await other.remove(alice);
      expect(await rowsOf(storage)).toEqual([]);
    });
  });
}

describe('the live sessions of an app', () => {
  let storage: Storage;
  let registry: SessionRegistry;
  beforeEach(async () => {
    storage = await open();
    registry = new SessionRegistry(storage, [NOW]);
    await registry.put(alice, inHours(-1));
  });

  it('are stored without a readable session id or uid', async () => {
    const session = { sid: 'a-session-id', uid: 'somebody' };
    await registry.put(session, inHours(1));
    await registry.end(session);
    expect(JSON.stringify(await rowsOf(storage))).not.toMatch(/somebody|a-session-id/);
    expect(inspect(registry, { depth: Infinity, showHidden: true })).not.toContain('the storage key');
  });

  it('are found under a former storage key, and move to the present one when they are used', async () => {
    const rotated = new SessionRegistry(storage, [FORMER, NOW]);
    const before = await rowsOf(storage);
    await rotated.put(alice, inHours(-1), { aliveAt: rotated.now(), isNew: false });
    const after = await rowsOf(storage);
    expect(after).toHaveLength(before.length);
    for (const [key] of before) expect(after.map(([each]) => each)).not.toContain(key);
    expect(await rotated.end(alice)).toBe(true);
    expect(await rotated.end(alice)).toBe(false);
  });

  it.each([
    { name: 'no key opens them', spoil: () => new SessionRegistry(storage, [FORMER]) },
    {
      name: 'their record is damaged',
      spoil: async () => {
        const [row] = await storage.range('session:s:', 'session:s;', { limit: 1 });
        await storage.commit(new Map(), new Map([[row?.[0] ?? '', '{']]));
        return registry;
      },
    },
  ])('are removed, and hold up no other, when $name', async ({ spoil }) => {
    const sweeping = await spoil();
    await sweeping.put({ sid: 'next', uid: 'bob' }, inHours(-0.5));
    expect(sidsOf(await sweeping.claimExpired(10, LONG))).toEqual(['next']);
    expect(await storage.range('session:s:', 'session:s;', { limit: 9 })).toHaveLength(1);
  });

  it('expire by the clock of the storage, not by that of a host', async () => {
    const now = storage.now.bind(storage);
    storage.now = () => now() - 4 * 365 * 24 * HOUR;
    await registry.put({ sid: 'soon', uid: 'bob' }, inHours(1));
    await registry.put({ sid: 'gone', uid: 'bob' }, inHours(-1));
    expect(sidsOf(await registry.claimExpired(10, LONG))).toEqual(['gone']);
  });
});
