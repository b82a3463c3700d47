import { afterAll, afterEach, beforeAll, describe, expect, it } from '@jest/globals';
import { StorageError, type Storage, type StorageContext, type StorageWarning } from 'durable-jobs';
import { redisStorage, type RedisStorageOptions, type SendCommand } from 'durable-jobs/redis';
import { redisClient, redisServer, startRedis, type RunningRedis } from 'debate-space-fixtures/redis.js';
import {
  redisClients,
  redisClusterClients,
  type RedisConnection,
} from 'debate-space-fixtures/redis-clients.js';
import { startRedisCluster, type RunningRedisCluster } from 'debate-space-fixtures/redis-cluster.js';

const values = (...rows: [string, string | undefined][]) => new Map(rows);
const none = values();
const SILENT = new Promise<never>(() => undefined);

const closing: (() => unknown)[] = [];
afterEach(async () => {
  for (const close of closing.splice(0).reverse()) await close();
});

async function open(
  sendCommand: SendCommand,
  { namespace = 'app', ...options }: Partial<RedisStorageOptions & StorageContext> = {},
): Promise<Storage> {
  const storage = await redisStorage({ sendCommand, ...options }).open({
    namespace,
    families: ['row'],
    contained: (work) => {
      work();
    },
  });
  closing.push(() => storage.close());
  return storage;
}

async function connected(connecting: Promise<RedisConnection>): Promise<RedisConnection> {
  const connection = await connecting;
  closing.push(() => connection.close());
  return connection;
}

/** Every script once, and both answers of a commit. */
async function expectToWork(storage: Storage): Promise<void> {
  expect(await storage.commit(values(['row:a', undefined]), values(['row:a', 'é'], ['row:b', '']))).toBe(
    true,
  );
  expect(await storage.commit(values(['row:a', undefined]), values(['row:c', 'never']))).toBe(false);
  expect(await storage.get(['row:b', 'row:c', 'row:a'])).toEqual(['', undefined, 'é']);
  const rows = [
    ['row:a', 'é'],
    ['row:b', ''],
  ];
  expect(await storage.range('row:', 'row;', { limit: 9 })).toEqual(rows);
  expect(await storage.range('row:', 'row;', { limit: 9, reverse: true })).toEqual(rows.reverse());
  expect(await storage.count('row')).toBe(2);
  expect(Math.abs(storage.now() - Date.now())).toBeLessThan(1_000);
}

