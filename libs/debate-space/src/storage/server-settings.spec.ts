import { afterAll, afterEach, beforeAll, beforeEach, expect, it } from '@jest/globals';
import type { Pool as MariadbPool, ResultSetHeader } from 'mysql2/promise';
import type { Pool } from 'pg';
import { mariadbServer, startMariadb, type RunningMariadb } from '#support/servers/mariadb.js';
import {
  postgresPool,
  postgresServer,
  startPostgres,
  type RunningPostgres,
} from '#support/servers/postgres.js';
import { mariadbFunctions, mariadbPool, postgresFunctions } from '#support/storages/table-storages.js';
import { StorageError } from '../errors.js';
import { storageMigration } from './migration.js';
import { mysqlStorage } from './mysql.js';
import { postgresStorage } from './postgres.js';
import type { StorageEngine } from './storage.js';

/** Opens and closes it. @returns what it warns of */
async function warningsOf(engine: StorageEngine): Promise<readonly string[]> {
  const { storage, warnings } = await engine.open('app');
  await storage.addLogouts([{ id: '000000000000001-1', subject: 's', sealed: '', details: '' }]);
  expect(await storage.counts('logout')).toMatchObject({ waiting: 1, parked: 0 });
  await storage.close();
  return warnings.map(({ problem }) => problem);
}

async function refusal(engine: StorageEngine): Promise<string> {
  const error: unknown = await engine.open('app').catch((reason: unknown) => reason);
  if (!(error instanceof StorageError)) throw new TypeError('it was not refused', { cause: error });
  return error.message;
}

postgresServer.describe('settings of Postgres', () => {
  let postgres: RunningPostgres;
  let pool: Pool;
  beforeAll(async () => {
    postgres = await startPostgres('on');
  });
  beforeEach(() => {
    pool = postgresPool(postgres);
  });
  afterEach(() => pool.end());
  afterAll(() => postgres.stop());

  it('keeps the tables in the schema of the option, which must exist', async () => {
    const engine = postgresStorage({ pool, schema: 'My-App' });
    expect(await refusal(engine)).toMatch(
      /^Postgres failed \(3F000: no such schema\); hint: create it, or give another/,
    );
    await pool.query('CREATE SCHEMA "My-App"');
    expect(await warningsOf(engine)).toEqual([]);
    expect((await pool.query('SELECT id FROM "My-App".debate_space_jobs')).rows).toHaveLength(1);
    await pool.query(storageMigration('postgres', 'My-App'));
    for (const schema of ['', 'a"b', 'a.b', 'a?'])
      expect(await refusal(postgresStorage({ pool, schema }))).toMatch(
        /^The option schema .*; hint: give the name/,
      );
  });

  it('warns when the last commits may be lost', async () => {
    await pool.query('ALTER ROLE postgres SET synchronous_commit = off');
    await pool.end();
    pool = postgresPool(postgres);
    expect(await warningsOf(postgresStorage({ pool }))).toEqual([
      'This Postgres may lose its last commits in a crash (synchronous_commit = off)',
    ]);
    await pool.query('ALTER ROLE postgres RESET synchronous_commit');
  });

  it('refuses a role whose transactions are read-only', async () => {
    await warningsOf(postgresStorage({ pool }));
    const readOnly = postgresPool({ ...postgres, options: '-c default_transaction_read_only=on' });
    expect(await refusal(postgresStorage({ pool: readOnly }))).toMatch(
      /^Postgres failed \(25006: read-only\); hint: connect to the primary/,
    );
    await readOnly.end();
  });

  it('refuses Postgres 11', async () => {
    const old = { version: '110022', replica: 'false', tables: '5', place: 'app' };
    const functions = { ...postgresFunctions(pool), query: () => Promise.resolve([old]) };
    expect(await refusal(postgresStorage(functions))).toBe(
      'This is Postgres 11; hint: use Postgres 12 or later',
    );
  });

  it('refuses a read replica', async () => {
    await warningsOf(postgresStorage({ pool }));
    await pool.query(`DO $$ BEGIN
      EXECUTE format('COPY (SELECT) TO %L', current_setting('data_directory') || '/standby.signal'); END $$`);
    await pool.end();
    await postgres.crash();
    await postgres.restart();
    pool = postgresPool(postgres);
    expect(await refusal(postgresStorage({ pool }))).toBe(
      'This Postgres is a read replica; hint: connect to the primary',
    );
  });
});

