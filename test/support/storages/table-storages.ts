import { describe } from '@jest/globals';
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setImmediate as nextTurn } from 'node:timers/promises';
import { createPool, type Pool, type PoolOptions } from 'mysql2/promise';
import type { Pool as PostgresPool, QueryResult } from 'pg';
import { StorageError } from '../../../libs/debate-space/src/errors.js';
import { KeyedMutex } from '../../../libs/debate-space/src/live-sessions/keyed-mutex.js';
import { memoryStorage } from '../../../libs/debate-space/src/storage/memory-storage.js';
import { mysqlStorage } from '../../../libs/debate-space/src/storage/mysql.js';
import { postgresStorage } from '../../../libs/debate-space/src/storage/postgres.js';
import type { HostFunctions } from '../../../libs/debate-space/src/storage/server-calls.js';
import { statementsOf } from '../../../libs/debate-space/src/storage/schema.js';
import { SqlStorage } from '../../../libs/debate-space/src/storage/sql-storage.js';
import {
  openDriver,
  sqliteDatabase,
  type SqliteDriver,
} from '../../../libs/debate-space/src/storage/sqlite-file.js';
import { sqliteStorage } from '../../../libs/debate-space/src/storage/sqlite.js';
import type { OpenStorage, StorageEngine } from '../../../libs/debate-space/src/storage/engine.js';
import type { HostTransaction } from '../../../libs/debate-space/src/storage/storage.js';
import { mariadbServer, startMariadb } from '../servers/mariadb.js';
import { postgresPool, postgresServer, startPostgres } from '../servers/postgres.js';

/** An engine that the contract runs over. */
export interface TableStorage {
  readonly name: string;
  /** Whether everybody who opens it for an application sees the same rows. */
  readonly isShared: boolean;
  /** `describe`, or a plain word that these tests are skipped for lack of a server. */
  readonly describe: (name: string, tests: () => void) => void;
  /** Always the same place; the first call starts the server. Each test opens applications of its own in it. */
  engine(): Promise<StorageEngine>;
  /** Where storages have `within`: commits what `work` does on a connection of the host's, or rolls it back if it rejects. */
  transaction?(work: (transaction: HostTransaction) => Promise<void>): Promise<void>;
  /** Runs a statement past the storage, as somebody does who may write to its tables. Absent in memory. */
  run?(text: string): Promise<readonly Readonly<Record<string, unknown>>[]>;
  /** Closes pools, stops the server, removes the files. */
  stop(): Promise<void>;
}

/** A pool of connections to MariaDB. */
export function mariadbPool(uri: string, more: PoolOptions = {}): Pool {
  return createPool({ uri, connectionLimit: 10, ...more });
}

/** Gives rows as TypeORM does: an array, and `[rows, count]` for what changes rows. */
export function postgresFunctions(pool: PostgresPool): HostFunctions {
  const rowsOf = ({ command, rows, rowCount }: QueryResult): unknown =>
    ['UPDATE', 'DELETE'].includes(command) ? [rows, rowCount] : rows;
  const ignore = (): void => undefined; // the statement rejects, too
  return {
    query: async (text, values) => rowsOf(await pool.query(text, values)),
    transaction: async (work) => {
      const client = await pool.connect();
      client.on('error', ignore);
      try {
        await client.query('BEGIN');
        const result = await work(async (text, values) => rowsOf(await client.query(text, values)));
        await client.query('COMMIT');
        return result;
      } catch (error) {
        await client.query('ROLLBACK');
        throw error;
      } finally {
        client.off('error', ignore);
        client.release();
      }
    },
  };
}

/** Gives rows or a header as TypeORM does. */
export function mariadbFunctions(pool: Pool): HostFunctions {
  return {
    query: async (text, values) => (await pool.query(text, values))[0],
    transaction: async (work) => {
      const connection = await pool.getConnection();
      try {
        await connection.beginTransaction();
        const result = await work(async (text, values) => (await connection.query(text, values))[0]);
        await connection.commit();
        return result;
      } catch (error) {
        await connection.rollback();
        throw error;
      } finally {
        connection.release();
      }
    },
  };
}

/** What a test needs of a server that runs. */
interface Place {
  readonly engine: StorageEngine;
  transaction(work: (transaction: HostTransaction) => Promise<void>): Promise<void>;
  run: NonNullable<TableStorage['run']>;
  stop(): Promise<void>;
}

async function inPostgres(kind: 'pool' | 'functions'): Promise<Place> {
  const server = await startPostgres();
  const pool = postgresPool({ ...server, max: 20 });
  const functions = postgresFunctions(pool);
  return {
    engine: postgresStorage(kind === 'pool' ? { pool } : functions),
    transaction: (work) =>
      functions.transaction((query) => work({ query: (text, values = []) => query(text, values) })),
    run: async (text) => (await pool.query<Record<string, unknown>>(text)).rows,
    stop: async () => {
      await pool.end();
      await server.stop();
    },
  };
}

