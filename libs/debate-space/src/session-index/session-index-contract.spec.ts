import { afterAll, beforeAll, beforeEach, describe, expect, it } from '@jest/globals';
import { Redis } from 'ioredis';
import { redisClient, redisServer, startRedis, type RunningRedis } from '../../../../test/support/redis.js';
import { memorySessionIndex } from './memory-session-index.js';
import { redisSessionIndex } from './redis-session-index.js';
import {
  FORGOTTEN_AFTER_MS,
  type IndexedSession,
  type SessionIndex,
  type SessionIndexFactory,
} from './session-index.js';

/** Two instances of one application. */
type Instances = readonly [SessionIndex, SessionIndex];

const HOUR = 60 * 60 * 1000;
const LONG = HOUR;
const inHours = (hours: number): number => Date.now() + hours * HOUR;
const session = (hash: string, uidHash: string, expiresAt: number): IndexedSession => ({
  hash,
  uidHash,
  expiresAt,
  sealed: `sealed ${hash}`,
});
const hashes = (sessions: readonly IndexedSession[]): string[] => sessions.map(({ hash }) => hash);
const numbered = (count: number): string[] => Array.from({ length: count }, (_, n) => `s-${n}`);

/** Every engine keeps this contract. `open` gives two instances that see the same, empty index. */
function contract(open: () => Promise<Instances>): void {
  let index: SessionIndex;
  let other: SessionIndex;
  beforeEach(async () => {
    [index, other] = await open();
  });
  const put = (hash: string, uid: string, hours: number) => index.put(session(hash, uid, inHours(hours)));

  it('knows nothing at first', async () => {
    expect(await index.claimExpired(10, LONG)).toEqual([]);
    expect(await index.remove('s', 'alice')).toEqual({ removed: false, others: false });
  });

  it('gives out what has run out, as it was noted, and nothing that is alive', async () => {
    const gone = session('s', 'Zoë: {🦊}/007 "\\', inHours(-1));
    await index.put(gone);
    await put('alive', 'alice', 1);
    expect(await other.claimExpired(10, LONG)).toEqual([gone]);
  });

  it('gives out no more than asked for, the longest ago first', async () => {
    for (const hours of [-3, -5, -1, -4, -2]) await put(`h${hours}`, 'alice', hours);
    expect(await index.claimExpired(0, LONG)).toEqual([]);
    expect(hashes(await index.claimExpired(2, LONG))).toEqual(['h-5', 'h-4']);
    expect(hashes(await other.claimExpired(10, LONG))).toEqual(['h-3', 'h-2', 'h-1']);
  });

  it('gives out nothing twice while a claim lasts', async () => {
    await put('s', 'alice', -1);
    expect(hashes(await index.claimExpired(10, LONG))).toEqual(['s']);
    expect(await index.claimExpired(10, LONG)).toEqual([]);
    expect(await other.claimExpired(10, LONG)).toEqual([]);
  });

  it('gives out again what was claimed and not heard of, after what has waited longer', async () => {
    await put('died', 'alice', -2);
    await put('waiting', 'bob', -1);
    expect(hashes(await index.claimExpired(1, 0))).toEqual(['died']);
    expect(hashes(await other.claimExpired(1, LONG))).toEqual(['waiting']);
    expect(hashes(await other.claimExpired(10, 0))).toEqual(['died']);
    expect(hashes(await index.claimExpired(10, 0))).toEqual(['died']);
  });

  it('renews a session that is there with this user, and no other', async () => {
    await put('s', 'alice', -1);
    await other.renew(session('s', 'alice', inHours(1)));
    expect(await index.claimExpired(10, LONG)).toEqual([]);
    await index.renew(session('s', 'bob', inHours(-1)));
    await index.renew(session('unknown', 'alice', inHours(-1)));
    expect(await index.claimExpired(10, LONG)).toEqual([]);
    await index.remove('s', 'alice');
    await other.renew(session('s', 'alice', inHours(1)));
    expect(await other.remove('s', 'alice')).toEqual({ removed: false, others: false });
  });

  it('ends the claim of a session that is alive after all', async () => {
    await put('s', 'alice', -1);
    await index.claimExpired(10, 0);
    await put('s', 'alice', 1);
    expect(await other.claimExpired(10, LONG)).toEqual([]);
    expect(await other.remove('another', 'alice')).toEqual({ removed: false, others: true });
    await put('s', 'alice', -1);
    await index.claimExpired(10, LONG);
    await put('s', 'alice', -1);
    expect(hashes(await other.claimExpired(10, LONG))).toEqual(['s']);
  });

  it('goes by the time that was noted last, later or earlier', async () => {
    await put('first', 'carol', -2);
    await put('later', 'alice', -1);
    await put('later', 'alice', 1);
    await put('earlier', 'bob', 1);
    await put('earlier', 'bob', -1);
    expect(hashes(await index.claimExpired(10, LONG))).toEqual(['first', 'earlier']);
    expect(await index.remove('x', 'alice')).toEqual({ removed: false, others: true });
    expect(await index.remove('x', 'bob')).toEqual({ removed: false, others: false });
  });

  it.each([Infinity, 1e13])(
    'does not give out what runs out never, or in centuries: %d',
    async (expiresAt) => {
      await index.put(session('s', 'alice', expiresAt));
      expect(await index.claimExpired(10, LONG)).toEqual([]);
      expect(await index.remove('another', 'alice')).toEqual({ removed: false, others: true });
      expect(await index.remove('s', 'alice')).toEqual({ removed: true, others: false });
    },
  );

  it('removes once', async () => {
    await put('s', 'alice', 1);
    expect(await index.remove('s', 'alice')).toEqual({ removed: true, others: false });
    expect(await index.remove('s', 'alice')).toEqual({ removed: false, others: false });
    expect(await other.remove('s', 'alice')).toEqual({ removed: false, others: false });
  });

  it('removes again what was noted again', async () => {
    for (const instance of [index, index, other]) {
      await put('s', 'alice', 1);
      expect(await instance.remove('s', 'alice')).toEqual({ removed: true, others: false });
    }
  });

  it('removes what is claimed, once, and gives it out no more', async () => {
    await put('s', 'alice', -1);
    await index.claimExpired(10, 0);
    expect(await other.remove('s', 'alice')).toEqual({ removed: true, others: false });
    expect(await index.remove('s', 'alice')).toEqual({ removed: false, others: false });
    expect(await index.claimExpired(10, LONG)).toEqual([]);
  });

  it('knows the other sessions of the user, and of nobody else', async () => {
    for (const uid of ['a', 'a:b', 'ab', 'a b', '{a}', 'A', 'ä']) await put(`of ${uid}`, uid, 1);
    await put('second', 'a', 2);
    expect(await index.remove('second', 'a')).toEqual({ removed: true, others: true });
    expect(await index.remove('of a', 'a')).toEqual({ removed: true, others: false });
    expect(await index.remove('of ab', 'ab')).toEqual({ removed: true, others: false });
  });

  it('counts no other session that has run out, claimed or not', async () => {
    await put('claimed', 'alice', -2);
    await index.claimExpired(10, LONG);
    await put('unclaimed', 'alice', -1);
    await put('alive', 'alice', 1);
    expect(await index.remove('alive', 'alice')).toEqual({ removed: true, others: false });
  });

  it('leaves a session to the user it belongs to', async () => {
    await put('s', 'alice', 1);
    expect(await index.remove('s', 'bob')).toEqual({ removed: false, others: false });
    expect(await index.remove('s', 'alice')).toEqual({ removed: true, others: false });
  });

  it('moves a session from one user to another', async () => {
    await put('s', 'alice', 1);
    await put('s', 'bob', 1);
    expect(await index.remove('s', 'alice')).toEqual({ removed: false, others: false });
    expect(await index.remove('x', 'bob')).toEqual({ removed: false, others: true });
    expect(await index.remove('s', 'bob')).toEqual({ removed: true, others: false });
  });

  it('forgets what ran out long ago and nobody claimed', async () => {
    const longAgo = -FORGOTTEN_AFTER_MS / HOUR - 1;
    await put('claimed', 'alice', longAgo);
    expect(hashes(await index.claimExpired(10, 0))).toEqual(['claimed']);
    await put('unclaimed', 'alice', longAgo);
    await put('lately', 'bob', longAgo + 2);
    expect(hashes(await index.claimExpired(10, LONG))).toEqual(['lately', 'claimed']);
    expect(await index.remove('unclaimed', 'alice')).toEqual({ removed: false, others: false });
  });

  const remove = async (instance: SessionIndex, hash: string, uid: string) => instance.remove(hash, uid);

  it('tells one only, of all who remove a session at the same time', async () => {
    const names = numbered(200);
    for (const name of names) await put(name, 'alice', 1);
    const both = names.flatMap((name) => [remove(index, name, 'alice'), remove(other, name, 'alice')]);
    const removals = await Promise.all(both);
    expect(removals.filter(({ removed }) => removed)).toHaveLength(200);
    for (const n of names.keys()) {
      expect(removals.slice(2 * n, 2 * n + 2).filter(({ removed }) => removed)).toHaveLength(1);
    }
  });

  it('tells one only that there are no others, when all sessions of a user end at the same time', async () => {
    const users = numbered(100);
    for (const uid of users) for (const side of ['left', 'right']) await put(`${uid} ${side}`, uid, 1);
    const removals = await Promise.all(
      users.map((uid) =>
        Promise.all([remove(index, `${uid} left`, uid), remove(other, `${uid} right`, uid)]),
      ),
    );
    for (const [left, right] of removals) {
      expect([left.removed, right.removed]).toEqual([true, true]);
      expect([left.others, right.others].sort()).toEqual([false, true]);
    }
  });

  it('gives nothing out twice, to claims at the same time either', async () => {
    for (const name of numbered(200)) await put(name, 'alice', -1);
    const claims = Array.from({ length: 40 }, async () => [
      await index.claimExpired(3, LONG),
      await other.claimExpired(3, LONG),
    ]);
    const claimed = hashes((await Promise.all(claims)).flat(2));
    expect(claimed.sort()).toEqual(numbered(200).sort());
  });
}

