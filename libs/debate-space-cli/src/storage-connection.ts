import { access } from 'node:fs/promises';
import { memoryStorage, type StorageEngine } from 'nestjs-debate-space';
import { Failure } from './failure.js';
import type { StorageSetting } from './storage-setting.js';
import { variables } from './variables.js';

export interface StorageConnection {
  readonly engine: StorageEngine;
  /** Closes what this command has opened itself; only after the plugin is closed. */
  close(): Promise<void>;
}

type SettingOf<Engine extends StorageSetting['engine']> = Extract<StorageSetting, { engine: Engine }>;

const CONNECT_WITHIN_MS = 10_000;
const MAX_RECONNECT_DELAY_MS = 2_000;
const DEFAULT_TABLE = 'debate_space';

/**
 * Connects to the storage of the app.
 * @throws {Failure} when it cannot be reached, or is not there: an empty one would be made, and nobody would deliver from it
 */
export async function connectStorage(setting: StorageSetting): Promise<StorageConnection> {
  switch (setting.engine) {
    case 'memory':
      return { engine: memoryStorage(), close: () => Promise.resolve() };
    case 'lmdb':
      return openLmdb(setting);
    case 'redis':
      return connectRedis(setting);
    case 'postgres':
      return connectPostgres(setting);
  }
}

async function openLmdb({ path }: SettingOf<'lmdb'>): Promise<StorageConnection> {
  await access(path).catch(() => {
    throw new Failure(
      'configuration',
      `${variables.storage}: there is no folder ${path}`,
      "give the path of your app's lmdb storage, and run this command as the app's user",
    );
  });
  const { lmdbStorage } = await import('nestjs-debate-space/lmdb');
  return { engine: lmdbStorage({ path }), close: () => Promise.resolve() };
}

async function connectRedis({ url, prefix }: SettingOf<'redis'>): Promise<StorageConnection> {
  const { createClient } = await installed('redis', import('redis'));
  const { redisStorage } = await import('nestjs-debate-space/redis');
  let isConnected = false;
  const reconnectStrategy = (retries: number): number | false =>
    isConnected ? Math.min(100 * 2 ** retries, MAX_RECONNECT_DELAY_MS) : false;
  const client = await reached('Redis', async () => {
    const socket = { connectTimeout: CONNECT_WITHIN_MS, reconnectStrategy };
    const connecting = createClient({ url, socket });
    connecting.on('error', () => undefined); // the calls that fail report it
    await connecting.connect();
    return connecting;
  });
  isConnected = true;
  return {
    engine: redisStorage({ sendCommand: (...args) => client.sendCommand(args), prefix }),
    close: async () => {
      if (client.isOpen) client.destroy(); // every call has its reply, or was given up
      return Promise.resolve();
    },
  };
}

async function connectPostgres({
  url,
  table = DEFAULT_TABLE,
}: SettingOf<'postgres'>): Promise<StorageConnection> {
  const { default: pg } = await installed('pg', import('pg'));
  const { postgresStorage } = await import('nestjs-debate-space/postgres');
  const pool = await reached('Postgres', () =>
    Promise.resolve(
      new pg.Pool({
        connectionString: url,
        max: 4,
        connectionTimeoutMillis: CONNECT_WITHIN_MS,
        query_timeout: CONNECT_WITHIN_MS,
      }),
    ),
  );
  pool.on('error', () => undefined); // of an idle connection; the next call takes another one
  try {
    const { rows } = await reached('Postgres', () =>
      pool.query<{ found: boolean }>('SELECT to_regclass($1) IS NOT NULL AS found', [withSchema(table)]),
    );
    if (rows[0]?.found !== true) {
      throw new Failure(
        'configuration',
        `${variables.storage}: Postgres has no table ${table}`,
        `start your app first, and give the table of its storage as ${variables.storageTable}`,
      );
    }
  } catch (error) {
    await pool.end();
    throw error;
  }
  return {
    engine: postgresStorage({ query: (text, values) => pool.query(text, values), table }),
    close: () => pool.end(),
  };
}

/** As the storage reads the name. */
function withSchema(table: string): string {
  return /^("(""|[^"])*"|[^".]*)$/.test(table) ? `public.${table}` : table;
}

/** @throws {Failure} when an optional package is missing */
async function installed<T>(name: string, loading: Promise<T>): Promise<T> {
  return loading.catch(() => {
    throw new Failure(
      'configuration',
      `${variables.storage} needs the package ${name}, which is missing or does not load`,
      `npm install ${name}`,
    );
  });
}

/** @throws {Failure} which has no word of the URL: there is a password in it */
async function reached<T>(server: string, connecting: () => Promise<T>): Promise<T> {
  try {
    return await connecting();
  } catch (error) {
    throw new Failure(
      'configuration',
      `${server} cannot be reached (${reasonOf(error)})`,
      `compare address, user, password and database in ${variables.storage}`,
    );
  }
}

/** `ECONNREFUSED`, `WRONGPASS`, `28P01` */
function reasonOf(error: unknown): string {
  const { code, message } = Object(error) as { code?: unknown; message?: unknown };
  if (typeof code === 'string') return code;
  return /^[A-Z]{2,}\b/.exec(String(message))?.[0] ?? 'no answer';
}
