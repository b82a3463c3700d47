import { StorageError } from '../errors.js';
import { insertedRows, type Database, type Query, type Row, type Take } from './database.js';
import {
  checkRights,
  inHostTransaction,
  onServer,
  ServerCalls,
  throughFunctions,
  throughPool,
  type HostFunctions,
  type HostQuery,
  type PooledConnection,
  type ServerOptions,
} from './server-calls.js';
import { schema as tablesOf, TABLES } from './schema.js';
import { SqlStorage } from './sql-storage.js';
import type { OpenStorage, StorageEngine } from './storage.js';

/** A pool of `mysql2/promise`. */
export interface MysqlPool {
  query(text: string, values?: unknown[]): Promise<unknown>;
  getConnection(): Promise<MysqlConnection>;
}
/** A connection of a {@link MysqlPool}. */
export interface MysqlConnection {
  query(text: string, values?: unknown[]): Promise<unknown>;
  release(): void;
  destroy(): void;
}

/** How the storage reaches MySQL or MariaDB. The pool, or the ORM, stays the host's: the storage does not close it. */
export type MysqlStorageOptions = ({ readonly pool: MysqlPool } | HostFunctions) &
  ServerOptions & {
    /** What the names of the tables begin with, before `debate_space_`: letters, digits and `_`. @defaultValue `''` */
    readonly prefix?: string;
  };

/**
 * Keeps everything in tables of MySQL 8.0.1 or later, or MariaDB 10.6 or later, whose names begin with `debate_space_`.
 *
 * @example
 * import { createPool } from 'mysql2/promise';
 * storage: mysqlStorage({ pool: createPool(process.env.DATABASE_URL) })
 */
export function mysqlStorage(options: MysqlStorageOptions): StorageEngine {
  return {
    name: 'mysql',
    durable: true,
    guarantee:
      'survives crashes of the app, and is as durable as this MySQL, which with innodb_flush_log_at_trx_commit = 1 loses nothing',
    open: (application) => open(options, application),
  };
}

// Not UNIX_TIMESTAMP(NOW()): that is ambiguous in the hour that a session time zone repeats.
const NOW = "(TIMESTAMPDIFF(MICROSECOND, '1970-01-01', UTC_TIMESTAMP(3)) DIV 1000)";
/** Of a `TEXT`. All other columns have what has a fixed length. */
const MAX_TEXT_BYTES = 65_535;
const CREATE_TIMEOUT_MS = 60_000;

// READ COMMITTED has no gap locks, on which claims and inserts would deadlock. It is for the next transaction only.
const BEGIN = ['SET TRANSACTION ISOLATION LEVEL READ COMMITTED', 'START TRANSACTION'];

/** @throws {@link StorageError} when names cannot begin with it */
export function tablePrefix(prefix = ''): string {
  if (/^\w{0,30}$/.test(prefix)) return prefix;
  throw new StorageError(
    'The option prefix of mysqlStorage is not usable',
    'give at most 30 letters, digits and _',
  );
}

async function open(options: MysqlStorageOptions, application: string): Promise<OpenStorage> {
  const { migrate = true, timeoutMs } = options;
  const prefix = tablePrefix(options.prefix);
  const connection =
    'pool' in options ? throughPool(() => connected(options.pool), BEGIN) : throughFunctions(options);
  const calls = new ServerCalls('MySQL', timeoutMs);
  const database = dialect(onServer(connection, calls, queryOf));

  const names = TABLES.map((table) => prefix + table);
  const [server = {}] = (await database.query(SERVER, names)).rows;
  checkVersion(String(server.version));
  if (migrate && Number(server.tables) < names.length)
    for (const statement of tablesOf('mysql', prefix))
      await calls.run((late) => connection.query(statement, [], late), CREATE_TIMEOUT_MS);
  await checkRights(database.query, names);

  const storage = new SqlStorage(database, application, {
    prefix,
    within: (host) => dialect(inHostTransaction(host, queryOf)),
  });
  await storage.open();
  const flush = 'innodb_flush_log_at_trx_commit';
  return {
    storage,
    place: `the database ${String(server.name)} on ${String(server.host)}`,
    warnings:
      Number(server.flush) === 1
        ? []
        : [
            {
              problem: `This MySQL may lose its last commits in a crash (${flush} = ${String(server.flush)})`,
              hint: `set ${flush} = 1`,
            },
          ],
  };
}

