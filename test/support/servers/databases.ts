import { describe } from '@jest/globals';
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import type { StorageEngine } from 'nestjs-debate-space';
import { mysqlStorage } from 'nestjs-debate-space/mysql';
import { postgresStorage } from 'nestjs-debate-space/postgres';
import { sqliteStorage } from 'nestjs-debate-space/sqlite';
import { TABLES } from '../../../libs/debate-space/src/storage/schema.js';
import { mariadbServer, startMariadb } from './mariadb.js';
import { postgresPool, postgresServer, startPostgres } from './postgres.js';
import { mariadbPool } from '../storages/table-storages.js';
import { filesOf } from '../storages/traces.js';

/** Tables of their own in a database. */
export interface DatabasePlace {
  /** What the same engine opens later, or twice, is the same place. */
  readonly engine: StorageEngine;
  /** The names of the tables. */
  readonly tables: readonly string[];
}

/** A database whose files a test looks into. */
export interface RunningDatabase {
  /** Another place, with no tables. */
  place(): Promise<DatabasePlace>;
  /** Everything that it keeps, as it keeps it. */
  files(): Promise<readonly Buffer[]>;
  stop(): Promise<unknown>;
}

/** A database server that a test ends, and starts again. */
export interface RunningServer extends RunningDatabase {
  run(statement: string): Promise<unknown>;
  /** Keeps everybody else from a table. @returns how to let them in again */
  lock(table: string): Promise<() => Promise<unknown>>;
  crash(): Promise<void>;
  restart(): Promise<void>;
}

export interface DatabaseKind<Running extends RunningDatabase = RunningDatabase> {
  readonly name: string;
  /** `describe`, or a plain word that these tests are skipped for lack of a server. */
  readonly describe: (name: string, tests: () => void) => void;
  start(): Promise<Running>;
}

async function sqlite(): Promise<RunningDatabase> {
  const folder = await mkdtemp(join(tmpdir(), 'sqlite-'));
  let places = 0;
  return {
    place: () => {
      const path = join(folder, `${(places += 1)}.db`);
      return Promise.resolve({ engine: sqliteStorage({ path }), tables: TABLES });
    },
    files: () => filesOf(folder),
    stop: () => rm(folder, { recursive: true }),
  };
}

/** Every change is in its write-ahead log, and each version of a row in its table until it is vacuumed. */
async function postgres(): Promise<RunningServer> {
  const server = await startPostgres();
  const pool = postgresPool(server);
  let places = 0;
  return {
    place: async () => {
      const schema = `place_${(places += 1)}`;
      await pool.query(`CREATE SCHEMA ${schema}`);
      const engine = postgresStorage({ pool, schema });
      return { engine, tables: TABLES.map((table) => `${schema}.${table}`) };
    },
    run: async (statement) => (await pool.query(statement)).rows as unknown,
    lock: async (table) => {
      const client = await pool.connect();
      await client.query(`BEGIN; LOCK TABLE ${table}`);
      return async () => {
        await client.query('ROLLBACK');
        client.release();
      };
    },
    files: async () => {
      await pool.query('CHECKPOINT');
      const { rows } = await pool.query<{ data_directory: string }>('SHOW data_directory');
      return filesOf(rows[0]?.data_directory ?? '');
    },
    crash: () => server.crash(),
    restart: () => server.restart(),
    stop: async () => {
      await pool.end();
      await server.stop();
    },
  };
}

/** Every change is in its redo log. */
async function mariadb(): Promise<RunningServer> {
  const server = await startMariadb();
  const pool = mariadbPool(server.uri);
  const run = async (statement: string): Promise<unknown> => (await pool.query(statement))[0];
  let places = 0;
  return {
    place: () => {
      const prefix = `place_${(places += 1)}_`;
      const engine = mysqlStorage({ pool, prefix });
      return Promise.resolve({ engine, tables: TABLES.map((table) => prefix + table) });
    },
    run,
    lock: async (table) => {
      const connection = await pool.getConnection();
      await connection.query(`LOCK TABLES ${table} WRITE`);
      return async () => {
        await connection.query('UNLOCK TABLES');
        connection.release();
      };
    },
    files: async () => {
      const [row] = (await run('SELECT @@datadir AS folder')) as readonly { folder: string }[];
      return filesOf(row?.folder ?? '');
    },
    crash: () => server.crash(),
    restart: () => server.restart(),
    stop: async () => {
      await pool.end();
      await server.stop();
    },
  };
}

export const databaseServers: readonly DatabaseKind<RunningServer>[] = [
  { name: 'Postgres', describe: postgresServer.describe, start: postgres },
  { name: 'MariaDB', describe: mariadbServer.describe, start: mariadb },
];

/** Whatever a host may keep logouts and erasures in. */
export const databases: readonly DatabaseKind[] = [
  { name: 'SQLite', describe, start: sqlite },
  ...databaseServers,
];
