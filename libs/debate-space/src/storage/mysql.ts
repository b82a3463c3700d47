import { StorageError } from '../errors.js';
import { insertedRows, type Database, type Query, type Row, type Take } from './database.js';
import { migrate, type Tables } from './migration.js';
import { probe, probeRow } from './probe.js';
import { tablePrefix, TABLES } from './schema.js';
import {
  CALL_TIMEOUT_MS,
  inTransaction,
  onServer,
  ServerCalls,
  throughFunctions,
  throughPool,
  type HostFunctions,
  type HostQuery,
  type PooledConnection,
  type ServerOptions,
  type Statements,
} from './server-calls.js';
import { SqlStorage } from './sql-storage.js';
import type { OpenStorage, StorageEngine } from './engine.js';

/** A pool of `mysql2` or `mysql2/promise`, or of the promise API of `mariadb`. */
export interface MysqlPool {
  /** Returns a promise, unless there is `promise`. */
  getConnection(...callback: never[]): unknown;
  /** The pool of callbacks of `mysql2` has another one for promises. */
  promise?(): MysqlPool;
}
/** A connection of a {@link MysqlPool}. */
export interface MysqlConnection {
  query(text: string, values?: unknown[]): Promise<unknown>;
  release(): unknown;
  destroy(): void;
}

