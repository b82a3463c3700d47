import { describe } from '@jest/globals';
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { Redis } from 'ioredis';
import type { StorageEngine } from 'nestjs-debate-space';
import { lmdbStorage } from 'nestjs-debate-space/lmdb';
import { postgresStorage } from 'nestjs-debate-space/postgres';
import { redisStorage } from 'nestjs-debate-space/redis';
import { postgresPool, postgresServer, startPostgres } from './postgres.js';
import { redisServer, startRedis } from './redis.js';
import { everythingOf, filesOf } from './traces.js';

/** A place of a durable storage whose files a test looks into. */
export interface KeptPlace {
  engine(): StorageEngine;
  /** All that is kept, as it is kept. */
  kept(): Promise<readonly Buffer[]>;
  leave(): Promise<unknown>;
}

async function inFolder(): Promise<KeptPlace> {
  const path = await mkdtemp(join(tmpdir(), 'kept-'));
  return {
    engine: () => lmdbStorage({ path }),
    kept: () => filesOf(path),
    leave: () => rm(path, { recursive: true }),
  };
}

/** Every command that changed something is in its append-only file, and nothing in its files is compressed. */
async function inRedis(): Promise<KeptPlace> {
  const redis = await startRedis({ appendonly: 'yes', 'aof-use-rdb-preamble': 'no', rdbcompression: 'no' });
  const client = new Redis(redis.url);
  return {
    engine: () => redisStorage({ sendCommand: (name, ...words) => client.call(name, ...words) }),
    kept: async () => {
      await client.save();
      return everythingOf(client);
    },
    leave: async () => {
      client.disconnect();
      await redis.stop();
    },
  };
}

/** Every change is in its write-ahead log, and each version of a row in its table until it is vacuumed. */
async function inPostgres(): Promise<KeptPlace> {
  const postgres = await startPostgres();
  const pool = postgresPool(postgres);
  return {
    engine: () => postgresStorage({ query: (text, values) => pool.query(text, values) }),
    kept: async () => {
      await pool.query('CHECKPOINT');
      const { rows } = await pool.query<{ data_directory: string }>('SHOW data_directory');
      return filesOf(rows[0]?.data_directory ?? '');
    },
    leave: async () => {
      await pool.end();
      await postgres.stop();
    },
  };
}

export const keptPlaces = [
  { name: 'in an LMDB file', describe, take: inFolder },
  { name: 'in Redis', describe: redisServer.describe, take: inRedis },
  { name: 'in Postgres', describe: postgresServer.describe, take: inPostgres },
] as const;
