import { afterAll, beforeAll, expect, it } from '@jest/globals';
import { AsyncLocalStorage } from 'node:async_hooks';
import { createPool as callbackPool, type Pool as CallbackPool, type PoolConnection } from 'mysql2';
import {
  createConnection,
  type Pool as MariadbPool,
  type PoolConnection as MariadbConnection,
  type PoolOptions,
} from 'mysql2/promise';
import pg, { type PoolConfig } from 'pg';
import { mariadbServer, startMariadb, type RunningMariadb } from '#support/servers/mariadb.js';
import {
  postgresPool,
  postgresServer,
  startPostgres,
  type RunningPostgres,
} from '#support/servers/postgres.js';
import { mariadbFunctions, mariadbPool, postgresFunctions } from '#support/storages/table-storages.js';
import { StorageError } from '../errors.js';
import { mysqlStorage, type MysqlPool } from './mysql.js';
import { postgresStorage, type PostgresPool } from './postgres.js';
import type { HostFunctions } from './server-calls.js';
import type { StorageEngine } from './engine.js';
import { erasureId } from './rules.js';
import type { Storage } from './storage.js';

const TEXT = `'"\\ é 🗑 \\'`;

/** Delivers a logout and ends an erasure. */
async function expectToWork(storage: Storage): Promise<void> {
  await storage.addLogouts([{ id: '000000000000001-1', subject: 's', sealed: TEXT, details: TEXT }]);
  const [logout] = (await storage.claim('logout', 2)).claims;
  expect(logout).toMatchObject({ sealed: TEXT, details: TEXT });
  if (logout) await storage.finishLogout(logout, 1);
  const request = { reference: TEXT, mode: 'delete', requestedBy: TEXT, requestedAt: 1, mark: 'm' } as const;
  const user = { id: erasureId(TEXT, 'u'), subject: 'u', formerIds: [], sealed: TEXT };
  await storage.addErasures({ ...request, list: undefined, known: undefined }, [user]);
  const [erasure] = (await storage.claim('erasure', 2)).claims;
  if (!erasure || !(await storage.markSending(erasure, 'sent')))
    throw new Error('the erasure was not claimed');
  const { finished } = await storage.finishErasure(erasure, 'erased', 1, TEXT);
  expect(finished).toMatchObject({ reference: TEXT, requestedBy: TEXT });
  expect((await storage.receipts(TEXT, 2)).map(({ job }) => job.details)).toEqual([TEXT]);
  expect(await storage.counts('logout')).toMatchObject({ waiting: 0, parked: 0 });
}

/** @returns its message, or `works` */
async function resultOf(engine: StorageEngine, rows: () => Promise<number>): Promise<string> {
  try {
    const { storage } = await engine.open('app');
    try {
      expect(await rows()).toBe(0); // the probe leaves nothing
      await expectToWork(storage);
    } finally {
      await storage.close();
    }
    return 'works';
  } catch (error) {
    if (error instanceof StorageError) return error.message;
    throw error;
  }
}

const camel = (row: object): object =>
  Object.fromEntries(
    Object.entries(row).map(([name, value]) => [
      name.replace(/_(.)/g, (_, letter: string) => letter.toUpperCase()),
      value as unknown,
    ]),
  );
const renamed =
  /difference in the names of columns; most likely the driver or the ORM renames columns; hint: /;
const arrays = /difference in the row of a SELECT; most likely the driver returns arrays/;
const numbers = /difference in a large number; most likely a type parser of the driver rounds bigint/;
const shared =
  /difference in a row that is not committed; most likely query and transaction share one connection/;
const kept = /difference in a row that was rolled back; most likely .* transaction does not roll back/;
const hidden = /difference in .*; most likely rows are hidden.*; hint: .* row-level security .* autocommit/;
const readOnly = /(25006|1290|1792): read-only\); hint: connect to the primary/;
const column = /(42703|1054): a column is missing\); hint: /;
const small = /(22003|22001|1264): a column is too small\); hint: somebody has changed its type/;
const noPool = /^The option pool of \w+ is not a pool.*; hint: give a .*[pP]ool/;
const noKey = /difference in a row that is added twice; most likely the table has lost its primary key/;

/** What may be in the place of a pool; the tables are there. */
interface SetUp {
  readonly name: string;
  readonly result: 'works' | RegExp;
}