async function inMariadb(kind: 'pool' | 'functions'): Promise<Place> {
  const server = await startMariadb();
  // Some ORMs have changed rows counted, and not those that an UPDATE finds.
  const pool = mariadbPool(server.uri, {
    connectionLimit: 20,
    ...(kind === 'functions' && { flags: ['-FOUND_ROWS'] }),
  });
  const functions = mariadbFunctions(pool);
  return {
    engine: mysqlStorage(kind === 'pool' ? { pool } : functions),
    transaction: (work) =>
      functions.transaction((query) => work({ query: (text, values = []) => query(text, values) })),
    run: async (text) => {
      const [rows] = await pool.query(text);
      return Array.isArray(rows) ? (rows as Record<string, unknown>[]) : [];
    },
    stop: async () => {
      await pool.end();
      await server.stop();
    },
  };
}

function onServer(
  name: string,
  describeThese: TableStorage['describe'],
  start: () => Promise<Place>,
): TableStorage {
  let starting: Promise<Place> | undefined;
  const place = (): Promise<Place> => (starting ??= start());
  return {
    name,
    isShared: true,
    describe: describeThese,
    engine: async () => (await place()).engine,
    transaction: async (work) => (await place()).transaction(work),
    run: async (text) => (await place()).run(text),
    stop: async () => {
      await (await starting)?.stop();
      starting = undefined;
    },
  };
}

function inSqlite(): TableStorage {
  let folder: string | undefined;
  return {
    name: 'SQLite',
    isShared: true,
    describe,
    engine: async () => {
      folder ??= await mkdtemp(join(tmpdir(), 'sqlite-'));
      return sqliteStorage({ path: join(folder, 'debate-space.db') });
    },
    run: async (text) => {
      const driver = await openDriver(join(folder ?? '', 'debate-space.db'));
      try {
        if (/^SELECT/i.test(text)) return driver.prepare(text).all();
        driver.exec(text);
        return [];
      } finally {
        driver.close();
      }
    },
    stop: async () => {
      if (folder !== undefined) await rm(folder, { recursive: true });
      folder = undefined;
    },
  };
}

/** The SQL on SQLite without its thread, into which Stryker has no view. Each call is a transaction, as in the thread. */
function inThisThread(): TableStorage {
  const order = new KeyedMutex();
  let opening: Promise<SqliteDriver> | undefined;
  const prepared = async (): Promise<SqliteDriver> => {
    const driver = await openDriver(':memory:');
    for (const statement of statementsOf('sqlite')) driver.exec(statement);
    return driver;
  };
  const open = async (application: string): Promise<OpenStorage> => {
    const driver = await (opening ??= prepared());
    let isClosed = false;
    const call = (work: () => Promise<unknown>) => async (): Promise<unknown> => {
      if (isClosed) throw new StorageError('The storage is closed');
      await nextTurn(); // or a loop that does not end would keep the time limit of its test from ending it
      driver.exec('BEGIN');
      try {
        return await work();
      } finally {
        driver.exec('COMMIT');
      }
    };
    const inside = new SqlStorage(sqliteDatabase(driver), application);
    const storage = new Proxy(inside, {
      get: (_, name) => {
        if (name === 'close') return () => Promise.resolve(void (isClosed = true));
        const operation = Reflect.get(inside, name) as ((...args: unknown[]) => Promise<unknown>) | undefined;
        if (typeof operation !== 'function') return operation;
        return (...args: unknown[]) =>
          order.run(
            '',
            call(() => operation.apply(inside, args)),
          );
      },
    });
    await storage.open();
    return { storage, place: undefined, warnings: [] };
  };
  const engine = { name: 'sqlite', durable: false, guarantee: '', open };
  return {
    name: 'SQLite in this thread',
    isShared: true,
    describe,
    engine: () => Promise.resolve(engine),
    stop: async () => void (await opening)?.close(),
  };
}

export const tableStorages: readonly TableStorage[] = [
  {
    name: 'memory',
    isShared: false,
    describe,
    engine: () => Promise.resolve(memoryStorage()),
    stop: () => Promise.resolve(),
  },
  inSqlite(),
  onServer('Postgres', postgresServer.describe, () => inPostgres('pool')),
  onServer('Postgres through an ORM', postgresServer.describe, () => inPostgres('functions')),
  onServer('MariaDB', mariadbServer.describe, () => inMariadb('pool')),
  onServer('MariaDB through an ORM', mariadbServer.describe, () => inMariadb('functions')),
];

/** For the contract alone: nobody else needs it. */
export const sqliteInThisThread = inThisThread();
