import { afterAll, describe } from '@jest/globals';
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { postgresPool, postgresServer, startPostgres } from './postgres.js';
import { redisServer, startRedis } from './redis.js';

interface SampleAppPlaces {
  environment(): Promise<Record<string, string>>;
  stop(): Promise<void>;
}

/** Redis and Postgres keep no key beside their data. */
const inServer = (url: string) => ({
  DEBATE_SPACE_STORAGE: url,
  DEBATE_SPACE_STORAGE_KEY: 'a-storage-key-of-a-test',
});

async function startMemory(): Promise<SampleAppPlaces> {
  return Promise.resolve({
    environment: () => Promise.resolve({ DEBATE_SPACE_STORAGE: 'memory' }),
    stop: () => Promise.resolve(),
  });
}

async function startLmdb(): Promise<SampleAppPlaces> {
  const root = await mkdtemp(join(tmpdir(), 'sample-app-'));
  return {
    environment: async () => ({ DEBATE_SPACE_STORAGE: `lmdb:${await mkdtemp(join(root, 'place-'))}` }),
    stop: () => rm(root, { recursive: true }),
  };
}

async function startInRedis(): Promise<SampleAppPlaces> {
  const redis = await startRedis();
  let databases = 0;
  return {
    environment: () => Promise.resolve(inServer(`${redis.url}/${(databases += 1)}`)),
    stop: () => redis.stop(),
  };
}

async function startInPostgres(): Promise<SampleAppPlaces> {
  const postgres = await startPostgres();
  const pool = postgresPool(postgres);
  let databases = 0;
  return {
    environment: async () => {
      const name = `place_${(databases += 1)}`;
      await pool.query(`CREATE DATABASE ${name}`);
      return inServer(new URL(name, postgres.connectionString).href);
    },
    stop: async () => {
      await pool.end();
      await postgres.stop();
    },
  };
}

/** The storages that the sample app may have. */
export const sampleAppStorages = {
  memory: { describe, start: startMemory },
  lmdb: { describe, start: startLmdb },
  redis: { describe: redisServer.describe, start: startInRedis },
  postgres: { describe: postgresServer.describe, start: startInPostgres },
} as const;

export type SampleAppStorage = keyof typeof sampleAppStorages;

/** What `SAMPLE_APP_STORAGE` says, for a run of all tests of the sample app on another storage than lmdb. */
export const chosenStorage = (process.env.SAMPLE_APP_STORAGE ?? 'lmdb') as SampleAppStorage;
if (!Object.hasOwn(sampleAppStorages, chosenStorage))
  throw new Error(`SAMPLE_APP_STORAGE is one of ${Object.keys(sampleAppStorages).join(', ')}`);

const started = new Map<SampleAppStorage, Promise<SampleAppPlaces>>();
afterAll(async () => {
  for (const places of started.values()) await (await places).stop();
});

/** The variables that choose another empty storage. Its server runs until all tests of the file have run. */
export async function emptyStorage(storage: SampleAppStorage): Promise<Record<string, string>> {
  const places = started.get(storage) ?? sampleAppStorages[storage].start();
  started.set(storage, places);
  return (await places).environment();
}
