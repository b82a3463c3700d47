import { describe } from '@jest/globals';
import { mkdtempSync } from 'node:fs';
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { Pool } from 'pg';
import { memoryOutbox, type OutboxFactory } from 'nestjs-debate-space';
import { bullmqOutbox } from 'nestjs-debate-space/bullmq';
import { lmdbOutbox } from 'nestjs-debate-space/lmdb';
import { storageOutbox } from '../../libs/debate-space/src/logout/storage-outbox.js';
import { lmdbStorage } from '../../libs/debate-space/src/storage/lmdb/lmdb-storage.js';
import { memoryStorage } from '../../libs/debate-space/src/storage/memory-storage.js';
import { postgresStorage } from '../../libs/debate-space/src/storage/postgres/postgres-storage.js';
import type { SendCommand } from '../../libs/debate-space/src/storage/redis/redis-script.js';
import { redisStorage } from '../../libs/debate-space/src/storage/redis/redis-storage.js';
import type { StorageEngine } from '../../libs/debate-space/src/storage/storage.js';
import { postgresServer, startPostgres } from './postgres.js';
import { redisClient, redisServer, startRedis } from './redis.js';

/** An engine that the contract is run over. */
export interface OutboxEngine {
  readonly name: string;
  /** `describe`, or a plain word that these tests are skipped for lack of a server. */
  readonly describe: (name: string, tests: () => void) => void;
  /** Starts what the engine needs, once for all tests. */
  start(): Promise<EnginePlaces>;
}

export interface EnginePlaces {
  /** An empty place of its own. What is opened by the same factory later, or twice, is the same place. */
  place(): OutboxFactory;
  stop(): Promise<void>;
}

export const outboxEngines: readonly OutboxEngine[] = [
  {
    name: 'memory',
    describe,
    start: () => Promise.resolve({ place: memoryOutbox, stop: () => Promise.resolve() }),
  },
  {
    name: 'lmdb',
    describe,
    start: async () => {
      const root = await mkdtemp(join(tmpdir(), 'lmdb-'));
      return {
        place: () => lmdbOutbox({ path: mkdtempSync(join(root, 'place-')) }),
        stop: () => rm(root, { recursive: true }),
      };
    },
  },
  {
    name: 'BullMQ',
    describe: redisServer.describe,
    start: async () => {
      const redis = await startRedis();
      let places = 0;
      return {
        place: () => bullmqOutbox({ connection: redis.url, prefix: `place-${(places += 1)}` }),
        stop: () => redis.stop(),
      };
    },
  },
];

/** The logout queue on each storage. */
export const storageEngines: readonly OutboxEngine[] = [
  {
    name: 'memoryStorage',
    describe,
    start: () =>
      Promise.resolve({ place: () => storageOutbox(memoryStorage()), stop: () => Promise.resolve() }),
  },
  {
    name: 'lmdbStorage',
    describe,
    start: async () => {
      const root = await mkdtemp(join(tmpdir(), 'lmdb-storage-'));
      return {
        place: () => storageOutbox(lmdbStorage({ path: mkdtempSync(join(root, 'place-')) })),
        stop: () => rm(root, { recursive: true }),
      };
    },
  },
  {
    name: 'redisStorage',
    describe: redisServer.describe,
    start: async () => {
      const redis = await startRedis();
      const client = redisClient(redis.url);
      await client.connect();
      const sendCommand: SendCommand = (...args) => client.sendCommand(args);
      let places = 0;
      return {
        place: () => storageOutbox(redisStorage({ sendCommand, prefix: `place-${(places += 1)}` })),
        stop: async () => {
          await client.close();
          await redis.stop();
        },
      };
    },
  },
  {
    name: 'postgresStorage',
    describe: postgresServer.describe,
    start: async () => {
      const postgres = await startPostgres();
      const pool = new Pool({ connectionString: postgres.connectionString, max: 8 });
      pool.on('error', () => undefined); // the server ends before its connections
      let places = 0;
      return {
        place: () => {
          const table = `public.place_${(places += 1)}`;
          return storageOutbox(withExactCounts(postgresStorage({ query: (text, values) => pool.query(text, values), table }))); // prettier-ignore
        },
        stop: async () => {
          await pool.end();
          await postgres.stop();
        },
      };
    },
  },
];

/** A count of Postgres may be a second old; the contract looks at once. */
function withExactCounts(engine: StorageEngine): StorageEngine {
  return {
    ...engine,
    open: async (context) => {
      const storage = await engine.open(context);
      const count = async (family: string): Promise<number> =>
        (await storage.range(`${family}:`, `${family}:~`, { limit: 1_000 })).length;
      return Object.assign(storage, { count });
    },
  };
}