postgresServer.describe('set-ups of Postgres', () => {
  interface PostgresSetUp extends SetUp {
    readonly config?: PoolConfig;
    readonly functions?: (functions: HostFunctions, pool: pg.Pool) => Partial<HostFunctions>;
    /** As the administrator, when the role `app` has created the tables. */
    readonly run?: string;
    readonly pool?: (config: PoolConfig) => unknown;
    readonly schema?: string;
  }
  const set = (name: string, options: string, result: SetUp['result'] = 'works'): PostgresSetUp => ({
    name,
    config: { options },
    result,
  });
  const parsed = (parse: (text: string) => unknown): PoolConfig['types'] => ({
    getTypeParser: (oid: number, format?: string): unknown =>
      oid === 20 ? parse : (pg.types.getTypeParser as (...type: unknown[]) => unknown)(oid, format),
  });
  const tables = (name: string, run: string, result: SetUp['result']): PostgresSetUp => ({
    name,
    run,
    result,
  });
  /** Ends each transaction alike, whatever becomes of the work. */
  const always =
    (end: 'COMMIT' | 'ROLLBACK'): PostgresSetUp['functions'] =>
    (_, pool) => ({
      transaction: async (work) => {
        const client = await pool.connect();
        try {
          await client.query('BEGIN');
          return await work((text, values) => client.query(text, values));
        } finally {
          await client.query(end);
          client.release();
        }
      },
    });
  const setUps: readonly PostgresSetUp[] = [
    { name: 'a pool of one connection', config: { max: 1 }, result: 'works' },
    set('serializable transactions', '-c default_transaction_isolation=serializable'),
    set('standard_conforming_strings = off', '-c standard_conforming_strings=off'),
    set('another search_path', '-c search_path=nowhere'),
    set('another time zone', '-c timezone=America/New_York -c datestyle=SQL,DMY'),
    set('read-only transactions', '-c default_transaction_read_only=on', readOnly),
    set('a short statement_timeout', '-c statement_timeout=1', /57014: the server gave up\); hint: /),
    { name: 'bigint as BigInt', config: { types: parsed(BigInt) }, result: 'works' },
    { name: 'bigint as an object', config: { types: parsed((text) => ({ text })) }, result: numbers },
    { name: 'a client', pool: (to) => new pg.Client(to).on('error', () => undefined), result: noPool },
    { name: 'nothing', pool: () => undefined, result: noPool },
    { name: 'functions', functions: () => ({}), result: 'works' },
    { name: 'functions of a pool of one', config: { max: 1 }, functions: () => ({}), result: 'works' },
    {
      name: 'no functions',
      functions: () => ({ query: undefined }),
      result: /^The storage has no connection; hint: give the option pool, or query and transaction/,
    },
    {
      name: 'rows as arrays',
      functions: (_, pool) => ({ query: (text, values) => pool.query({ text, values, rowMode: 'array' }) }),
      result: arrays,
    },
    {
      name: 'names in camel case',
      functions: (_, pool) => ({
        query: async (text, values) => (await pool.query<object>(text, values)).rows.map(camel),
      }),
      result: renamed,
    },
    {
      name: 'a query function that returns nothing',
      functions: () => ({ query: () => Promise.resolve(undefined) }),
      result: /^Postgres returned no rows; hint: query of postgresStorage must return the result/,
    },
    {
      name: 'a transaction function that begins none',
      functions: (host) => ({ transaction: (work) => work((text, values) => host.query(text, values)) }),
      result: shared,
    },
    { name: 'a transaction function that always commits', functions: always('COMMIT'), result: kept },
    {
      name: 'a transaction function that never commits',
      functions: always('ROLLBACK'),
      run: 'SELECT 1', // the tables are there
      result: hidden,
    },
    {
      name: 'Postgres 11',
      functions: (host) => ({
        query: async (text, values) =>
          text.includes('server_version_num') ? [{ version: '110022' }] : host.query(text, values),
      }),
      result: /^This is Postgres 11; hint: use Postgres 12 or later/,
    },
    { name: 'no such schema', schema: 'missing', result: /3F000: no such schema\); hint: create it/ },
    { name: 'a schema that cannot be', schema: 'a"b', result: /^The option schema .* hint: give the name/ },
    { name: 'no such database', config: { database: 'missing' }, result: /3D000: no such database/ },
    {
      name: 'no such role',
      config: { user: 'missing' },
      result: /28000: the server does not let this user in/,
    },
    { name: 'TLS', config: { ssl: true }, result: /TLS failed\); hint: see whether the server speaks TLS/ },
    tables(
      'a row-level policy',
      'ALTER TABLE debate_space_jobs ENABLE ROW LEVEL SECURITY; ALTER TABLE debate_space_jobs FORCE ROW LEVEL SECURITY; CREATE POLICY w ON debate_space_jobs FOR INSERT WITH CHECK (true)',
      hidden,
    ),
    tables(
      'no right to delete',
      'ALTER TABLE debate_space_rate OWNER TO postgres; GRANT SELECT, INSERT, UPDATE ON debate_space_rate TO app',
      'works',
    ),
    tables(
      'no right to read',
      'ALTER TABLE debate_space_facts OWNER TO postgres',
      /42501: no right to do this\); hint: grant/,
    ),
    tables(
      'an owner who is a stranger',
      'ALTER TABLE debate_space_rate OWNER TO stranger; GRANT ALL ON debate_space_rate TO app',
      /^The table debate_space_rate belongs to the role stranger, which could run code .*; hint: ALTER TABLE/,
    ),
    tables(
      'a trigger',
      `CREATE FUNCTION f() RETURNS trigger LANGUAGE plpgsql AS 'BEGIN RETURN NEW; END'; CREATE TRIGGER t BEFORE INSERT ON debate_space_jobs FOR EACH ROW EXECUTE FUNCTION f()`,
      /has a trigger, which runs with the rights of this app; hint: drop it/,
    ),
    tables(
      'a rule',
      'CREATE RULE r AS ON INSERT TO debate_space_jobs DO ALSO SELECT 1',
      /has a rule, which runs/,
    ),
    tables(
      'a view',
      'ALTER TABLE debate_space_rate RENAME TO r; CREATE VIEW debate_space_rate AS SELECT * FROM r',
      /is not a table \(v\); hint/,
    ),
    tables('a column that was dropped', 'ALTER TABLE debate_space_jobs DROP hint', column),
    tables('a column of another type', 'ALTER TABLE debate_space_sessions ALTER expires_at TYPE int', small),
    tables('a short column', 'ALTER TABLE debate_space_jobs ALTER hint TYPE varchar(20)', small),
    tables('no primary key', 'ALTER TABLE debate_space_jobs DROP CONSTRAINT debate_space_jobs_pkey', noKey),
    tables(
      'another key',
      'ALTER TABLE debate_space_jobs RENAME CONSTRAINT debate_space_jobs_pkey TO k',
      'works',
    ),
  ];

  let postgres: RunningPostgres;
  let root: pg.Pool;
  let places = 0;
  beforeAll(async () => {
    postgres = await startPostgres('on');
    root = postgresPool({ ...postgres, max: 1 });
    await root.query('CREATE ROLE app LOGIN; CREATE ROLE stranger; GRANT app TO postgres');
  });
  afterAll(async () => {
    await root.end();
    await postgres.stop();
  });

  it.each(setUps)('work, or are refused by their name: $name', async (setUp) => {
    const { config, functions, run, result } = setUp;
    const schema = `place_${(places += 1)}`;
    await root.query(`CREATE SCHEMA ${schema} AUTHORIZATION app; SET search_path = ${schema}`);
    await root.query(`GRANT CREATE, USAGE ON SCHEMA ${schema} TO stranger`);
    const to = { host: '127.0.0.1', port: postgres.port, user: 'app', database: 'postgres', ssl: false };
    const made = postgresPool({ ...to, ...config });
    const place = { schema: setUp.schema ?? schema };
    const options = functions
      ? { ...postgresFunctions(made), ...functions(postgresFunctions(made), made) }
      : { pool: (setUp.pool ? setUp.pool(to) : made) as PostgresPool };
    if (run !== undefined) {
      await (await postgresStorage({ pool: made, ...place }).open('app')).storage.close();
      await root.query(run);
    }
    const rows = async (): Promise<number> =>
      (await root.query('SELECT 1 FROM debate_space_jobs')).rows.length;
    const found = await resultOf(postgresStorage({ ...(options as HostFunctions), ...place }), rows);
    await made.end();
    if (typeof result === 'string') expect(found).toBe(result);
    else expect(found).toMatch(result);
  });

  it('are warned of when the last commits may be lost', async () => {
    await root.query('CREATE SCHEMA "My-App"');
    const pool = postgresPool({ ...postgres, options: '-c synchronous_commit=off' });
    const { storage, warnings } = await postgresStorage({ pool, schema: 'My-App' }).open('app');
    await storage.close();
    await pool.end();
    expect(warnings).toMatchObject(
      [{ problem: /synchronous_commit = off/ }].map(() => ({ hint: 'set synchronous_commit = on' })),
    );
  });

  it('do not draw the storage into a transaction that the host keeps in its own async context', async () => {
    const pool = postgresPool(postgres);
    await root.query('CREATE SCHEMA als');
    const transactions = new AsyncLocalStorage<pg.PoolClient>();
    const functions: HostFunctions = {
      ...postgresFunctions(pool),
      query: (text, values) => (transactions.getStore() ?? pool).query(text, values),
    };
    const { storage } = await postgresStorage({ ...functions, schema: 'als' }).open('app');
    const client = await pool.connect();
    await client.query('BEGIN');
    await transactions.run(client, () => expectToWork(storage));
    await client.query('ROLLBACK');
    client.release();
    expect(await storage.logoutsOf(['s'])).toMatchObject([{ outcome: 'delivered' }]);
    await storage.close();
    await pool.end();
  });
});