const separate = async (factory: SessionIndexFactory): Promise<void> => {
  const [one, two] = [await factory.open('one'), await factory.open('one:two')];
  await one.put(session('s', 'alice', inHours(-1)));
  expect(await two.claimExpired(10, LONG)).toEqual([]);
  expect(await two.remove('s', 'alice')).toEqual({ removed: false, others: false });
  expect(await one.remove('s', 'alice')).toEqual({ removed: true, others: false });
};

describe('the session index in memory', () => {
  contract(async () => {
    const index = await memorySessionIndex().open('app');
    return [index, index];
  });

  it('keeps applications apart', () => separate(memorySessionIndex()));
});

redisServer.describe('the session index on Redis', () => {
  let redis: RunningRedis;
  let namespaces = 0;
  beforeAll(async () => {
    redis = await startRedis();
  });
  afterAll(() => redis.stop());

  const opened = async (factories: readonly SessionIndexFactory[]): Promise<Instances> => {
    const namespace = `app ${(namespaces += 1)}`;
    const [one, two] = await Promise.all(factories.map(async (factory) => factory.open(namespace)));
    if (!one || !two) throw new Error('two instances are needed');
    return [one, two];
  };

  describe('through node-redis', () => {
    const connect = () => redisClient(redis.url).connect();
    let clients: Awaited<ReturnType<typeof connect>>[];
    let factories: SessionIndexFactory[];
    beforeAll(async () => {
      clients = await Promise.all([connect(), connect()]);
      factories = clients.map((client) =>
        redisSessionIndex({ sendCommand: (...args) => client.sendCommand(args) }),
      );
    });
    afterAll(() => {
      for (const client of clients) client.destroy();
    });

    contract(() => opened(factories));
    it('keeps applications apart', () => Promise.all(factories.slice(1).map(separate)));
  });

  describe('through ioredis', () => {
    let clients: Redis[];
    let factories: SessionIndexFactory[];
    beforeAll(() => {
      clients = [new Redis(redis.url), new Redis(redis.url)];
      factories = clients.map((client) =>
        redisSessionIndex({ sendCommand: (command, ...args) => client.call(command, ...args) }),
      );
    });
    afterAll(() => {
      for (const client of clients) client.disconnect();
    });

    contract(() => opened(factories));
    it('keeps applications apart', () => Promise.all(factories.slice(1).map(separate)));
  });
});