/** How the storage reaches MySQL or MariaDB. The pool, or the ORM, stays the host's: the storage does not close it. */
export type MysqlStorageOptions = ({ readonly pool: MysqlPool } | HostFunctions) &
  ServerOptions & {
    /** The beginning of the names of the tables, before `debate_space_`: letters, digits and `_`. @defaultValue `''` */
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
const MIGRATION_TIMEOUT_MS = 60_000;
/** How long a migration waits for other processes, and then for a table, with all other statements behind it. */
const LOCK_TIMEOUT_S = { process: 40, table: 10 };

// READ COMMITTED has no gap locks, on which claims and inserts would deadlock. It is for the next transaction only.
const BEGIN = ['SET TRANSACTION ISOLATION LEVEL READ COMMITTED', 'START TRANSACTION'];

async function open(options: MysqlStorageOptions, application: string): Promise<OpenStorage> {
  const { migrate: isAllowed = true, timeoutMs = CALL_TIMEOUT_MS } = options;
  const prefix = tablePrefix('mysql', options.prefix);
  const pool = 'pool' in options ? promisePool(options.pool) : undefined;
  const connection = pool
    ? throughPool(() => connected(pool), BEGIN)
    : throughFunctions(options as HostFunctions);
  const calls = new ServerCalls('MySQL', timeoutMs, connectionsOf(pool));
  const plain = queryOf();

  const { query } = onServer(connection, calls, plain);
  await probeRow(query);
  const [server = {}] = (await query(SERVER)).rows;
  checkVersion(String(server.version));
  // MariaDB gives up as well: a statement that waits for a lock would keep its place. ORMs look at the first word of a statement.
  const isLimited = pool !== undefined && /mariadb/i.test(String(server.version));
  const limit = isLimited ? `SET STATEMENT max_statement_time = ${timeoutMs / 1_000} FOR ` : '';
  const database = dialect(onServer(connection, calls, queryOf(limit)));
  const tables: Tables = {
    dialect: 'mysql',
    place: options.prefix,
    found: async (query) =>
      checkTables(
        (
          await query(
            FOUND,
            TABLES.map((table) => prefix + table),
          )
        ).rows,
      ),
    locked: (work) =>
      calls.run(
        (late) => connection.transaction((run) => locked(plain(run), `debate-space ${prefix}`, work), late),
        MIGRATION_TIMEOUT_MS,
      ),
  };
  await migrate(tables, database.query, isAllowed);
  await probe(database, prefix);

  const storage = new SqlStorage(database, application, {
    prefix,
    within: (host) => database.inside(plain((text, values) => host.query(text, values))),
  });
  await storage.open();
  const flush = 'innodb_flush_log_at_trx_commit';
  const problem = `This MySQL may lose its last commits in a crash (${flush} = ${String(server.flush)})`;
  return {
    storage,
    place: `the database ${String(server.name)} on ${String(server.host)}`,
    warnings: Number(server.flush) === 1 ? [] : [{ problem, hint: `set ${flush} = 1` }],
  };
}

const SERVER = `SELECT VERSION() AS version, DATABASE() AS name, @@hostname AS host, @@innodb_flush_log_at_trx_commit AS flush`;
const FOUND = `SELECT table_name AS name, table_type AS kind FROM information_schema.tables
  WHERE table_schema = DATABASE() AND table_name IN (${TABLES.map(() => '?').join(', ')})`;

/** @returns how many there are @throws {@link StorageError} when one is a view: it reads and writes elsewhere */
function checkTables(tables: readonly Row[]): number {
  for (const { name, kind } of tables)
    if (kind !== 'BASE TABLE')
      throw new StorageError(
        `The table ${String(name)} is a ${String(kind)}`,
        'rename the view of this name',
      );
  return tables.length;
}

/** At most 64 letters. The name of a database may have so many. */
const LOCK_NAME = "SHA2(CONCAT(?, COALESCE(DATABASE(), '')), 224)";

/** In the connection of a transaction, which each statement of a migration commits. */
async function locked(query: Query, lock: string, work: (query: Query) => Promise<void>): Promise<void> {
  const text = `SELECT GET_LOCK(${LOCK_NAME}, ${LOCK_TIMEOUT_S.process}) AS is_mine, @@lock_wait_timeout AS seconds`;
  const [row = {}] = (await query(text, [lock])).rows;
  if (Number(row.is_mine) !== 1)
    throw new StorageError('Another process is changing the tables', 'wait for it', { unreachable: true });
  try {
    await query(`SET SESSION lock_wait_timeout = ${LOCK_TIMEOUT_S.table}`);
    await work(query);
  } finally {
    await query(`SET SESSION lock_wait_timeout = ${Number(row.seconds)}`);
    await query(`SELECT RELEASE_LOCK(${LOCK_NAME}) AS is_released`, [lock]);
  }
}

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

/** @throws {@link StorageError} when it is not a pool, such as a single connection */
function promisePool(pool: MysqlPool): MysqlPool {
  const given = pool as Partial<MysqlPool> | null | undefined;
  const promised = typeof given?.promise === 'function' ? given.promise() : pool;
  if (typeof (promised as typeof given)?.getConnection === 'function') return promised;
  throw noPool();
}

const noPool = (): StorageError =>
  new StorageError(
    'The option pool of mysqlStorage is not a pool of promises',
    'give a pool of mysql2 or of mariadb: createPool(…), not a single connection',
  );

/** How many connections a pool of mysql2 has at most. */
function connectionsOf(pool: MysqlPool | undefined): unknown {
  const { pool: inner, config } = Object(pool) as Record<'pool' | 'config', unknown>;
  const { config: outer = config } = Object(inner) as Record<'config', unknown>;
  return (Object(outer) as { connectionLimit?: unknown }).connectionLimit;
}

async function connected(pool: MysqlPool): Promise<PooledConnection> {
  const connection = (await pool.getConnection(...([noCallback] as never[]))) as MysqlConnection | undefined;
  if (typeof connection?.release !== 'function') throw noPool();
  const end = (how: 'release' | 'close'): void => {
    if (how === 'release') void connection.release();
    else connection.destroy();
  };
  return { query: (text, values) => connection.query(text, values), end };
}

/** A pool of callbacks throws without one, in the middle of the process. */
const noCallback = (_error: unknown, connection?: Partial<MysqlConnection>): void =>
  void connection?.release?.();

function dialect(statements: Statements): Database {
  return {
    dialect: 'mysql',
    now: NOW,
    dueQueue: 'due_queue',
    forUpdate: 'FOR UPDATE',
    ...statements,
    take: (take) => statements.transaction((query) => lockThenUpdate(query, take)),
    // Not ON DUPLICATE KEY UPDATE id = id, which counts rows that are there as well if the driver wants found rows.
    insertNew: (...rows) => `INSERT IGNORE ${insertedRows(...rows)}`,
    inside: (query) => dialect(inTransaction(query)),
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

/** Text that is quoted alike in every mode of the server. */
const PLAIN = /^[ !#-&(-[\]-~]*$/;

/** @param limit what each statement begins with */
const queryOf =
  (limit = '') =>
  (run: HostQuery): Query =>
  async (text, values = []) => {
    const given = values.map((value) => (typeof value === 'string' ? asAscii(value) : value));
    const isTooLong = (value: unknown): boolean => String(value).length > MAX_TEXT_BYTES;
    if (text.startsWith('INSERT IGNORE') && given.some(isTooLong))
      throw new StorageError(
        `A text is longer than ${MAX_TEXT_BYTES} bytes`,
        'shorten it: MySQL would cut it',
      );
    // Drivers escape by a mode that they do not know: with NO_BACKSLASH_ESCAPES, a text could end its own quotes.
    const isPlain = (value: unknown): boolean => typeof value !== 'string' || PLAIN.test(value);
    let n = -1;
    const statement = text.replaceAll('?', () => {
      const value = given[(n += 1)];
      return isPlain(value) ? '?' : `_utf8mb4 X'${Buffer.from(String(value)).toString('hex')}'`;
    });
    const isChange = /^\s*(INSERT|UPDATE|DELETE)/.test(text);
    return resultOf(await run(limit + statement, given.filter(isPlain)), isChange);
  };

/** Begins a text with characters that a connection may lack: that of TypeORM has no emojis, others are in latin1. */
const ESCAPED = '\\u:';
function asAscii(text: string): string {
  if (/^[\0-~]*$/.test(text) && !text.startsWith(ESCAPED)) return text;
  const codeOf = (unit: string): string => `\\u${unit.charCodeAt(0).toString(16).padStart(4, '0')}`;
  return `${ESCAPED}${JSON.stringify(text)
    .slice(1, -1)
    .replace(/[^ -~]/g, codeOf)}`;
}
const fromAscii = (value: unknown): unknown =>
  typeof value === 'string' && value.startsWith(ESCAPED)
    ? JSON.parse(`"${value.slice(ESCAPED.length)}"`)
    : value;

/** In place: a hundred thousand rows are read in a minute. Anything but an object is for the probe to name. */
function rowOf(row: unknown): Row {
  if (typeof row === 'object' && row !== null)
    for (const [name, value] of Object.entries(row))
      (row as Record<string, unknown>)[name] = fromAscii(value);
  return row as Row;
}

/** Rows, or `[rows, fields]`; of a change a header, `[header, fields]`, or a number. Kysely has names of its own. */
function resultOf(
  result: unknown,
  isChange: boolean,
): { readonly rows: readonly Row[]; readonly count: number } {
  const first: unknown = Array.isArray(result) ? result[0] : result;
  const { affectedRows, numAffectedRows = affectedRows } = Object(first) as Record<string, unknown>;
  const count = typeof first === 'number' ? first : numAffectedRows;
  if (typeof count === 'number' || typeof count === 'bigint') return { rows: [], count: Number(count) };
  const rows: unknown = Array.isArray(first)
    ? first
    : ((Object(result) as { rows?: unknown }).rows ?? result);
  if (!Array.isArray(rows))
    throw new StorageError('MySQL returned no result', 'query of mysqlStorage must return the result');
  if (isChange)
    throw new StorageError(
      'MySQL returned no number of changed rows',
      'query of mysqlStorage must return the header or the number for INSERT, UPDATE and DELETE: $executeRawUnsafe of Prisma does',
    );
  return { rows: rows.map(rowOf), count: rows.length };
}
