import { afterAll, afterEach, beforeAll, beforeEach, expect, it, jest } from '@jest/globals';
import { setTimeout as sleep } from 'node:timers/promises';
import { inspect } from 'node:util';
import { StorageError, type DebateSpaceStorage, type StorageEngine } from 'nestjs-debate-space';
import { postgresStorage } from 'nestjs-debate-space/postgres';
import { redisStorage } from 'nestjs-debate-space/redis';
import { openOwn } from '../../libs/debate-space/src/module/own-storage.js';
import type { LogoutEntry, LogoutJob } from '../../libs/debate-space/src/logout/logout.js';
import type { LogoutQueue } from '../../libs/debate-space/src/logout/queue/logout-queue.js';
import { tryAcquireSlot } from '../../libs/debate-space/src/service/rate-limiter.js';
import { openOutbox, storageContext } from 'debate-space-fixtures/outbox-engines.js';
import { postgresPool, postgresServer, startPostgres } from 'debate-space-fixtures/postgres.js';
import { redisServer, startRedis } from 'debate-space-fixtures/redis.js';
import { redisClients } from 'debate-space-fixtures/redis-clients.js';

const LONG = 60_000;
const TIMEOUT_MS = 1_000;
const none = { attempts: 0, rejections: 0 };
const entry = (id: string): LogoutEntry => ({ id, uid: `user of ${id}`, reason: 'destroyed', endedAt: 1 });
const ids = (jobs: readonly LogoutJob[]): string[] => jobs.map((job) => job.entry.id);

interface Server {
  crash(): Promise<void>;
  restart(): Promise<void>;
  stop(): Promise<void>;
}
interface Connection {
  readonly engine: StorageEngine;
  /** Whether the host can still use its own connection. */
  ping(): Promise<unknown>;
  close(): Promise<unknown>;
}
interface ServerKind {
  readonly name: string;
  readonly describe: (name: string, tests: () => void) => void;
  start(): Promise<Server & { connect(): Promise<Connection> }>;
}

const inRedis = redisClients.map((client): ServerKind => ({
  name: `Redis, through ${client.name}`,
  describe: redisServer.describe,
  start: async () => {
    const redis = await startRedis({ appendonly: 'yes', appendfsync: 'always' });
    return {
      ...redis,
      connect: async () => {
        const host = await client.connect(redis);
        return {
          engine: redisStorage({ sendCommand: host.sendCommand, timeoutMs: TIMEOUT_MS }),
          ping: () => Promise.resolve(host.sendCommand('PING')),
          close: () => host.close(),
        };
      },
    };
  },
}));
const inPostgres: ServerKind = {
  name: 'Postgres, through a pool of pg',
  describe: postgresServer.describe,
  start: async () => {
    const postgres = await startPostgres();
    return {
      ...postgres,
      connect: () => {
        const pool = postgresPool(postgres);
        const query = (text: string, values: unknown[]) => pool.query(text, values);
        return Promise.resolve({
          engine: postgresStorage({ query, timeoutMs: TIMEOUT_MS }),
          ping: () => pool.query('SELECT 1'),
          close: () => pool.end(),
        });
      },
    };
  },
};

