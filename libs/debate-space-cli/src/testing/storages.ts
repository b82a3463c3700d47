import { describe } from '@jest/globals';
import { postgresMigration } from 'nestjs-debate-space/postgres';
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import pg from 'pg';
import { postgresServer, startPostgres } from 'debate-space-fixtures/postgres.js';
import { redisServer, startRedis } from 'debate-space-fixtures/redis.js';
import { readSettings } from '../settings.js';
import { connectStorage, type StorageConnection } from '../storage-connection.js';

/** A storage that outlives a command. */
export interface SharedStorage {
  readonly name: string;
  /** `describe`, or a plain word that these tests are skipped for lack of a server. */
  readonly describe: (name: string, tests: () => void) => void;
  /** Starts its server, once for all tests. */
  start(): Promise<StorageServer>;
}

export interface StorageServer {
  /** @returns the variables that name an empty storage */
  place(): Promise<NodeJS.ProcessEnv>;
  stop(): Promise<void>;
}

const STORAGE_KEY = 'a-storage-key-of-a-test';

let places = 0;

async function startLmdb(): Promise<StorageServer> {
  const root = await mkdtemp(join(tmpdir(), 'cli-storage-'));
  return {
    place: async () => ({ DEBATE_SPACE_STORAGE: `lmdb:${await mkdtemp(join(root, 'place-'))}` }),
    stop: () => rm(root, { recursive: true }),
  };
}

async function startOwnRedis(): Promise<StorageServer> {
  const redis = await startRedis({ appendonly: 'yes', 'maxmemory-policy': 'noeviction' });
  return {
    place: () =>
      Promise.resolve({
        DEBATE_SPACE_STORAGE: redis.url,
        DEBATE_SPACE_STORAGE_PREFIX: `place-${(places += 1)}`,
        DEBATE_SPACE_STORAGE_KEY: STORAGE_KEY,
      }),
    stop: () => redis.stop(),
  };
}

async function startOwnPostgres(): Promise<StorageServer> {
  const postgres = await startPostgres();
  const { connectionString } = postgres;
  return {
    place: async () => {
      const table = `place_${(places += 1)}`;
      const client = new pg.Client({ connectionString });
      await client.connect();
      await client.query(postgresMigration({ table }));
      await client.end();
      return {
        DEBATE_SPACE_STORAGE: connectionString,
        DEBATE_SPACE_STORAGE_TABLE: table,
        DEBATE_SPACE_STORAGE_KEY: STORAGE_KEY,
      };
    },
    stop: () => postgres.stop(),
  };
}

export const sharedStorages: readonly SharedStorage[] = [
  { name: 'lmdb', describe, start: startLmdb },
  { name: 'redis', describe: redisServer.describe, start: startOwnRedis },
  { name: 'postgres', describe: postgresServer.describe, start: startOwnPostgres },
];

/** As an app opens it that runs beside the command. */
export function connectAsApp(env: NodeJS.ProcessEnv): Promise<StorageConnection> {
  return connectStorage(readSettings(env, '/').storage);
}
