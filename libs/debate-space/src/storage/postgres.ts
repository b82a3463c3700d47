import { StorageError } from '../errors.js';
import { onConflict, takeStatement, type Database, type Query, type Row } from './database.js';
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

/** A `pg.Pool`. */
export interface PostgresPool {
  query(text: string, values?: unknown[]): Promise<unknown>;
  connect(callback: (error: Error | undefined, client: PostgresClient | undefined) => void): unknown;
}
/** A client of a {@link PostgresPool}. */
export interface PostgresClient {
  query(text: string, values?: unknown[]): Promise<unknown>;
  release(destroy?: boolean): void;
  on?(event: 'error', listener: () => void): unknown;
  off?(event: 'error', listener: () => void): unknown;
}

/** How the storage reaches Postgres. The pool, or the ORM, stays the host's: the storage does not close it. */
export type PostgresStorageOptions = ({ readonly pool: PostgresPool } | HostFunctions) &
  ServerOptions & {
    /** The schema of the tables, which must exist: its exact name. @defaultValue `public` */
    readonly schema?: string;
  };

/**
 * Keeps everything in tables of Postgres 12 or later, whose names begin with `debate_space_`.
 *
 * @example
 * storage: postgresStorage({ pool: new pg.Pool({ connectionString: process.env.DATABASE_URL }) })
 */
export function postgresStorage(options: PostgresStorageOptions): StorageEngine {
  return {
    name: 'postgres',
    durable: true,
    guarantee:
      'survives crashes of the app, and is as durable as this Postgres, which with synchronous_commit loses nothing',
    open: (application) => open(options, application),
  };
}

// Stable within a statement: clock_timestamp() is volatile, and a volatile bound uses no index.
const NOW = '(extract(epoch FROM statement_timestamp()) * 1000)::bigint';
/** Two processes that create the tables at once would fail. */
const LOCK = 'SELECT pg_advisory_xact_lock(7234501)::text';
const CREATE_TIMEOUT_MS = 60_000;

const BEGIN = ['BEGIN ISOLATION LEVEL READ COMMITTED'];
const DEFAULT_SCHEMA = 'public';

/** @throws {@link StorageError} when `schema` cannot be the name of one */
export function tablePrefix(schema = DEFAULT_SCHEMA): string {
  if (/^[\w-]{1,63}$/.test(schema)) return `"${schema}".`;
  const hint = 'give the name of a schema, of letters, digits, _ and -';
  throw new StorageError('The option schema of postgresStorage is not usable', hint);
}

async function open(options: PostgresStorageOptions, application: string): Promise<OpenStorage> {
  const { schema = DEFAULT_SCHEMA, migrate = true, timeoutMs } = options;
  const prefix = tablePrefix(schema);
  const connection =
    'pool' in options ? throughPool(() => connected(options.pool), BEGIN) : throughFunctions(options);
  const calls = new ServerCalls('Postgres', timeoutMs);
  const database = dialect(onServer(connection, calls, queryOf));

  const [server = {}] = (await database.query(SERVER, [schema, ...TABLES])).rows;
  if (Number(server.version) < 120_000)
    throw new StorageError(
      `This is Postgres ${Math.floor(Number(server.version) / 10_000)}`,
      'use Postgres 12 or later',
    );
  if (server.replica === 'true')
    throw new StorageError('This Postgres is a read replica', 'connect to the primary');
  if (migrate && Number(server.tables) < TABLES.length) {
    const create = async (run: HostQuery): Promise<void> => {
      for (const statement of [LOCK, ...tablesOf('postgres', prefix)]) await run(statement, []);
    };
    await calls.run((late) => connection.transaction(create, late), CREATE_TIMEOUT_MS);
  }
  await checkRights(
    database.query,
    TABLES.map((table) => prefix + table),
  );

  const storage = new SqlStorage(database, application, {
    prefix,
    within: (host) => dialect(inHostTransaction(host, queryOf)),
  });
  await storage.open();
  const warnings = ['fsync', 'synchronous_commit'].filter((setting) => server[setting] === 'off');
  return {
    storage,
    place: `the schema ${schema} of the database ${String(server.place)}`,
    warnings: warnings.map((setting) => ({
      problem: `This Postgres may lose its last commits in a crash (${setting} = off)`,
      hint: `set ${setting} = on`,
    })),
  };
}

// As text, which every driver returns alike.
const SERVER = `SELECT current_setting('server_version_num') AS version, pg_is_in_recovery()::text AS replica,
  current_database() || coalesce(' on ' || host(inet_server_addr()), '') AS place,
  current_setting('fsync') AS fsync, current_setting('synchronous_commit') AS synchronous_commit,
  (SELECT count(*)::text FROM pg_catalog.pg_tables
   WHERE schemaname = ? AND tablename IN (${TABLES.map(() => '?').join(', ')})) AS tables`;

/** The statement rejects, too; without a listener, the process would end. */
const ignore = (): void => undefined;

/**
 * By callback: until a promise resolves, the client would have no listener, and an error that came with the last message of
 * the handshake would end the process.
 */
function connected(pool: PostgresPool): Promise<PooledConnection> {
  return new Promise((resolve, reject) => {
    pool.connect((error, client) => {
      if (!client) {
        reject(error ?? new Error('the pool gave no client'));
        return;
      }
      client.on?.('error', ignore);
      const end = (how: 'release' | 'cut'): void => {
        client.off?.('error', ignore);
        client.release(how === 'cut');
      };
      resolve({ query: (text, values) => client.query(text, values), end });
    });
  });
}

function dialect(statements: Pick<Database, 'query' | 'transaction' | 'close'>): Database {
  return {
    dialect: 'postgres',
    now: NOW,
    dueQueue: 'queue',
    forUpdate: 'FOR UPDATE',
    ...onConflict,
    ...statements,
    take: async (take) => {
      const text = takeStatement(take, 'MATERIALIZED', 'FOR UPDATE SKIP LOCKED');
      return (await statements.query(text, take.values.flat())).rows;
    },
  };
}

/** Numbers the placeholders, and has each change return a row for each row that it changes: drivers count differently. */
function queryOf(run: HostQuery): Query {
  return async (text, values = []) => {
    const isChange = /^\s*(INSERT|UPDATE|DELETE)/.test(text) && !text.includes('RETURNING');
    let n = 0;
    const numbered = text.replaceAll('?', () => `$${(n += 1)}`) + (isChange ? ' RETURNING 1 AS changed' : '');
    const rows = rowsOf(await run(numbered, values.map(whole)));
    return { rows, count: rows.length };
  };
}

/** Times are computed, and may have fractions; a `bigint` of Postgres refuses them. */
function whole(value: unknown): unknown {
  return typeof value === 'number' ? Math.round(value) : value;
}

function rowsOf(result: unknown): readonly Row[] {
  const rows = Array.isArray(result) ? (result as unknown[]) : (Object(result) as { rows?: unknown }).rows;
  if (!Array.isArray(rows))
    throw new StorageError('Postgres returned no rows', 'query of postgresStorage must return the result');
  return (Array.isArray(rows[0]) ? rows[0] : rows) as Row[]; // TypeORM returns [rows, count] for a change
}