for (const kind of [...inRedis, inPostgres]) {
  kind.describe(`a storage in ${kind.name}`, () => {
    let server: Awaited<ReturnType<ServerKind['start']>>;
    let connection: Connection;
    let storage: DebateSpaceStorage;
    let outbox: LogoutQueue;
    const unhandled = jest.fn();
    beforeAll(() => void process.on('unhandledRejection', unhandled));
    beforeEach(async () => {
      server = await kind.start();
      connection = await server.connect();
      storage = await openOwn(connection.engine, { ...storageContext, namespace: 'rows' });
      outbox = await openOutbox(connection.engine);
    });
    afterEach(async () => {
      await Promise.all([outbox.close(), storage.close()]);
      await connection.close();
      await server.stop();
      expect(unhandled).not.toHaveBeenCalled();
    });
    afterAll(() => void process.off('unhandledRejection', unhandled));

    async function pend(...names: string[]): Promise<void> {
      for (const name of names) await outbox.add([entry(name)]);
    }

    /** As soon as the server is there again. */
    async function again<T>(call: () => T | Promise<T>): Promise<T> {
      for (;;) {
        try {
          return await call();
        } catch (error) {
          if (!(error instanceof StorageError)) throw error;
          await sleep(20);
        }
      }
    }

    async function refused(call: () => unknown): Promise<StorageError> {
      const error: unknown = await Promise.resolve()
        .then(call)
        .then(
          () => new Error('it was not refused'),
          (thrown: unknown) => thrown,
        );
      expect(error).toBeInstanceOf(StorageError);
      return error as StorageError;
    }

    it('loses nothing when the server crashes', async () => {
      await pend('pending', 'claimed', 'retried', 'parked', 'finished');
      await outbox.claim(5, LONG);
      await outbox.retry('pending', none, 0);
      await outbox.retry('retried', { attempts: 2, rejections: 1, cause: '503' }, LONG);
      await outbox.park('parked', none, 'a hint');
      await outbox.finish('finished', 1);
      await server.crash();
      await server.restart();
      expect(await again(() => outbox.counts())).toEqual({ pending: 3, parked: 1 });
      expect(ids(await outbox.claim(10, LONG))).toEqual(['pending']);
      expect(await outbox.ofUser('user of retried')).toMatchObject({
        waiting: [{ state: 'pending', attempts: 2, rejections: 1, cause: '503' }],
      });
      expect(ids(await outbox.parked(10))).toEqual(['parked']);
      expect((await outbox.ofUser('user of finished')).finished).toHaveLength(1);
      await outbox.finish('claimed', 1); // it is claimed as before
      expect((await outbox.ofUser('user of claimed')).waiting).toEqual([]);
    });

    it('refuses each call while the server is away, shows no uid and no value, and continues when the server is back', async () => {
      await storage.commit(new Map(), new Map([['logoutpending:a', '1']]));
      await server.crash();
      const calls: (() => unknown)[] = [
        () => outbox.add([entry('a')]),
        () => outbox.claim(1, LONG),
        () => tryAcquireSlot(storage, 1, LONG),
        () => storage.get(['logoutpending:a']),
        () => storage.range('logoutpending:', 'logoutpending;', { limit: 1 }),
        () => storage.count('pending'),
        () => storage.commit(new Map([['logoutpending:a', '1']]), new Map([['logoutpending:a', 'secret']])),
      ];
      const errors = await Promise.all(calls.map(refused));
      for (const error of errors) {
        expect(error.message).toContain('hint:');
        expect(inspect(error, { depth: null, showHidden: true })).not.toMatch(/user of a|secret/);
      }
      await server.restart();
      expect(await again(() => storage.range('logoutpending:', 'logoutpending;', { limit: 9 }))).toHaveLength(
        1,
      );
      await again(() => outbox.add([entry('after')]));
      expect(ids(await again(() => outbox.claim(10, LONG)))).toContain('after');
    });

    it('rejects what is under way when the connection breaks, and keeps what it has acknowledged', async () => {
      const names = Array.from({ length: 50 }, (_, n) => `e-${n}`);
      const outcomes = Promise.allSettled(names.map(async (name) => outbox.add([entry(name)])));
      await server.crash();
      const failed = (await outcomes).flatMap((one) =>
        one.status === 'rejected' ? [one.reason as unknown] : [],
      );
      for (const error of failed) expect(error).toBeInstanceOf(StorageError);
      await server.restart();
      const { pending } = await again(() => outbox.counts());
      expect(pending).toBeGreaterThanOrEqual(50 - failed.length);
    });

    it('closes while the server is away', async () => {
      await server.crash();
      const late = refused(() => storage.get(['logoutpending:a']));
      await Promise.all([outbox.close(), storage.close()]);
      expect((await refused(() => outbox.counts())).message).toContain('closed');
      await late;
      await server.restart();
      await again(() => connection.ping().catch(() => Promise.reject(new StorageError('away'))));
    });

    it('leaves the connection of the host open when it is closed', async () => {
      await Promise.all([outbox.close(), storage.close()]);
      await expect(connection.ping()).resolves.toBeDefined();
    });
  });
}
