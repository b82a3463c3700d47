import { stat } from 'node:fs/promises';
import { resolve } from 'node:path';
import type { RowDataPacket } from 'mysql2/promise';
import { memoryStorage, type StorageEngine } from 'nestjs-debate-space';
import { Failure } from './failure.js';
import { variables } from './variables.js';

/** Which storage: that of the app, or one in the memory of this command. */
export type StorageSetting =
  | { readonly engine: 'memory' }
  | { readonly engine: 'sqlite'; readonly path: string }
  | { readonly engine: 'postgres'; readonly url: string; readonly schema: string | undefined }
  | { readonly engine: 'mysql'; readonly url: string; readonly prefix: string | undefined };
type SettingOf<Engine extends StorageSetting['engine']> = Extract<StorageSetting, { engine: Engine }>;

export interface StorageConnection {
  readonly engine: StorageEngine;
  /** Closes what this command has opened itself; only after the plugin is closed. */
  close(): Promise<void>;
}

const CONNECT_TIMEOUT_MS = 10_000;
const MAX_CONNECTIONS = 4;
/** Of which every storage has some. */
const TABLE = 'debate_space_jobs';

/**
 * @param folder what relative paths start from
 * @returns `undefined` when it cannot be understood
 */
export function storageSetting(
  text: string,
  folder: string,
  { schema, prefix }: { readonly schema: string | undefined; readonly prefix: string | undefined },
): StorageSetting | undefined {
  if (text === 'memory') return { engine: 'memory' };
  if (/^sqlite:./.test(text))
    return { engine: 'sqlite', path: resolve(folder, text.slice('sqlite:'.length)) };
  if (!URL.canParse(text)) return undefined;
  if (/^postgres(ql)?:\/\/./.test(text)) return { engine: 'postgres', url: text, schema };
  return /^(mysql|mariadb):\/\/./.test(text) ? { engine: 'mysql', url: text, prefix } : undefined;
}

/** Whether it is on a server, and has no key of its own for the uids in it. */
export function needsKey({ engine }: StorageSetting): boolean {
  return engine === 'postgres' || engine === 'mysql';
}

/**
 * Connects to the storage of the app. Creates nothing: from a storage that no app uses, nobody would deliver.
 * @throws {Failure} when the storage cannot be reached, or is not there
 */
export async function connectStorage(setting: StorageSetting): Promise<StorageConnection> {
  switch (setting.engine) {
    case 'memory':
      return { engine: memoryStorage(), close: () => Promise.resolve() };
    case 'sqlite':
      return openSqlite(setting);
    case 'postgres':
      return connectPostgres(setting);
    case 'mysql':
      return connectMysql(setting);
  }
}

async function openSqlite({ path }: SettingOf<'sqlite'>): Promise<StorageConnection> {
  const { size } = await stat(path).catch(() => ({ size: 0 }));
  if (size === 0)
    throw new Failure(
      'configuration',
      `${variables.storage}: there is no storage in ${path}`,
      "give the path of your app's SQLite storage, and run this command as the app's user; start your app first if it never ran",
    );
  const { sqliteStorage } = await import('nestjs-debate-space/sqlite');
  return { engine: sqliteStorage({ path }), close: () => Promise.resolve() };
}

async function connectPostgres({ url, schema }: SettingOf<'postgres'>): Promise<StorageConnection> {
  const { default: pg } = await installed('pg', import('pg'));
  const { postgresStorage } = await import('nestjs-debate-space/postgres');
  const connect = () =>
    new pg.Pool({
      connectionString: url,
      max: MAX_CONNECTIONS,
      connectionTimeoutMillis: CONNECT_TIMEOUT_MS,
      query_timeout: CONNECT_TIMEOUT_MS,
    }).on('error', () => undefined); // of an idle connection; the next call takes another one
  const pool = await reached('Postgres', () => Promise.resolve(connect()));
  const look = async () => {
    const query = `SELECT 1 FROM pg_catalog.pg_tables WHERE schemaname = $1 AND tablename = $2`;
    return (await pool.query(query, [schema ?? 'public', TABLE])).rows.length > 0;
  };
  const missing = `the schema ${schema ?? 'public'} of this Postgres`;
  await found('Postgres', look, missing, variables.storageSchema, () => pool.end());
  return { engine: postgresStorage({ pool, schema, migrate: false }), close: () => pool.end() };
}

async function connectMysql({ url, prefix = '' }: SettingOf<'mysql'>): Promise<StorageConnection> {
  const { createPool } = await installed('mysql2', import('mysql2/promise'));
  const { mysqlStorage } = await import('nestjs-debate-space/mysql');
  const connect = () =>
    createPool({ uri: url, connectionLimit: MAX_CONNECTIONS, connectTimeout: CONNECT_TIMEOUT_MS });
  const pool = await reached('MySQL', () => Promise.resolve(connect()));
  const look = async () => {
    const query = `SELECT 1 FROM information_schema.tables WHERE table_schema = DATABASE() AND table_name = ?`;
    const [rows] = await pool.query<RowDataPacket[]>(query, [prefix + TABLE]);
    return rows.length > 0;
  };
  const missing = `the database that the URL names${prefix === '' ? '' : `, with the prefix ${prefix}`}`;
  await found('MySQL', look, missing, variables.storagePrefix, () => pool.end());
  return { engine: mysqlStorage({ pool, prefix, migrate: false }), close: () => pool.end() };
}

/** @throws {Failure} when the server cannot be reached, or does not have the tables */
async function found(
  server: string,
  look: () => Promise<boolean>,
  place: string,
  variable: string,
  close: () => Promise<void>,
): Promise<void> {
  try {
    if (await reached(server, look)) return;
    throw new Failure(
      'configuration',
      `${variables.storage}: the tables debate_space_… are not in ${place}`,
      `start your app first, or create them with the SQL of debate-space storage migration; if your app has them elsewhere, compare ${variables.storage} and ${variable}`,
    );
  } catch (error) {
    await close();
    throw error;
  }
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
    const { code } = Object(error) as { code?: unknown }; // ECONNREFUSED, 28P01, ER_ACCESS_DENIED_ERROR
    throw new Failure(
      'configuration',
      `${server} cannot be reached (${typeof code === 'string' ? code : 'no answer'})`,
      `compare address, user, password and database in ${variables.storage}`,
    );
  }
}
