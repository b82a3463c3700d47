import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, it, jest } from '@jest/globals';
import { storageKinds, type StoragePlaces } from 'debate-space-fixtures/storage-engines.js';
import { inspect } from 'node:util';
import { memoryStorage, type Storage, type StorageEngine } from 'durable-jobs';
import { keyedHash } from '../secrets/uid-cipher.js';
import { Secret } from '../secrets/secret.js';
import { FORGOTTEN_AFTER_MS, REPORTED_MS, SessionRegistry, type UserSession } from './session-registry.js';

/** Two instances of one application. */
interface Instances {
  readonly registry: SessionRegistry;
  readonly other: SessionRegistry;
  /** What all of them have stored. */
  readonly storage: Storage;
  /** The same, as the other instance has opened it. */
  readonly otherStorage: Storage;
  /** Has the clock of the storage move on. */
  readonly pass: (ms: number) => void;
}

const HOUR = 60 * 60 * 1000;
const YEARS = 4 * 365 * 24 * HOUR;
const LONG = HOUR;
const inHours = (hours: number): number => Date.now() + hours * HOUR;
const [NOW, FORMER] = [new Secret('the storage key of now'), new Secret('the storage key of before')];
const recordKeyOf = (sid: string, key = NOW): string => `session:s:${keyedHash(key, 'session', sid)}`;
const sidsOf = (sessions: readonly UserSession[]): string[] => sessions.map(({ sid }) => sid);
const numbered = (count: number): string[] => Array.from({ length: count }, (_, n) => `s-${n}`);
const ended = async (instance: SessionRegistry, session: UserSession, leaseMs = LONG) => {
  const { isFirst, others } = await instance.end(session, { leaseMs, lastOnly: true });
  return { isFirst, others };
};
const liveRowsOf = async (storage: Storage) =>
  (await rowsOf(storage)).filter(([key]) => /^session:[su]:/.test(key));
const rowsOf = (storage: Storage) => storage.range('session:', 'session;', { limit: 10_000 });

