import { StorageError } from '../errors.js';
import { onConflict, takeStatement, type Database, type Query, type Row } from './database.js';
import { migrate, type Tables } from './migration.js';
import { probe, probeRow } from './probe.js';
import { DEFAULT_SCHEMA, tablePrefix, TABLES } from './schema.js';
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

/** A `pg.Pool`. */
export interface PostgresPool {
  query(text: string, values?: unknown[]): Promise<unknown>;
  connect(callback: (error: Error | undefined, client: PostgresClient | undefined) => void): unknown;
  /** Of it, the storage takes half of the connections, and five at most. */
  readonly options?: { readonly max?: number };
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

/*
 * Stable within a statement: clock_timestamp() is volatile, and a volatile bound uses no index. All types are exact, here and
 * below: Postgres would prefer an operator or a function that somebody made for the types of the statement.
 */
const NOW = '(extract(epoch FROM statement_timestamp())::double precision * 1000::double precision)::bigint';
/** Two processes that create the tables at once would fail. The transactions before them may take long. */
const LOCK = 'SELECT pg_catalog.pg_advisory_xact_lock(7234501::bigint)::text';
const MIGRATION_TIMEOUT_MS = 60_000;
/** How long a migration waits for a table, with all other statements behind it. */
const LOCK_TIMEOUT_MS = 10_000;

async function open(options: PostgresStorageOptions, application: string): Promise<OpenStorage> {
  const { schema = DEFAULT_SCHEMA, migrate: isAllowed = true, timeoutMs = CALL_TIMEOUT_MS } = options;
  const prefix = tablePrefix('postgres', schema);
  const isPool = 'pool' in options;
  // The server gives up as well: a statement that waits for a lock would keep its place.
  const limit = `SET LOCAL statement_timeout = ${Math.ceil(timeoutMs)}`;
  const connection = isPool
    ? throughPool(() => connected(options.pool), [`BEGIN ISOLATION LEVEL READ COMMITTED; ${limit}`])
    : throughFunctions(options);
  const calls = new ServerCalls(
    'Postgres',
    timeoutMs,
    isPool ? (options.pool as PostgresPool | undefined)?.options?.max : undefined,
  );
  const database = dialect(onServer(connection, calls, queryOf, isPool ? undefined : limit));

  await probeRow(database.query);
  const [server = {}] = (await database.query(SERVER)).rows;
  checkServer(server);
  const tables: Tables = {
    dialect: 'postgres',
    place: options.schema,
    found: async (query) => checkTables((await query(FOUND, [schema, ...TABLES])).rows),
    locked: (work) =>
      calls.run(
        (late) =>
          connection.transaction(async (run) => {
            await run(`SET LOCAL statement_timeout = ${MIGRATION_TIMEOUT_MS}`, []);
            await run(LOCK, []);
            await run(`SET LOCAL lock_timeout = ${LOCK_TIMEOUT_MS}`, []);
            await work(queryOf(run));
          }, late),
        MIGRATION_TIMEOUT_MS,
      ),
  };
  await migrate(tables, database.query, isAllowed);
  await tables.found(database.query); // what this process has not created
  await probe(database, prefix);

  const storage = new SqlStorage(database, application, {
    prefix,
    within: (host) => database.inside(queryOf((text, values) => host.query(text, values))),
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
  current_database()::text || coalesce(' on ' || host(inet_server_addr()), '') AS place,
  current_setting('fsync') AS fsync, current_setting('synchronous_commit') AS synchronous_commit`;

/** @throws {@link StorageError} when the server is too old, or no primary */
function checkServer({ version, replica }: Row): void {
  if (Number(version) < 120_000)
    throw new StorageError(
      `This is Postgres ${Math.floor(Number(version) / 10_000)}`,
      'use Postgres 12 or later',
    );
  if (replica === 'true') throw new StorageError('This Postgres is a read replica', 'connect to the primary');
}

/*
 * Triggers, rules and defaults of a table run with the rights of the app. Whoever may replace the table anyway is trusted:
 * the owners of the schema and of the database, superusers, and roles that the app belongs to.
 */
const FOUND = `SELECT c.relname::text AS name, c.relkind::text AS kind, pg_get_userbyid(c.relowner)::text AS owner,
  (o.rolsuper OR pg_has_role(c.relowner, 'MEMBER') OR c.relowner = n.nspowner OR c.relowner = d.datdba)::text AS trusted,
  EXISTS (SELECT 1 FROM pg_catalog.pg_trigger t WHERE t.tgrelid = c.oid AND NOT t.tgisinternal)::text AS triggers,
  EXISTS (SELECT 1 FROM pg_catalog.pg_rewrite w WHERE w.ev_class = c.oid)::text AS rules
  FROM pg_catalog.pg_class c JOIN pg_catalog.pg_namespace n ON n.oid = c.relnamespace
  JOIN pg_catalog.pg_roles o ON o.oid = c.relowner JOIN pg_catalog.pg_database d ON d.datname = current_database()
  WHERE n.nspname = ? AND c.relname IN (${TABLES.map(() => '?').join(', ')})`;

/** @returns how many there are @throws {@link StorageError} when one of them would run what others wrote */
function checkTables(tables: readonly Row[]): number {
  for (const { name, kind, owner, trusted, triggers, rules } of tables) {
    const table = `The table ${String(name)}`;
    if (!['r', 'p'].includes(String(kind)))
      throw new StorageError(`${table} is not a table (${String(kind)})`, 'rename the relation of this name');
    if (trusted !== 'true')
      throw new StorageError(
        `${table} belongs to the role ${String(owner)}, which could run code with the rights of this app`,
        `ALTER TABLE ${String(name)} OWNER TO the role of the app, or to the owner of the schema or the database`,
      );
    if (triggers === 'true' || rules === 'true')
      throw new StorageError(
        `${table} has a ${rules === 'true' ? 'rule' : 'trigger'}, which runs with the rights of this app`,
        'drop it; to follow changes, use logical replication',
      );
  }
  return tables.length;
}

/** The statement rejects, too; without a listener, the process would end. */
const ignore = (): void => undefined;

/**
 * By callback: until a promise resolves, the client would have no listener, and an error that came with the last message of
 * the handshake would end the process.
 */
function connected(pool: PostgresPool): Promise<PooledConnection> {
  return new Promise((resolve, reject) => {
    if (typeof (pool as Partial<PostgresPool> | null)?.connect !== 'function') throw noPool();
    pool.connect((error, client) => {
      if (!client || typeof client.release !== 'function') {
        reject(error && !error.message.includes('been connected') ? error : noPool());
        return;
      }
      client.on?.('error', ignore);
      const end = (how: 'release' | 'close'): void => {
        client.off?.('error', ignore);
        client.release(how === 'close');
      };
      resolve({ query: (text, values) => client.query(text, values), end });
    });
  });
}

const noPool = (): StorageError =>
  new StorageError('The option pool of postgresStorage is not a pool', 'give a pg.Pool, not a single client');

function dialect(statements: Statements): Database {
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
    inside: (query) => dialect(inTransaction(query)),
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