const SERVER = `SELECT VERSION() AS version, DATABASE() AS name, @@hostname AS host, @@innodb_flush_log_at_trx_commit AS flush,
  (SELECT COUNT(*) FROM information_schema.tables
   WHERE table_schema = DATABASE() AND table_name IN (${TABLES.map(() => '?').join(', ')})) AS tables`;

/** @throws {@link StorageError} when the server has no SKIP LOCKED */
function checkVersion(version: string): void {
  const [major = 0, minor = 0, patch = 0] = version.split(/\D+/, 3).map(Number);
  const since = /mariadb/i.test(version) ? 10_006_000 : 8_000_001;
  if (major * 1_000_000 + minor * 1_000 + patch >= since) return;
  throw new StorageError(
    `This server is too old (${/^[\w.~+-]+/.exec(version)?.[0] ?? 'unknown'})`,
    'use MySQL 8.0.1 or later, or MariaDB 10.6 or later',
  );
}

async function connected(pool: MysqlPool): Promise<PooledConnection> {
  const connection = await pool.getConnection();
  const end = (how: 'release' | 'cut'): void => {
    if (how === 'cut') connection.destroy();
    else connection.release();
  };
  return { query: (text, values) => connection.query(text, values), end };
}

function dialect(statements: Pick<Database, 'query' | 'transaction' | 'close'>): Database {
  return {
    dialect: 'mysql',
    now: NOW,
    dueQueue: 'due_queue',
    forUpdate: 'FOR UPDATE',
    ...statements,
    take: (take) => statements.transaction((query) => lockThenUpdate(query, take)),
    // Not ON DUPLICATE KEY UPDATE id = id, which counts rows that are there as well if the driver wants found rows.
    insertNew: (...rows) => `INSERT IGNORE ${insertedRows(...rows)}`,
  };
}

/** There is no UPDATE … RETURNING. */
async function lockThenUpdate(query: Query, take: Take): Promise<readonly Row[]> {
  const { table, where, order, limit, set, values } = take;
  const text = `SELECT * FROM ${table} WHERE ${where} ORDER BY ${order} LIMIT ${limit} FOR UPDATE SKIP LOCKED`;
  const { rows } = await query(text, values[0]);
  if (rows.length === 0) return [];
  const update = `UPDATE ${table} SET ${set} WHERE id IN (${rows.map(() => '?').join(', ')})`;
  await query(update, [...values[1], ...rows.map(({ id }) => id)]);
  return rows;
}

function queryOf(run: HostQuery): Query {
  return async (text, values = []) => {
    const isTooLong = (value: unknown): boolean => Buffer.byteLength(String(value)) > MAX_TEXT_BYTES;
    if (text.startsWith('INSERT IGNORE') && values.some(isTooLong))
      throw new StorageError(
        `A text is longer than ${MAX_TEXT_BYTES} bytes`,
        'shorten it: MySQL would cut it',
      );
    return resultOf(await run(text, [...values]));
  };
}

/** Rows, or `[rows, fields]`; of a change a header, `[header, fields]`, or a number. */
function resultOf(result: unknown): { readonly rows: readonly Row[]; readonly count: number } {
  const first: unknown = Array.isArray(result) ? result[0] : result;
  const count: unknown =
    typeof first === 'number' ? first : (Object(first) as { affectedRows?: unknown }).affectedRows;
  if (typeof count === 'number') return { rows: [], count };
  const rows = (Array.isArray(first) ? first : result) as Row[];
  if (Array.isArray(rows)) return { rows, count: rows.length };
  throw new StorageError('MySQL returned no result', 'query of mysqlStorage must return the result');
}