/** It holds on every storage. `open` gives two instances that see the same, empty storage. */
function contract(open: () => Promise<Instances>): void {
  let registry: SessionRegistry;
  let other: SessionRegistry;
  let storage: Storage;
  let otherStorage: Storage;
  let pass: (ms: number) => void;
  beforeEach(async () => {
    ({ registry, other, storage, otherStorage, pass } = await open());
  });
  afterEach(() => {
    jest.restoreAllMocks();
  });
  const put = (sid: string, uid: string, hours: number) => registry.put({ sid, uid }, inHours(hours));
  const end = (instance: SessionRegistry, sid: string, uid: string) => ended(instance, { sid, uid });

  it('knows nothing at first', async () => {
    expect(await registry.claimExpired(10, LONG)).toEqual([]);
    expect(await end(registry, 's', 'alice')).toEqual({ isFirst: true, others: false });
  });

  it('gives out what has run out, as it was noted, and nothing that is alive', async () => {
    const gone = [
      { sid: 'Ab-_9.x/y+z=', uid: 'Zoë: {🦊}/007 "\\' },
      { sid: 'a\0b', uid: 'alice' },
    ];
    for (const [n, session] of gone.entries()) await registry.put(session, inHours(n - gone.length));
    await put('alive', 'alice', 1);
    const claimed = await other.claimExpired(10, LONG);
    expect(claimed).toEqual(gone.map((session) => expect.objectContaining(session) as unknown));
  });

  it('gives out no more than requested, the longest ago first', async () => {
    for (const hours of [-3, -5, -1, -4, -2]) await put(`h${hours}`, 'alice', hours);
    expect(await registry.claimExpired(0, LONG)).toEqual([]);
    expect(sidsOf(await registry.claimExpired(2, LONG))).toEqual(['h-5', 'h-4']);
    expect(sidsOf(await other.claimExpired(10, LONG))).toEqual(['h-3', 'h-2', 'h-1']);
  });

  it('gives out nothing twice while a claim lasts', async () => {
    await put('s', 'alice', -1);
    expect(sidsOf(await registry.claimExpired(10, LONG))).toEqual(['s']);
    expect(await registry.claimExpired(10, LONG)).toEqual([]);
    expect(await other.claimExpired(10, LONG)).toEqual([]);
  });

  it('gives out again what was claimed and not heard of, after what has waited longer', async () => {
    await put('died', 'alice', -2);
    await put('waiting', 'bob', -1);
    expect(sidsOf(await registry.claimExpired(1, 0))).toEqual(['died']);
    expect(sidsOf(await other.claimExpired(1, LONG))).toEqual(['waiting']);
    expect(sidsOf(await other.claimExpired(10, 0))).toEqual(['died']);
    expect(sidsOf(await registry.claimExpired(10, 0))).toEqual(['died']);
  });

  it('renews a session that is there with this user, and no other', async () => {
    await put('s', 'alice', -1);
    await other.renew({ sid: 's', uid: 'alice' }, inHours(1));
    expect(await registry.claimExpired(10, LONG)).toEqual([]);
    await registry.renew({ sid: 's', uid: 'bob' }, inHours(-1));
    await registry.renew({ sid: 'unknown', uid: 'alice' }, inHours(-1));
    expect(await registry.claimExpired(10, LONG)).toEqual([]);
    await end(registry, 's', 'alice');
    await other.renew({ sid: 's', uid: 'alice' }, inHours(1));
    expect(await end(other, 's', 'alice')).toEqual({ isFirst: false, others: false });
  });

  it('ends the claim of a session that is alive after all', async () => {
    await put('s', 'alice', -1);
    await registry.claimExpired(10, 0);
    await put('s', 'alice', 1);
    expect(await other.claimExpired(10, LONG)).toEqual([]);
    expect(await end(other, 'another', 'alice')).toEqual({ isFirst: true, others: true });
    await put('s', 'alice', -1);
    await registry.claimExpired(10, LONG);
    await put('s', 'alice', -1);
    expect(sidsOf(await other.claimExpired(10, LONG))).toEqual(['s']);
  });

  it('goes by the time that was noted last, later or earlier', async () => {
    await put('first', 'carol', -2);
    await put('later', 'alice', -1);
    await put('later', 'alice', 1);
    await put('earlier', 'bob', 1);
    await put('earlier', 'bob', -1);
    expect(sidsOf(await registry.claimExpired(10, LONG))).toEqual(['first', 'earlier']);
    expect(await end(registry, 'x', 'alice')).toEqual({ isFirst: true, others: true });
    expect(await end(registry, 'x', 'bob')).toEqual({ isFirst: true, others: false });
  });

  it.each([Infinity, 1e13])(
    'does not give out what never runs out, or in centuries: %d',
    async (expiresAt) => {
      await registry.put({ sid: 's', uid: 'alice' }, expiresAt);
      expect(await registry.claimExpired(10, LONG)).toEqual([]);
      expect(await end(registry, 'another', 'alice')).toEqual({ isFirst: true, others: true });
      expect(await end(registry, 's', 'alice')).toEqual({ isFirst: true, others: false });
    },
  );

  it('ends a session once', async () => {
    await put('s', 'alice', 1);
    expect(await end(registry, 's', 'alice')).toEqual({ isFirst: true, others: false });
    expect(await end(registry, 's', 'alice')).toEqual({ isFirst: false, others: false });
    expect(await end(other, 's', 'alice')).toEqual({ isFirst: false, others: false });
  });

  it('ends again what was noted again', async () => {
    for (const instance of [registry, registry, other]) {
      await put('s', 'alice', 1);
      expect(await end(instance, 's', 'alice')).toEqual({ isFirst: true, others: false });
    }
  });

  it('ends what is claimed, once, and gives it out no more', async () => {
    await put('s', 'alice', -1);
    await registry.claimExpired(10, 0);
    expect(await end(other, 's', 'alice')).toEqual({ isFirst: true, others: false });
    expect(await end(registry, 's', 'alice')).toEqual({ isFirst: false, others: false });
    expect(await registry.claimExpired(10, LONG)).toEqual([]);
  });

  it('knows the other sessions of the user, and of nobody else', async () => {
    for (const uid of ['a', 'a:b', 'ab', 'a b', '{a}', 'A', 'ä']) await put(`of ${uid}`, uid, 1);
    await put('second', 'a', 2);
    expect(await end(registry, 'second', 'a')).toEqual({ isFirst: true, others: true });
    expect(await end(registry, 'of a', 'a')).toEqual({ isFirst: true, others: false });
    expect(await end(registry, 'of ab', 'ab')).toEqual({ isFirst: true, others: false });
  });

  it('counts no other session that has run out, claimed or not', async () => {
    await put('claimed', 'alice', -2);
    await registry.claimExpired(10, LONG);
    await put('unclaimed', 'alice', -1);
    await put('alive', 'alice', 1);
    expect(await end(registry, 'alive', 'alice')).toEqual({ isFirst: true, others: false });
  });

  it('leaves a session to the user it belongs to', async () => {
    await put('s', 'alice', 1);
    expect(await end(registry, 's', 'bob')).toEqual({ isFirst: true, others: false });
    expect(await end(registry, 's', 'alice')).toEqual({ isFirst: true, others: false });
  });

  it('moves a session from one user to another', async () => {
    await put('s', 'alice', 1);
    await put('s', 'bob', 1);
    expect(await end(registry, 's', 'alice')).toEqual({ isFirst: true, others: false });
    expect(await end(registry, 'x', 'bob')).toEqual({ isFirst: true, others: true });
    expect(await end(registry, 's', 'bob')).toEqual({ isFirst: true, others: false });
  });

  it('forgets what ran out long ago and nobody claimed, and counts it no more', async () => {
    await put('claimed', 'alice', -1);
    await put('unclaimed', 'alice', -0.5);
    await put('never', 'bob', Infinity);
    pass(FORGOTTEN_AFTER_MS - 0.75 * HOUR);
    expect(sidsOf(await other.claimExpired(1, 0))).toEqual(['claimed']);
    await put('lately', 'bob', -1);
    expect(sidsOf(await registry.claimExpired(10, 0))).toEqual(['unclaimed', 'lately', 'claimed']);
    pass(FORGOTTEN_AFTER_MS + HOUR);
    await put('latest', 'bob', -1);
    expect(sidsOf(await registry.claimExpired(10, LONG))).toEqual(['latest']);
    expect(await end(registry, 'unclaimed', 'alice')).toEqual({ isFirst: true, others: false });
    expect(await end(registry, 'latest', 'bob')).toEqual({ isFirst: true, others: true });
  });

  it('keeps nothing of what has ended, a minute after it was reported', async () => {
    await put('a', 'alice', 1);
    await put('a', 'bob', -1);
    await registry.claimExpired(10, HOUR);
    await other.renew({ sid: 'a', uid: 'bob' }, inHours(2));
    await end(registry, 'a', 'bob');
    await registry.reported({ sid: 'a', uid: 'bob' });
    await put('old', 'carol', -1);
    pass(FORGOTTEN_AFTER_MS);
    await put('new', 'dora', 1);
    expect(await end(other, 'new', 'dora')).toEqual({ isFirst: true, others: false });
    await other.reported({ sid: 'new', uid: 'dora' });
    expect(await rowsOf(storage)).toHaveLength(2);
    pass(REPORTED_MS);
    await registry.claimExpired(10, LONG);
    expect(await rowsOf(storage)).toEqual([]);
  });

  describe('the end of a session', () => {
    const LEASE = 30_000;
    const session = { sid: 's', uid: 'alice' };

    it('is reported by the first of all callers, until a minute after it was reported', async () => {
      await put('s', 'alice', 1);
      expect(await end(registry, 's', 'alice')).toMatchObject({ isFirst: true });
      expect(await end(other, 's', 'alice')).toMatchObject({ isFirst: false });
      await registry.reported(session);
      pass(REPORTED_MS - 5_000);
      expect(await end(other, 's', 'alice')).toMatchObject({ isFirst: false });
      pass(5_000);
      expect(await end(other, 's', 'alice')).toMatchObject({ isFirst: true });
    });

    it('is given to a sweep, once, if nobody has reported it when its lease is over', async () => {
      await put('s', 'alice', 1);
      await registry.end(session, { leaseMs: LEASE });
      expect(await other.claimExpired(10, LONG)).toEqual([]);
      const endedBy = registry.now();
      pass(LEASE);
      const [claimed, ...more] = await other.claimExpired(10, LONG);
      expect([claimed, more]).toMatchObject([session, []]);
      expect(claimed?.endedAt).toBeLessThanOrEqual(endedBy);
      await other.reported(session);
      pass(LONG + HOUR);
      expect(await registry.claimExpired(10, LONG)).toEqual([]);
    });

    it('is given to no sweep once it is reported, or when it does not count', async () => {
      for (const sid of ['one', 'two']) await put(sid, 'alice', 24);
      expect(await end(registry, 'one', 'alice')).toEqual({ isFirst: true, others: true });
      expect(await end(registry, 'two', 'alice')).toEqual({ isFirst: true, others: false });
      await registry.reported({ sid: 'two', uid: 'alice' });
      pass(LONG);
      expect(await other.claimExpired(10, LONG)).toEqual([]);
    });

    it('is taken over by the next caller when its lease is over', async () => {
      await registry.end(session, { leaseMs: LEASE });
      pass(LEASE);
      expect(await end(other, 's', 'alice')).toMatchObject({ isFirst: true });
    });

    it('is forgotten when the session is registered again', async () => {
      for (const instance of [registry, other, registry]) {
        await put('s', 'alice', 1);
        expect(await end(instance, 's', 'alice')).toMatchObject({ isFirst: true });
        await instance.reported(session);
      }
      await put('s', 'alice', 1);
      await other.reported(session); // late
      expect(await end(registry, 's', 'alice')).toMatchObject({ isFirst: true });
    });

    it('is known for its user, whoever gets the session next', async () => {
      await put('s', 'alice', 1);
      await end(registry, 's', 'alice');
      await put('s', 'bob', 1);
      expect(await end(other, 's', 'alice')).toMatchObject({ isFirst: false });
      expect(await end(other, 's', 'bob')).toEqual({ isFirst: true, others: false });
    });

    it('says who else has the session by now', async () => {
      await put('s', 'bob', 1);
      expect(await other.end(session, { leaseMs: LEASE })).toMatchObject({
        isFirst: true,
        registered: 'bob',
      });
    });

    it('of before is not the end of a session that was alive since', async () => {
      await end(registry, 's', 'alice');
      pass(1_000);
      const aliveAt = other.now();
      const options = { leaseMs: LEASE, aliveAt: aliveAt - 5_000 };
      expect(await other.end(session, options)).toMatchObject({ isFirst: false });
      expect(await other.end(session, { ...options, aliveAt })).toMatchObject({ isFirst: true });
    });

    it('by a sweep counts only if the session is as the sweep has found it', async () => {
      await put('s', 'alice', -1);
      const [claimed] = await registry.claimExpired(1, LONG);
      const { claim = 0 } = claimed ?? {};
      await other.renew(session, inHours(2));
      expect(await registry.end(session, { leaseMs: LEASE, claim })).toMatchObject({ isFirst: false });
      if (claimed) await registry.postpone(claimed, inHours(-1));
      expect(await other.claimExpired(1, LONG)).toEqual([]);
      expect(await end(other, 's', 'alice')).toMatchObject({ isFirst: true });
    });

    it('is known after the key was rotated', async () => {
      const former = new SessionRegistry(storage, [FORMER]);
      await former.end(session, { leaseMs: LEASE });
      const rotated = new SessionRegistry(otherStorage, [NOW, FORMER]);
      expect(await ended(rotated, session)).toMatchObject({ isFirst: false });
      await rotated.put(session, inHours(1));
      expect(await ended(rotated, session)).toMatchObject({ isFirst: true });
    });
  });

  describe('the user of a session, changed by two instances at the same time,', () => {
    const bobs = { sid: 's', uid: 'bob' };

    it('is a conflict when the registry has another user than the caller believes', async () => {
      await put('s', 'alice', 1);
      await put('s', 'carol', 1);
      expect(await other.put(bobs, inHours(1), { believedUid: 'alice' })).toEqual({ registered: 'carol' });
      expect(await other.put(bobs, inHours(1), { believedUid: null })).toEqual({ registered: 'carol' });
      expect(await end(registry, 's', 'carol')).toEqual({ isFirst: true, others: false });
    });

    it('is a conflict when another instance has ended the session that the caller believes in', async () => {
      await put('s', 'alice', 1);
      await end(registry, 's', 'alice');
      expect(await other.put(bobs, inHours(1), { believedUid: 'alice' })).toEqual({ registered: undefined });
      expect(await liveRowsOf(storage)).toEqual([]);
    });

    it('is no conflict when the registry has the user that the caller believes in, or none', async () => {
      expect(await registry.put(bobs, inHours(1), { believedUid: 'alice' })).toBeUndefined();
      await put('s', 'alice', 1);
      expect(await other.put(bobs, inHours(1), { believedUid: 'alice' })).toBeUndefined();
      expect(await end(registry, 's', 'bob')).toEqual({ isFirst: true, others: false });
    });
  });

  it('keeps its calls in order: a logout counts the login before it', async () => {
    await put('first', 'alice', 1);
    const noted = put('second', 'alice', 1);
    expect(await end(registry, 'first', 'alice')).toEqual({ isFirst: true, others: true });
    await noted;
    const moved = [put('second', 'alice', 1), put('second', 'bob', 1), put('second', 'carol', 1)];
    expect(await end(registry, 'second', 'carol')).toEqual({ isFirst: true, others: false });
    await Promise.all(moved);
    expect(await liveRowsOf(storage)).toEqual([]);
  });

  it.each([-YEARS, -2 * HOUR, 2 * HOUR, YEARS])(
    'works alike on a host whose clock is %d ms off, or is set',
    async (offMs) => {
      const now = Date.now();
      await put('before', 'bob', 1);
      jest.spyOn(Date, 'now').mockReturnValue(now + offMs);
      await put('alive', 'alice', 1);
      await put('gone', 'alice', -1);
      expect(await end(registry, 'x', 'bob')).toEqual({ isFirst: true, others: true });
      jest.restoreAllMocks();
      expect(sidsOf(await other.claimExpired(10, HOUR))).toEqual(['gone']);
      expect(await end(registry, 'gone', 'alice')).toEqual({ isFirst: true, others: true });
    },
  );

  describe('with a session that is registered under a former key', () => {
    let rotated: SessionRegistry;
    let otherRotated: SessionRegistry;
    beforeEach(() => {
      rotated = new SessionRegistry(storage, [NOW, FORMER]);
      otherRotated = new SessionRegistry(otherStorage, [NOW, FORMER]);
    });
    const putFormer = (sid: string, uid: string, hours: number) =>
      new SessionRegistry(storage, [FORMER]).put({ sid, uid }, inHours(hours));
    const endAny = (sid: string, uid: string) => ended(otherRotated, { sid, uid });
    const keys = async (): Promise<string[]> => (await rowsOf(storage)).map(([key]) => key);

    it('finds the session when it ends', async () => {
      await putFormer('s', 'alice', 1);
      expect(await endAny('s', 'alice')).toEqual({ isFirst: true, others: false });
      expect(await liveRowsOf(storage)).toEqual([]);
    });

    it('counts the session among the others, beside those under the present key', async () => {
      await putFormer('before', 'alice', 1);
      await put('now', 'alice', 1);
      await put('third', 'alice', 1);
      expect(await endAny('now', 'alice')).toEqual({ isFirst: true, others: true });
      expect(await endAny('before', 'alice')).toEqual({ isFirst: true, others: true });
      expect(await endAny('third', 'alice')).toEqual({ isFirst: true, others: false });
    });

    it('moves it to the present key when it is used again, and counts it once', async () => {
      for (const write of ['put', 'renew'] as const) {
        await putFormer('s', 'alice', -1);
        expect(await keys()).toContain(recordKeyOf('s', FORMER));
        await rotated[write]({ sid: 's', uid: 'alice' }, inHours(1));
        expect(await liveRowsOf(storage)).toHaveLength(2);
        expect(await keys()).toContain(recordKeyOf('s'));
        expect(await rotated.claimExpired(10, LONG)).toEqual([]);
        expect(await endAny('s', 'alice')).toEqual({ isFirst: true, others: false });
        expect(await liveRowsOf(storage)).toEqual([]);
      }
    });

    it('leaves it to its user', async () => {
      await putFormer('s', 'alice', 1);
      await rotated.renew({ sid: 's', uid: 'bob' }, inHours(1));
      expect(await endAny('s', 'bob')).toEqual({ isFirst: true, others: false });
      await rotated.put({ sid: 's', uid: 'bob' }, inHours(1));
      expect(await endAny('s', 'alice')).toEqual({ isFirst: true, others: false });
      expect(await endAny('s', 'bob')).toEqual({ isFirst: true, others: false });
    });

    it('does not bring back one that has ended', async () => {
      await putFormer('s', 'alice', 1);
      await endAny('s', 'alice');
      await rotated.renew({ sid: 's', uid: 'alice' }, inHours(1));
      expect(await liveRowsOf(storage)).toEqual([]);
    });

    it('answers only one caller that there are no others, when one of each key ends at the same time', async () => {
      for (const uid of numbered(50)) {
        await putFormer(`${uid}-before`, uid, 1);
        await put(`${uid}-now`, uid, 1);
      }
      const ends = await Promise.all(
        numbered(50).map((uid) =>
          Promise.all([ended(rotated, { sid: `${uid}-now`, uid }), endAny(`${uid}-before`, uid)]),
        ),
      );
      for (const both of ends) {
        expect(both.map(({ isFirst }) => isFirst)).toEqual([true, true]);
        expect(both.map(({ others }) => others).sort()).toEqual([false, true]);
      }
    });
  });

  it('goes on when a record is damaged or lost', async () => {
    for (const hash of ['damaged', 'lost', 'whole']) await put(hash, 'alice', -1);
    const changes = new Map([
      [recordKeyOf('damaged'), '{'],
      [recordKeyOf('lost'), undefined],
    ]);
    await storage.commit(new Map(), changes);
    await registry.renew({ sid: 'damaged', uid: 'alice' }, inHours(1));
    expect(await end(registry, 'damaged', 'alice')).toEqual({ isFirst: true, others: false });
    expect(sidsOf(await registry.claimExpired(10, LONG))).toEqual(['whole']);
    expect(await storage.get([recordKeyOf('damaged')])).toEqual([undefined]);
    await put('damaged', 'alice', -1);
    expect(sidsOf(await registry.claimExpired(10, LONG))).toEqual(['damaged']);
  });

  it('tells only one of all callers that end a session at the same time to report it', async () => {
    const names = numbered(200);
    for (const name of names) await put(name, 'alice', 1);
    const both = names.flatMap((name) => [end(registry, name, 'alice'), end(other, name, 'alice')]);
    const ends = await Promise.all(both);
    expect(ends.filter(({ isFirst }) => isFirst)).toHaveLength(200);
    for (const n of names.keys()) {
      expect(ends.slice(2 * n, 2 * n + 2).filter(({ isFirst }) => isFirst)).toHaveLength(1);
    }
  });

  it('answers only one caller that there are no others, when all sessions of a user end at the same time', async () => {
    const users = numbered(100);
    for (const uid of users) for (const side of ['left', 'right']) await put(`${uid}-${side}`, uid, 1);
    const ends = await Promise.all(
      users.map((uid) => Promise.all([end(registry, `${uid}-left`, uid), end(other, `${uid}-right`, uid)])),
    );
    for (const [left, right] of ends) {
      expect([left.isFirst, right.isFirst]).toEqual([true, true]);
      expect([left.others, right.others].sort()).toEqual([false, true]);
    }
  });

  it('gives nothing out twice, also to claims at the same time', async () => {
    for (const name of numbered(200)) await put(name, 'alice', -1);
    const claims = Array.from({ length: 40 }, async () => [
      await registry.claimExpired(3, LONG),
      await other.claimExpired(3, LONG),
    ]);
    const claimed = sidsOf((await Promise.all(claims)).flat(2));
    // A claim that met another may have come away with less.
    for (let rest = ['']; rest.length > 0; claimed.push(...rest))
      rest = sidsOf(await registry.claimExpired(200, LONG));
    expect(claimed.sort()).toEqual(numbered(200).sort());
  });
}