mariadbServer.describe('settings of MySQL and MariaDB', () => {
  let mariadb: RunningMariadb;
  let pool: MariadbPool;
  beforeAll(async () => {
    mariadb = await startMariadb();
    pool = mariadbPool(mariadb.uri);
  });
  afterAll(async () => {
    await pool.end();
    await mariadb.stop();
  });

  it('begins the names of the tables with the prefix of the option', async () => {
    await warningsOf(mysqlStorage({ pool, prefix: 'my_' }));
    expect((await pool.query('SELECT id FROM my_debate_space_jobs'))[0]).toHaveLength(1);
    for (const prefix of ['a.b', 'a-b', '`', 'a'.repeat(31)])
      expect(await refusal(mysqlStorage({ pool, prefix }))).toMatch(
        /^The option prefix .*; hint: give at most 30/,
      );
  });

  it('warns when the last commits may be lost', async () => {
    const flush = (setting: number) => pool.query(`SET GLOBAL innodb_flush_log_at_trx_commit = ${setting}`);
    await flush(2);
    const problem = 'This MySQL may lose its last commits in a crash (innodb_flush_log_at_trx_commit = 2)';
    expect(await warningsOf(mysqlStorage({ pool, prefix: 'a_' }))).toEqual([problem]);
    await flush(1);
    expect(await warningsOf(mysqlStorage({ pool, prefix: 'b_' }))).toEqual([]);
  });

  it('stores no part of a text that is too long', async () => {
    const { storage } = await mysqlStorage({ pool, prefix: 'e_' }).open('app');
    const logout = (sealed: string) => ({ id: '000000000000001-1', subject: 's', sealed, details: '' });
    await expect(storage.addLogouts([logout('é'.repeat(32_768))])).rejects.toThrow(
      'A text is longer than 65535 bytes; hint: shorten it: MySQL would cut it',
    );
    await storage.addLogouts([logout('é'.repeat(32_767))]);
    const { claims } = await storage.claim('logout', 1);
    expect(claims[0]?.sealed).toHaveLength(32_767);
    await storage.close();
  });

  const shapes: readonly [name: string, shape: (result: unknown) => unknown][] = [
    ['the rows and the fields, as mysql2', (result) => [result, undefined]],
    [
      'the number of changed rows, as Prisma',
      (result) => (result as Partial<ResultSetHeader>).affectedRows ?? result,
    ],
  ];
  it.each(shapes)('reads what a query function returns: %s', async (_name, shape) => {
    const functions = mariadbFunctions(pool);
    const query = async (text: string, values: unknown[]): Promise<unknown> =>
      shape(await functions.query(text, values));
    await warningsOf(
      mysqlStorage({ ...functions, query, prefix: `f${shapes.findIndex(([, each]) => each === shape)}_` }),
    );
  });

  it('refuses a read-only server', async () => {
    await pool.query(`CREATE USER app@'127.0.0.1'`);
    await pool.query(`GRANT ALL ON app.* TO app@'127.0.0.1'`);
    await pool.query('SET GLOBAL read_only = 1');
    const replica = mariadbPool(`mysql://app@127.0.0.1:${mariadb.port}/app`);
    const readOnly = /^MySQL failed \(1290: read-only\); hint: connect to the primary/;
    expect(await refusal(mysqlStorage({ pool: replica, prefix: 'c_' }))).toMatch(readOnly);
    await warningsOf(mysqlStorage({ pool, prefix: 'c_' }));
    expect(await refusal(mysqlStorage({ pool: replica, prefix: 'c_' }))).toMatch(readOnly);
    await replica.end();
    await pool.query('SET GLOBAL read_only = 0');
  });

  it('refuses a connection without a database', async () => {
    const nowhere = mariadbPool(`mysql://root@127.0.0.1:${mariadb.port}`);
    expect(await refusal(mysqlStorage({ pool: nowhere }))).toMatch(
      /^MySQL failed \(1046: no such database\); hint: create it, or correct its name in the connection/,
    );
    await nowhere.end();
  });

  it.each(['5.7.44-log', '8.0.0', '10.5.29-MariaDB-log'])(
    'refuses %s, which has no SKIP LOCKED',
    async (version) => {
      const functions = { ...mariadbFunctions(pool), query: () => Promise.resolve([{ version, tables: 5 }]) };
      expect(await refusal(mysqlStorage(functions))).toBe(
        `This server is too old (${version}); hint: use MySQL 8.0.1 or later, or MariaDB 10.6 or later`,
      );
    },
  );

  it.each(['8.0.1', '8.4.3-commercial', '9.1.0', '10.6.0-MariaDB', '11.4.2-MariaDB-ubu2404'])(
    'takes %s',
    async (version) => {
      const functions = mariadbFunctions(pool);
      const said = async (text: string, values: unknown[]): Promise<unknown> => {
        const result = await functions.query(text, values);
        return text.includes('VERSION()') ? [{ ...(result as object[])[0], version }] : result;
      };
      await warningsOf(mysqlStorage({ ...functions, query: said, prefix: 'd_' }));
    },
  );
});
