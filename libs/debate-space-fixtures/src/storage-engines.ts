import { describe } from '@jest/globals';
import { mkdtempSync } from 'node:fs';
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { memoryStorage, type StorageEngine } from 'nestjs-debate-space';
import { lmdbStorage } from 'nestjs-debate-space/lmdb';
import { postgresStorage } from 'nestjs-debate-space/postgres';
import { redisStorage } from 'nestjs-debate-space/redis';
import { postgresPool, postgresServer, startPostgres } from './postgres.js';
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

async function startInRedis<Server>(
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

async function startInPostgres(): Promise<StoragePlaces> {
  const postgres = await startPostgres();
  const pool = postgresPool(postgres);
  let places = 0;
  return {
    place: () => {
      const table = `public.place_${(places += 1)}`;
      return postgresStorage({ query: (text, values) => pool.query(text, values), table });
    },
    stop: async () => {
      await pool.end();
      await postgres.stop();
    },
  };
}

const [nodeRedis, ...otherClients] = redisClients;

export const storageKinds: readonly StorageKind[] = [
  { name: 'memory', isShared: false, describe, start: startMemory },
  { name: 'lmdb', isShared: true, describe, start: startLmdb },
  {
    name: 'redis',
    isShared: true,
    describe: redisServer.describe,
    start: () => startInRedis(startRedis(), nodeRedis),
  },
  { name: 'postgres', isShared: true, describe: postgresServer.describe, start: startInPostgres },
];

/** The same storage in Redis through other clients, and in a Cluster. */
export const moreRedisKinds: readonly StorageKind[] = [
  ...otherClients.map((client) => ({
    name: `redis through ${client.name}`,
    isShared: true,
    describe: redisServer.describe,
    start: () => startInRedis(startRedis(), client),
  })),
  ...redisClusterClients.map((client) => ({
    name: `Redis Cluster through ${client.name}`,
    isShared: true,
    describe: redisServer.describe,
    start: () => startInRedis(startRedisCluster(), client),
  })),
];