for (const kind of storageKinds) {
  kind.describe(`the session registry in ${kind.name}`, () => {
    const opened: Storage[] = [];
    let places: StoragePlaces;
    let movedOn: number;
    beforeAll(async () => {
      places = await kind.start();
    });
    afterEach(async () => {
      for (const storage of opened.splice(0)) await storage.close();
    });
    afterAll(() => places.stop());

    async function open(engine: StorageEngine, namespace = 'app'): Promise<Storage> {
      const storage = await engine.open({
        namespace,
        families: ['session'],
        contained: (work) => {
          work();
        },
      });
      const now = storage.now.bind(storage);
      storage.now = () => now() + movedOn;
      opened.push(storage);
      return storage;
    }

    async function twice(): Promise<Instances> {
      movedOn = 0;
      const engine = places.place();
      const storage = await open(engine);
      const another = kind.isShared ? await open(engine) : storage;
      const pass = (ms: number): void => {
        movedOn += ms;
      };
      const [registry, other] = [storage, another].map((each) => new SessionRegistry(each, [NOW])) as [
        SessionRegistry,
        SessionRegistry,
      ];
      return { registry, other, storage, otherStorage: another, pass };
    }

    contract(twice);

    it('keeps applications apart', async () => {
      const engine = places.place();
      const one = new SessionRegistry(await open(engine, 'one'), [NOW]);
      const two = new SessionRegistry(await open(engine, 'one-two'), [NOW]);
      await one.put({ sid: 's', uid: 'alice' }, inHours(-1));
      expect(await two.claimExpired(10, LONG)).toEqual([]);
      expect(await ended(two, { sid: 's', uid: 'alice' })).toEqual({ isFirst: true, others: false });
      expect(await ended(one, { sid: 's', uid: 'alice' })).toEqual({ isFirst: true, others: false });
    });
  });
}