mariadbServer.describe('set-ups of MySQL and MariaDB', () => {
  interface MariadbSetUp extends SetUp {
    readonly options?: PoolOptions;
    /** A statement on each new connection. */
    readonly set?: string;
    readonly functions?: (functions: HostFunctions, pool: MariadbPool) => Partial<HostFunctions>;
    readonly run?: string;
    readonly pool?: (uri: string) => Promise<unknown>;
    readonly prefix?: string;
  }
  const each = (names: readonly string[], set: (name: string) => string, result: SetUp['result'] = 'works') =>
    names.map((name) => ({ name, set: set(name), result }));
  const mode = (name: string): string => `SET sql_mode = '${name}'`;
  const tables = (name: string, run: string, result: SetUp['result']): MariadbSetUp => ({
    name,
    run,
    result,
  });
  const versions = (list: readonly string[], result: SetUp['result']): MariadbSetUp[] =>
    list.map((version) => ({
      name: version,
      functions: (host) => ({
        query: async (text, values) => {
          const rows = await host.query(text, values);
          return text.includes('VERSION()') ? [{ ...(rows as object[])[0], version }] : rows;
        },
      }),
      result,
    }));
  const setUps: readonly MariadbSetUp[] = [
    { name: 'a pool of one connection', options: { connectionLimit: 1 }, result: 'works' },
    { name: 'a pool of callbacks', pool: (uri) => Promise.resolve(callbackPool(uri)), result: 'works' },
    { name: 'a connection', pool: (uri) => createConnection(uri), result: noPool },
    ...each(
      [
        'NO_BACKSLASH_ESCAPES',
        'ANSI_QUOTES',
        'PAD_CHAR_TO_FULL_LENGTH',
        'ONLY_FULL_GROUP_BY',
        'ORACLE',
        'TRADITIONAL',
        '',
      ],
      mode,
    ),
    ...each(
      ['EMPTY_STRING_IS_NULL'],
      mode,
      /difference in an empty text; most likely sql_mode has EMPTY_STRING/,
    ),
    ...each(['autocommit = 0'], (name) => `SET ${name}`, hidden),
    ...each(
      [
        'sql_safe_updates = 1',
        'NAMES latin1',
        `time_zone = '-11:00'`,
        'sql_select_limit = 1',
        `SESSION tx_isolation = 'SERIALIZABLE'`,
        'default_storage_engine = MyISAM',
      ],
      (name) => `SET ${name}`,
    ),
    ...each(
      ['completion_type = CHAIN'],
      (name) => `SET ${name}`,
      /1568: a transaction is open on a connection/,
    ),
    ...each(
      ['binlog_format = STATEMENT'],
      (name) => `SET ${name}`,
      /1665: binlog_format is STATEMENT\); hint: set/,
    ),
    ...each(['tx_read_only = 1'], (name) => `SET ${name}`, readOnly),
    ...each(
      [`SESSION tx_isolation = 'READ-UNCOMMITTED'`],
      (name) => `SET ${name}`,
      /isolation level is READ UNCOMMITTED; hint/,
    ),
    { name: 'utf8mb3, as TypeORM', options: { charset: 'utf8' }, result: 'works' },
    { name: 'rowsAsArray', options: { rowsAsArray: true }, result: arrays },
    {
      name: 'typeCast: false',
      options: { typeCast: false },
      result: /difference in the type of a text; most likely the driver leaves values as bytes/,
    },
    { name: 'nestTables', options: { nestTables: true }, result: renamed },
    {
      name: 'numbers as text',
      options: { supportBigNumbers: true, bigNumberStrings: true, dateStrings: true },
      result: 'works',
    },
    { name: 'named placeholders', options: { namedPlaceholders: true }, result: 'works' },
    {
      name: 'functions of a pool of one',
      options: { connectionLimit: 1 },
      functions: () => ({}),
      result: 'works',
    },
    {
      name: 'prepared statements',
      functions: (_, pool) => ({ query: (text, values) => pool.execute(text, values as string[]) }),
      result: 'works',
    },
    {
      name: 'the rows and the fields, as mysql2',
      functions: (_, pool) => ({ query: (text, values) => pool.query(text, values) }),
      result: 'works',
    },
    {
      name: 'a number of changed rows, as Prisma',
      functions: (host) => ({
        query: async (text, values) => {
          const result = await host.query(text, values);
          return (result as { affectedRows?: number }).affectedRows ?? result;
        },
      }),
      result: 'works',
    },
    {
      name: 'rows and numAffectedRows, as Kysely',
      functions: (host) => ({
        query: async (text, values) => {
          const rows = await host.query(text, values);
          return Array.isArray(rows)
            ? { rows }
            : { rows: [], numAffectedRows: BigInt((rows as { affectedRows: number }).affectedRows) };
        },
      }),
      result: 'works',
    },
    {
      name: 'no number of changed rows',
      functions: (host) => ({
        query: async (text, values) => {
          const rows = await host.query(text, values);
          return Array.isArray(rows) ? (rows as unknown[]) : [];
        },
      }),
      result: /^MySQL returned no number of changed rows; hint: .*executeRawUnsafe/,
    },
    {
      name: 'a query function that returns nothing',
      functions: () => ({ query: () => Promise.resolve(undefined) }),
      result: /^MySQL returned no result; hint: query of mysqlStorage must return the result/,
    },
    {
      name: 'names in camel case',
      functions: (host) => ({
        query: async (text, values) => {
          const rows = await host.query(text, values);
          return Array.isArray(rows) ? rows.map(camel) : rows;
        },
      }),
      result: renamed,
    },
    {
      name: 'a transaction function that begins none',
      functions: (host) => ({ transaction: (work) => work((text, values) => host.query(text, values)) }),
      result: shared,
    },
    {
      name: 'a prefix that cannot be',
      prefix: 'a-b',
      result: /^The option prefix .*; hint: give at most 30/,
    },
    {
      name: 'no database',
      pool: (uri) => Promise.resolve(mariadbPool(uri.replace('/app', ''))),
      result: /1046: no such database\); hint: create it/,
    },
    { name: 'TLS', options: { ssl: {} }, result: /HANDSHAKE_NO_SSL_SUPPORT: TLS failed/ },
    ...versions(
      ['5.7.44-log', '8.0.0', '10.5.29-MariaDB-log'],
      /^This server is too old \(.*\); hint: use MySQL 8.0.1 or later, or MariaDB 10.6/,
    ),
    ...versions(['8.0.1', '9.1.0', '10.6.0-MariaDB', '11.4.2-MariaDB-ubu2404'], 'works'),
    tables('a column that was dropped', 'ALTER TABLE ?jobs DROP hint', column),
    tables('a column of another type', 'ALTER TABLE ?sessions MODIFY expires_at int', small),
    tables('tables without transactions', 'ALTER TABLE ?jobs ENGINE = MyISAM, ROW_FORMAT = DEFAULT', shared),
    tables('no primary key', 'ALTER TABLE ?jobs DROP PRIMARY KEY', noKey),
    tables(
      'a view',
      'RENAME TABLE ?rate TO ?r; CREATE VIEW ?rate AS SELECT * FROM ?r',
      /is a VIEW; hint: rename/,
    ),
    tables('a column in latin1', 'ALTER TABLE ?jobs MODIFY hint text CHARACTER SET latin1', 'works'),
  ];

  let mariadb: RunningMariadb;
  let root: MariadbPool;
  let places = 0;
  beforeAll(async () => {
    mariadb = await startMariadb(['--log-bin=bin', '--server-id=1']);
    root = mariadbPool(mariadb.uri, { multipleStatements: true });
  });
  afterAll(async () => {
    await root.end();
    await mariadb.stop();
  });
  const count = async (table: string): Promise<number> =>
    ((await root.query(`SELECT 1 FROM ${table}`))[0] as unknown[]).length;

  it.each(setUps)('work, or are refused by their name: $name', async (setUp) => {
    const { options, set, functions, run, result, prefix = `p${(places += 1)}_` } = setUp;
    const inner = callbackPool({ uri: mariadb.uri, ...options });
    if (set !== undefined) inner.on('connection', (connection: PoolConnection) => void connection.query(set));
    const made = inner.promise();
    const given = setUp.pool ? await setUp.pool(mariadb.uri) : made;
    const host = functions
      ? { ...mariadbFunctions(made), ...functions(mariadbFunctions(made), made) }
      : { pool: given as MysqlPool };
    if (run !== undefined) {
      await (await mysqlStorage({ pool: made, prefix }).open('app')).storage.close();
      await root.query(run.replaceAll('?', `${prefix}debate_space_`));
    }
    const rows = (): Promise<number> => count(`${prefix}debate_space_jobs`);
    const found = await resultOf(mysqlStorage({ ...host, prefix }), rows);
    await made.end();
    if (given !== made) await (given as MariadbPool | CallbackPool).end();
    if (typeof result === 'string') expect(found).toBe(result);
    else expect(found).toMatch(result);
  });

  it('do not draw the storage into a transaction that the host keeps in its own async context', async () => {
    const pool = mariadbPool(mariadb.uri);
    const transactions = new AsyncLocalStorage<MariadbConnection>();
    const functions: HostFunctions = {
      ...mariadbFunctions(pool),
      query: async (text, values) => (await (transactions.getStore() ?? pool).query(text, values))[0],
    };
    const { storage } = await mysqlStorage({ ...functions, prefix: 'als_' }).open('app');
    const connection = await pool.getConnection();
    await connection.beginTransaction();
    await transactions.run(connection, () => expectToWork(storage));
    await connection.rollback();
    connection.release();
    expect(await storage.logoutsOf(['s'])).toMatchObject([{ outcome: 'delivered' }]);
    await storage.close();
    await pool.end();
  });

  it('are warned of when the last commits may be lost', async () => {
    const flush = async (setting: number): Promise<readonly unknown[]> => {
      await root.query(`SET GLOBAL innodb_flush_log_at_trx_commit = ${setting}`);
      const { storage, warnings } = await mysqlStorage({ pool: root, prefix: 'flush_' }).open('app');
      await storage.close();
      return warnings;
    };
    expect(await flush(2)).toMatchObject([{ hint: 'set innodb_flush_log_at_trx_commit = 1' }]);
    expect(await flush(1)).toEqual([]);
  });

  it('store no part of a text that is too long', async () => {
    const { storage } = await mysqlStorage({ pool: root, prefix: 'long_' }).open('app');
    const logout = (sealed: string) => ({ id: '000000000000001-1', subject: 's', sealed, details: '' });
    await expect(storage.addLogouts([logout('x'.repeat(65_536))])).rejects.toThrow(
      'A text is longer than 65535 bytes; hint: shorten it: MySQL would cut it',
    );
    await storage.addLogouts([logout('x'.repeat(65_535))]);
    expect((await storage.claim('logout', 1)).claims[0]?.sealed).toHaveLength(65_535);
    await storage.close();
  });

  it('leave nothing of a probe that was killed', async () => {
    await (await mysqlStorage({ pool: root, prefix: 'dead_' }).open('app')).storage.close();
    await root.query(`INSERT INTO dead_debate_space_jobs (id, app, kind, queue, subject, state, details, attempts, failures,
      rejections, uncertain, since, sealed) VALUES ('~probe-1/1', '~probe-1', 'logout', 'q', 's', 'waiting', '', 0, 0, 0, 0, 1, '')`);
    await (await mysqlStorage({ pool: root, prefix: 'dead_' }).open('app')).storage.close();
    expect(await count('dead_debate_space_jobs')).toBe(0);
  });
});
