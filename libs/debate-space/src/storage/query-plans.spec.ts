import { afterAll, afterEach, beforeAll, beforeEach, expect, it } from '@jest/globals';
import type { Pool as MariadbPool } from 'mysql2/promise';
import type { Pool } from 'pg';
import {
  postgresPool,
  postgresServer,
  startPostgres,
  type RunningPostgres,
} from '#support/servers/postgres.js';
import { mariadbServer, startMariadb, type RunningMariadb } from '#support/servers/mariadb.js';
import { mariadbPool, postgresFunctions } from '#support/storages/table-storages.js';
import { mysqlStorage } from './mysql.js';
import { postgresStorage } from './postgres.js';
import { MAX_COUNTED, type Storage } from './storage.js';

const WAITING = 100_000;

postgresServer.describe('the plan of Postgres for what is due', () => {
  let postgres: RunningPostgres;
  let pool: Pool;
  let storage: Storage;
  /** Of the last statement that took or counted rows. */
  let plan: string;

  beforeAll(async () => {
    postgres = await startPostgres();
  });
  afterAll(() => postgres.stop());
  beforeEach(async () => {
    pool = postgresPool({ ...postgres, max: 4 });
    const functions = postgresFunctions(pool);
    const recorded: typeof functions = {
      ...functions,
      query: async (text, values) => {
        if (/^(WITH|SELECT \(SELECT COUNT)/.test(text)) {
          const lines = (await functions.query(`EXPLAIN ${text}`, values)) as { 'QUERY PLAN': string }[];
          plan = lines.map((line) => line['QUERY PLAN']).join('\n');
        }
        return functions.query(text, values);
      },
    };
    ({ storage } = await postgresStorage(recorded).open('app'));
    for (const table of ['jobs', 'sessions'])
      // a test says when statistics are made
      await pool.query(`ALTER TABLE debate_space_${table} SET (autovacuum_enabled = off)`);
  });
  afterEach(async () => {
    await storage.close();
    await pool.query('DROP TABLE debate_space_jobs, debate_space_sessions');
    await pool.end();
  });

  const jobs = `INSERT INTO debate_space_jobs (id, app, kind, queue, subject, state, details, attempts, failures, rejections,
    uncertain, since, due_at, ended_at, sealed) SELECT`;
  const waiting = `${jobs} 'app/' || lpad(n::text, 15, '0') || '-w', 'app', 'logout', 'app/logouts', 's' || n, 'waiting', '', 0, 0, 0, 0, n, n, NULL, 'sealed'
    FROM generate_series(1, $1::int) n`;
  const done = `${jobs} 'app/d' || n, 'app', 'logout', 'app/logouts', 's' || n, 'done', '', 1, 0, 0, 0, n, NULL, n, ''
    FROM generate_series(1, $1::int) n`;
  const erasures = `${jobs} 'app/r.' || n, 'app', 'erasure', 'app/erasures', 's' || n, 'waiting', '', 0, 0, 0, 0, n, n, NULL, 'sealed'
    FROM generate_series(1, $1::int) n`;
  const sessions = `INSERT INTO debate_space_sessions (id, app, subject, expires_at, due_at, sealed)
    SELECT 'app/s' || n, 'app', 's' || n, n, n, 'sealed' FROM generate_series(1, $1::int) n`;
  const analyze = 'ANALYZE debate_space_jobs, debate_space_sessions';

  type Statements = readonly (readonly [text: string, rows?: number])[];
  async function run(statements: Statements): Promise<void> {
    for (const [text, rows] of statements) await pool.query(text, rows === undefined ? [] : [rows]);
  }

  const statistics: readonly (readonly [name: string, ...statements: Statements])[] = [
    ['were made while the table was empty', [analyze], [waiting, WAITING]],
    ['know few rows', [waiting, 10], [analyze], ['DELETE FROM debate_space_jobs'], [waiting, WAITING]],
    ['know only rows that are done', [done, WAITING], [analyze], [waiting, WAITING]],
  ];
  it.each(statistics)(
    `reads ${WAITING} waiting jobs in their order when statistics %s`,
    async (_name, ...statements) => {
      await run(statements);
      await storage.claim('logout', 32);
      expect(plan).toMatch(/Index Scan using debate_space_jobs_due/);
      expect(plan).not.toMatch(/Sort|Bitmap|Seq Scan on debate_space_jobs/);
      await storage.counts('logout');
      expect(plan).toMatch(/Index Scan using debate_space_jobs_due/);
      expect(plan).not.toMatch(/Sort/);
      expect(await storage.counts('logout')).toMatchObject({ waiting: MAX_COUNTED + 1, parked: 0 });
    },
  );

  it(`reads ${WAITING} erasures of single users in their order though statistics know none`, async () => {
    await run([[analyze], [erasures, WAITING]]);
    await storage.claim('erasure', 32);
    expect(plan).toMatch(/Index Scan using debate_space_jobs_due/);
    expect(plan).not.toMatch(/Sort|Bitmap|Seq Scan on debate_space_jobs/);
  });

  it(`reads ${WAITING} sessions in their order though statistics know none`, async () => {
    await run([[analyze], [sessions, WAITING]]);
    await storage.dueSessions(32);
    expect(plan).toMatch(/Index Scan using debate_space_sessions_due/);
    expect(plan).not.toMatch(/Sort|Bitmap|Seq Scan on debate_space_sessions/);
  });
});

mariadbServer.describe('how many rows MariaDB reads', () => {
  let mariadb: RunningMariadb;
  let pool: MariadbPool;
  let storage: Storage;

  beforeAll(async () => {
    mariadb = await startMariadb();
    pool = mariadbPool(mariadb.uri, { connectionLimit: 1 }); // the server counts what a connection reads
    ({ storage } = await mysqlStorage({ pool }).open('app'));
    const fill = (rows: number, columns: string): Promise<unknown> =>
      pool.query(`INSERT INTO debate_space_jobs (id, app, kind, queue, subject, state, details, attempts, failures, rejections,
        uncertain, since, due_at, ended_at, sealed) SELECT ${columns} FROM seq_1_to_${rows}`);
    const logout = `'app', 'logout', 'app/logouts', CONCAT('s', seq)`;
    await fill(4 * WAITING, `CONCAT('app/d', seq), ${logout}, 'done', '', 1, 0, 0, 0, seq, NULL, seq, ''`);
    const id = `CONCAT('app/', LPAD(seq, 15, '0'), '-w')`;
    await fill(WAITING, `${id}, ${logout}, 'waiting', '', 0, 0, 0, 0, seq, seq, NULL, 'sealed'`);
  }, 120_000);
  afterAll(async () => {
    await storage.close();
    await pool.end();
    await mariadb.stop();
  });

  async function readBy(work: () => Promise<unknown>): Promise<number> {
    await pool.query('FLUSH STATUS');
    await work();
    const [rows] = await pool.query("SHOW SESSION STATUS LIKE 'Handler_read%'");
    return (rows as { Value: string }[]).reduce((sum, { Value }) => sum + Number(Value), 0);
  }

  it('is about those that a claim takes, whatever has ended and waits', async () => {
    expect(await readBy(() => storage.claim('logout', 32))).toBeLessThan(32 * 5);
  });

  it('is bounded for the counts', async () => {
    expect(await readBy(() => storage.counts('logout'))).toBeLessThan(MAX_COUNTED * 2.5);
    expect(await storage.counts('logout')).toMatchObject({ waiting: MAX_COUNTED + 1, parked: 0 });
  });

  it('is bounded for each step that prunes', async () => {
    const keep = { historyMs: 60_000, receiptsMs: 60_000 };
    expect(await readBy(() => storage.prune(keep))).toBeLessThan(1_000);
    expect(await storage.prune(keep)).toBe(true);
  });
});