redisServer.describe('the storage in Redis', () => {
  let redis: RunningRedis;
  const admin = () => adminOf(redis);
  beforeAll(async () => {
    redis = await startRedis();
  });
  afterEach(async () => {
    await admin().then((client) => client.flushAll());
  });
  afterAll(async () => {
    await redis.stop();
  });
  const connect = async (): Promise<SendCommand> => {
    const [nodeRedis] = redisClients;
    return (await connected(nodeRedis.connect(redis))).sendCommand;
  };

  it.each(redisClients)('works through $name', async (client) => {
    await expectToWork(await open((await connected(client.connect(redis))).sendCommand));
  });

  it('works through a client that adds a prefix to every key', async () => {
    const { Redis } = await import('ioredis');
    const client = new Redis(redis.url, { keyPrefix: 'host:' });
    closing.push(() => client.quit());
    await expectToWork(await open((command = '', ...args) => client.call(command, ...args)));
    expect(await (await admin()).keys('host:durable-jobs:*')).toHaveLength(3);
  });

  it('writes no keys but its own, with one hash tag', async () => {
    const client = await admin();
    await client.set('durable-jobs:jobs', 'of somebody else');
    const storage = await open(await connect(), { prefix: 'host:jobs' });
    await expectToWork(storage);
    expect((await client.keys('*')).sort()).toEqual([
      'durable-jobs:jobs',
      expect.stringMatching(/^host:jobs:\{app\}:commits:[-0-9a-f]{36}$/),
      'host:jobs:{app}:names',
      'host:jobs:{app}:values',
    ]);
    expect(await client.get('durable-jobs:jobs')).toBe('of somebody else');
  });

  it('continues after Redis has forgotten the scripts', async () => {
    const storage = await open(await connect());
    await (await admin()).scriptFlush();
    await expectToWork(storage);
  });

  it('reads and writes 20,000 rows in one step', async () => {
    const storage = await open(await connect());
    const rows = Array.from({ length: 20_000 }, (_, n): [string, string] => [`row:${n + 10_000}`, `${n}`]);
    expect(await storage.commit(none, values(...rows))).toBe(true);
    expect(await storage.range('row:', 'row;', { limit: 20_000 })).toEqual(rows);
    expect(await storage.get(rows.map(([key]) => key))).toEqual(rows.map(([, value]) => value));
  });

  it('reports a commit as made when the client sends it again, as ioredis does after a lost reply', async () => {
    const send = await connect();
    const storage = await open(async (...args) => {
      await send(...args);
      return send(...args);
    });
    expect(await storage.commit(values(['row:a', undefined]), values(['row:a', '1']))).toBe(true);
    expect(await storage.commit(values(['row:a', '0']), values(['row:a', '2']))).toBe(false);
    expect(await storage.commit(values(['row:a', '1']), values(['row:a', '2']))).toBe(true);
  });

  it('does not make a commit a second time over a later change', async () => {
    const send = await connect();
    const sent: string[][] = [];
    const storage = await open((...args) => {
      sent.push(args);
      return send(...args);
    });
    await storage.commit(none, values(['row:a', 'first']));
    const again = sent.at(-1) ?? [];
    await storage.commit(none, values(['row:a', 'second']));
    await send(...again);
    expect(await storage.get(['row:a'])).toEqual(['second']);
  });

  it('forgets the commits of a process within an hour of its end', async () => {
    const storage = await open(await connect());
    await storage.commit(none, values(['row:a', '1']));
    const client = await admin();
    const [commits = ''] = await client.keys('*:commits:*');
    const ttl = await client.pTTL(commits);
    expect(ttl).toBeGreaterThan(3_500_000);
    expect(ttl).toBeLessThanOrEqual(3_600_000);
  });

  it('rejects in time when the client keeps commands back, and sends nothing more for them', async () => {
    const send = await connect();
    let isAway = false;
    let refuse: (error: Error) => void = () => undefined;
    const sent: string[] = [];
    const storage = await open(
      (...args) => {
        if (!isAway) return send(...args);
        sent.push(args[0] ?? '');
        return new Promise((_, reject) => {
          refuse = reject;
        });
      },
      { timeoutMs: 100 },
    );
    isAway = true;
    const commit = storage.commit(none, values(['row:of-a-user', 'a secret']));
    await expect(commit).rejects.toThrow(StorageError);
    await expect(commit).rejects.toThrow(/no answer.*hint:/);
    await expect(commit).rejects.not.toThrow(/secret|of-a-user/);
    refuse(new Error('NOSCRIPT No matching script.'));
    await new Promise(setImmediate); // now EVAL would have been sent
    isAway = false;
    expect(await storage.get(['row:of-a-user'])).toEqual([undefined]);
    expect(sent).toEqual(['EVALSHA']);
  });

  it('names the cause of a failure, and nothing of what was sent', async () => {
    const send = await connect();
    const storage = await open(send);
    const client = await admin();
    await client.configSet('maxmemory', '1');
    const commit = Promise.resolve(storage.commit(none, values(['row:of-a-user', 'a secret'])));
    const error = await commit.catch((caught: unknown) => caught as Error);
    await client.configSet('maxmemory', '0');
    expect(error).toBeInstanceOf(StorageError);
    expect(String(error)).toMatch(/Redis failed \(OOM: out of memory\)/);
    expect(JSON.stringify([error, String(error)])).not.toMatch(/secret|of-a-user/);
  });

  it('applies no part of a commit that the full memory refuses', async () => {
    const storage = await open(await connect());
    await storage.commit(none, values(['row:a', '1'], ['row:b', '1']));
    const client = await admin();
    await client.configSet('maxmemory', '1');
    const refused = Promise.resolve(storage.commit(none, values(['row:b', '2'], ['row:a', undefined])));
    await expect(refused).rejects.toThrow(StorageError);
    // Redis lets a script end that has begun to write.
    expect(await storage.commit(none, values(['row:a', undefined], ['row:b', '3']))).toBe(true);
    await client.configSet('maxmemory', '0');
    expect(await storage.range('row:', 'row;', { limit: 9 })).toEqual([['row:b', '3']]);
  });

  it.each<[string, SendCommand]>([
    ['returns nothing', () => Promise.resolve()],
    ['answers something else', () => Promise.resolve('OK')],
    ['is silent', () => SILENT],
    [
      'throws',
      () => {
        throw new Error('ClientClosedError');
      },
    ],
  ])('does not open through a client that %s', async (_, sendCommand) => {
    await expect(open(sendCommand, { timeoutMs: 50 })).rejects.toThrow(StorageError);
  });

  it('does not open on a replica', async () => {
    const replica = await startRedis({ replicaof: `127.0.0.1 ${redis.port}` });
    closing.push(() => replica.stop());
    const client = await adminOf(replica);
    await expect(open((...args) => client.sendCommand(args))).rejects.toThrow(/READONLY/);
  });

  it('does not open over keys of somebody else', async () => {
    await (await admin()).set('durable-jobs:{app}:values', 'a text');
    await expect(open(await connect())).rejects.toThrow(/WRONGTYPE/);
  });

  it('waits for open commits when it is closed, and refuses later calls', async () => {
    const storage = await open(await connect());
    const commit = storage.commit(none, values(['row:a', '1']));
    let isMade = false;
    void Promise.resolve(commit).then((made) => {
      isMade = made;
    });
    await storage.close();
    expect(isMade).toBe(true);
    await expect(storage.get(['row:a'])).rejects.toThrow(StorageError);
  });

  describe('warns', () => {
    const warnings = async (): Promise<readonly StorageWarning[] | undefined> =>
      (await open(await connect())).warnings;
    afterEach(async () => {
      const client = await admin();
      await client.configSet({ appendonly: 'no', 'maxmemory-policy': 'noeviction' });
    });

    it('of a Redis that may lose what it has', async () => {
      await (await admin()).configSet('maxmemory-policy', 'allkeys-lru');
      expect(await warnings()).toEqual([
        { problem: expect.stringContaining('no append-only file'), hint: 'set appendonly yes' },
        { problem: expect.stringContaining('allkeys-lru'), hint: 'set maxmemory-policy noeviction' },
      ]);
    });

    it('of nothing when Redis keeps what it has', async () => {
      await (await admin()).configSet('appendonly', 'yes');
      expect(await warnings()).toEqual([]);
    });

    it('of nothing when INFO is forbidden', async () => {
      const client = await admin();
      await client.sendCommand(['ACL', 'SETUSER', 'app', 'on', '>secret', '~*', '+@all', '-info']);
      const forbidden = (await adminOf(redis)).duplicate({ username: 'app', password: 'secret' });
      await forbidden.connect();
      closing.push(() => forbidden.close());
      const storage = await open((...args) => forbidden.sendCommand(args));
      expect(storage.warnings).toEqual([]);
      await expectToWork(storage);
    });
  });
});

redisServer.describe('the storage in a Redis Cluster', () => {
  let cluster: RunningRedisCluster;
  beforeAll(async () => {
    cluster = await startRedisCluster();
  });
  afterAll(async () => {
    await cluster.stop();
  });

  it.each(redisClusterClients)('works through $name, on whichever node the keys are', async (client) => {
    const { sendCommand } = await connected(client.connect(cluster));
    const prefix = client.name.replace(' ', '-');
    for (let n = 0; n < 12; n += 1) {
      await expectToWork(await open(sendCommand, { prefix, namespace: `app-${n}` }));
    }
    const sizes = await Promise.all(
      cluster.nodes.map(async ({ port }) => {
        const node = await adminOf({ url: `redis://127.0.0.1:${port}` });
        return node.dbSize();
      }),
    );
    expect(Math.min(...sizes)).toBeGreaterThan(0);
  });
});

async function adminOf({ url }: { readonly url: string }) {
  const client = redisClient(url);
  await client.connect();
  closing.push(() => client.close());
  return client;
}
