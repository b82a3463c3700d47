import { describe } from '@jest/globals';
import { mkdtempSync } from 'node:fs';
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { lmdbStorage } from '../../libs/debate-space/src/storage/lmdb/lmdb-storage.js';
import { memoryStorage } from '../../libs/debate-space/src/storage/memory-storage.js';
import { postgresStorage } from '../../libs/debate-space/src/storage/postgres/postgres-storage.js';
import { redisStorage } from '../../libs/debate-space/src/storage/redis/redis-storage.js';
import type { StorageEngine } from '../../libs/debate-space/src/storage/storage.js';
import { postgresServer, startPostgres } from './postgres.js';
import { postgresPool } from './postgres-clients.js';
import { redisServer, startRedis } from './redis.js';
import { redisClients, redisClusterClients, type RedisClientKind } from './redis-clients.js';
import { startRedisCluster } from './redis-cluster.js';

/** A kind of storage that tests run over. */
export interface StorageKind {
  readonly name: string;
  /** Whether all who open a place see the same rows. */
  readonly isShared: boolean;
  /** `describe`, or a plain word that these tests are skipped for lack of a server. */
  readonly describe: (name: string, tests: () => void) => void;
  /** Starts what the storage needs, once for all tests. */
  start(): Promise<StoragePlaces>;
}

export interface StoragePlaces {
  /** An empty place. What the same engine opens later, or twice, is the same place. */
  place(): StorageEngine;
  stop(): Promise<void>;
}

async function startMemory(): Promise<StoragePlaces> {
  return Promise.resolve({ place: memoryStorage, stop: () => Promise.resolve() });
}

async function startLmdb(): Promise<StoragePlaces> {
  const root = await mkdtemp(join(tmpdir(), 'lmdb-'));
  return {
    place: () => lmdbStorage({ path: mkdtempSync(join(root, 'place-')) }),
    stop: () => rm(root, { recursive: true }),
  };
}

async function startRedisWith<Server>(
  starting: Promise<Server & { stop(): Promise<void> }>,
  client: RedisClientKind<Server>,
): Promise<StoragePlaces> {
  const server = await starting;
  const connection = await client.connect(server);
  let places = 0;
  return {
    place: () => redisStorage({ sendCommand: connection.sendCommand, prefix: `place-${(places += 1)}` }),
    stop: async () => {
      await connection.close();
      await server.stop();
    },
  };
}

async function startPostgresWithPg(): Promise<StoragePlaces> {
  const server = await startPostgres();
  const pool = postgresPool({ connectionString: server.connectionString });
  let places = 0;
  return {
    place: () =>
      postgresStorage({
        query: (text, values) => pool.query(text, values),
        table: `place_${(places += 1)}`,
      }),
    stop: async () => {
      await pool.end();
      await server.stop();
    },
  };
}

export const storageKinds: readonly StorageKind[] = [
  { name: 'memory', isShared: false, describe, start: startMemory },
  { name: 'lmdb', isShared: true, describe, start: startLmdb },
  ...redisClients.map((client) => ({
    name: `Redis through ${client.name}`,
    isShared: true,
    describe: redisServer.describe,
    start: () => startRedisWith(startRedis(), client),
  })),
  ...redisClusterClients.map((client) => ({
    name: `Redis Cluster through ${client.name}`,
    isShared: true,
    describe: redisServer.describe,
    start: () => startRedisWith(startRedisCluster(), client),
  })),
  {
    name: 'Postgres through pg',
    isShared: true,
    describe: postgresServer.describe,
    start: startPostgresWithPg,
  },
];