describe('the session registry', () => {
  const calls: { readonly method: string; readonly size: number }[] = [];
  let storage: Storage;
  let now: number;
  beforeEach(async () => {
    storage = await memoryStorage().open({
      namespace: 'app',
      families: ['session'],
      contained: () => undefined,
    });
    now = storage.now();
    storage.now = () => now;
    const get = storage.get.bind(storage);
    const range = storage.range.bind(storage);
    const commit = storage.commit.bind(storage);
    calls.length = 0;
    storage.get = (keys) => {
      calls.push({ method: 'get', size: keys.length });
      return get(keys);
    };
    storage.range = (from, to, options) => {
      calls.push({ method: 'range', size: options.limit });
      return range(from, to, options);
    };
    storage.commit = (checks, changes) => {
      calls.push({ method: 'commit', size: changes.size });
      return commit(checks, changes);
    };
  });

  it('forgets many sessions in bounded steps, the last within some logins', async () => {
    const registry = new SessionRegistry(storage, [NOW]);
    for (const sid of numbered(1_000)) await registry.put({ sid, uid: 'alice' }, inHours(-1));
    now += FORGOTTEN_AFTER_MS;
    calls.length = 0;
    for (let login = 0; login < 12; login += 1)
      await registry.put({ sid: 'alive', uid: `user-${login}` }, Infinity);
    expect(Math.max(...calls.map(({ size }) => size))).toBeLessThanOrEqual(300);
    expect(await rowsOf(storage)).toHaveLength(3);
  });

  it('asks no storage for what is old more than once a minute', async () => {
    const registry = new SessionRegistry(storage, [NOW]);
    for (const sid of numbered(100)) await registry.put({ sid, uid: 'alice' }, inHours(1));
    expect(calls.filter(({ method }) => method === 'range')).toHaveLength(2);
    expect(calls).toHaveLength(202);
  });

  it('reads no more of a user with many sessions', async () => {
    const registry = new SessionRegistry(storage, [NOW]);
    for (const sid of numbered(1_000)) await registry.put({ sid, uid: 'alice' }, inHours(1));
    calls.length = 0;
    expect(await ended(registry, { sid: 's-7', uid: 'alice' })).toEqual({ isFirst: true, others: true });
    expect(calls).toEqual([
      { method: 'get', size: 2 },
      { method: 'range', size: 2 },
      { method: 'commit', size: 5 },
    ]);
  });

  it('rejects with what the storage rejects with', async () => {
    const down = new Error('the storage is down');
    storage.get = () => Promise.reject(down);
    storage.range = () => {
      throw down;
    };
    const registry = new SessionRegistry(storage, [NOW]);
    const session = { sid: 'a', uid: 'alice' };
    await expect(registry.put(session, 0)).rejects.toBe(down);
    await expect(registry.renew(session, 0)).rejects.toBe(down);
    await expect(registry.remove(session)).rejects.toBe(down);
    await expect(registry.end(session, { leaseMs: 1 })).rejects.toBe(down);
    await expect(registry.reported(session)).rejects.toBe(down);
    await expect(registry.claimExpired(1, 1)).rejects.toBe(down);
  });

  describe('what it stores', () => {
    const [alice, bob] = [
      { sid: 'a-session', uid: 'alice' },
      { sid: 'another', uid: 'bob' },
    ];
    const recordOf = async (sid: string): Promise<Record<string, unknown>> => {
      const [text = ''] = await storage.get([recordKeyOf(sid)]);
      return JSON.parse(text) as Record<string, unknown>;
    };
    const write = async (sid: string, changes: object): Promise<void> => {
      const text = JSON.stringify({ ...(await recordOf(sid)), ...changes });
      await storage.commit(new Map(), new Map([[recordKeyOf(sid), text]]));
    };
    let registry: SessionRegistry;
    beforeEach(async () => {
      registry = new SessionRegistry(storage, [NOW]);
      for (const session of [alice, bob]) await registry.put(session, inHours(-1));
    });

    it('shows neither sessions nor users, and tells them apart', async () => {
      await registry.put({ sid: 'alice', uid: 'alice' }, inHours(-1));
      const [one, other] = [await recordOf('alice'), await recordOf('another')];
      expect(new Set([one.hash, one.uidHash, other.hash, other.uidHash]).size).toBe(4);
      expect(JSON.stringify(await rowsOf(storage))).not.toMatch(/alice|bob|a-session|another/);
    });

    it('shows no key', () => {
      expect(inspect(registry, { depth: Infinity, showHidden: true })).not.toContain('the storage key');
    });

    it.each([
      { damage: 'empty', sealed: () => '' },
      { damage: 'cut at its end', sealed: (sealed: string) => sealed.slice(0, -2) },
      { damage: 'cut at its beginning', sealed: (sealed: string) => sealed.slice(1) },
    ])('is removed unreported when its ciphertext is $damage', async ({ sealed }) => {
      await write('a-session', { sealed: sealed(String((await recordOf('a-session')).sealed)) });
      expect(await registry.claimExpired(10, LONG)).toMatchObject([bob]);
      expect(await rowsOf(storage)).toHaveLength(3);
    });

    it('is removed unreported when its ciphertext is that of another record', async () => {
      await registry.put({ sid: 'b-session', uid: 'alice' }, inHours(1));
      await write('a-session', { sealed: (await recordOf('b-session')).sealed });
      await registry.put({ sid: 'another', uid: 'alice' }, inHours(1));
      const { sealed } = await recordOf('another');
      await registry.put(bob, inHours(-1));
      await write('another', { sealed });
      expect(await registry.claimExpired(10, LONG)).toEqual([]);
    });

    it('is removed unreported when no key opens it, and those behind it are claimed', async () => {
      for (const sid of numbered(5)) await registry.put({ sid, uid: 'alice' }, inHours(-2));
      const next = new SessionRegistry(storage, [FORMER]);
      await next.put({ sid: 'later', uid: 'carol' }, inHours(-0.5));
      expect(await next.claimExpired(3, LONG)).toMatchObject([{ sid: 'later', uid: 'carol' }]);
      expect(await rowsOf(storage)).toHaveLength(3);
    });

    it('is found and opened by all keys', async () => {
      const rotated = new SessionRegistry(storage, [FORMER, NOW]);
      expect(sidsOf(await rotated.claimExpired(10, LONG)).toSorted()).toEqual(['a-session', 'another']);
      expect(await ended(rotated, alice)).toEqual({ isFirst: true, others: false });
    });
  });
});
