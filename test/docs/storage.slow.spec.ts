import { afterAll, beforeAll, describe, expect, it } from '@jest/globals';
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { createPool, type Pool as MysqlPool } from 'mysql2/promise';
import * as plugin from 'nestjs-debate-space';
import * as mysql from 'nestjs-debate-space/mysql';
import * as postgres from 'nestjs-debate-space/postgres';
import { sqliteStorage } from 'nestjs-debate-space/sqlite';
import type { Pool } from 'pg';
import { logInTo } from '#support/browser/browser.js';
import { fencesOf, pageOf, runRecipe } from '#support/docs-snippets.js';
import { mariadbServer, startMariadb, type RunningMariadb } from '#support/servers/mariadb.js';
import {
  postgresPool,
  postgresServer,
  startPostgres,
  type RunningPostgres,
} from '#support/servers/postgres.js';
import { scenario } from '#support/hosts/scenario.js';
import { using } from '#support/service/service.js';
import type { SessionHost } from '#support/hosts/session-host.js';
import { destroySession } from '#support/hosts/session-jobs.js';
import { openDriver } from '../../libs/debate-space/src/storage/sqlite-file.js';
import { erasureId, type Storage } from '../../libs/debate-space/src/storage/storage.js';

const { postgresStorage } = postgres;
const { mysqlStorage } = mysql;
const page = pageOf('docs/storage.md');
const scene = scenario();
type Rows = readonly Readonly<Record<string, unknown>>[];
type Run = (sql: string) => Promise<unknown>;

function temporaryFile(): string {
  const folder = mkdtempSync(join(tmpdir(), 'docs-storage-'));
  scene.afterwards(() => {
    rmSync(folder, { recursive: true });
  });
  return join(folder, 'debate-space.db');
}

async function opened(engine: plugin.StorageEngine): Promise<Storage> {
  const { storage } = await engine.open('my-app');
  scene.afterwards(() => storage.close());
  return storage;
}

/** The statements of a page, without their comments. */
function statementsOf(path: string): string[] {
  const codes = fencesOf(path).filter(({ language }) => language === 'sql');
  const lines = codes.flatMap(({ code }) => code.split('\n')).filter((line) => !line.startsWith('--'));
  return lines
    .join('\n')
    .split(';')
    .map((statement) => statement.trim())
    .filter(Boolean);
}

/** One logout is delivered, one is parked, one waits for its next attempt, and a list is half done. */
async function fill(storage: Storage): Promise<void> {
  await storage.addLogouts(
    ['1', '2', '3'].map((id) => ({ id, subject: id, sealed: 'x', details: 'destroyed' })),
  );
  const [delivered, parked, retried] = (await storage.claim('logout', 3)).claims;
  if (!delivered || !parked || !retried) throw new Error('the logouts are not due');
  const progress = { attempts: 1, failures: 1, rejections: 0, uncertain: undefined };
  await storage.finishLogout(delivered, 1);
  await storage.park(parked, 'compare the keys', { ...progress, cause: '401' });
  await storage.retry(retried, 300_000, { ...progress, cause: '503' });
  await storage.pause('logout', 60_000);
  const list = { reader: 'one', isFirst: true, isLast: true };
  const users = ['a', 'b'].map((subject) => ({
    id: erasureId('case-1', subject),
    subject,
    formerIds: [],
    sealed: 'x',
  }));
  const request = { reference: 'case-1', mode: 'delete', requestedBy: undefined, list } as const;
  const requested = { ...request, requestedAt: Date.now(), known: undefined, mark: '' };
  await storage.addErasures(requested, users);
  const [erasure] = (await storage.claim('erasure', 1)).claims;
  if (erasure) await storage.finishErasure(erasure, 'erased', 1, '{}');
}

/** @param dated writes `to_timestamp` of Postgres in the words of another database */
async function lookInto(storage: Storage, run: Run, dated = (sql: string) => sql): Promise<void> {
  await fill(storage);
  const [waiting, why, lists, pauses, retry, remove, ...others] = statementsOf('docs/runbook.md').map(dated);
  expect(others).toEqual([]);
  const rowsOf = async (sql = ''): Promise<Rows> => (await run(sql)) as Rows;
  const counted = (rows: Rows) =>
    rows.map(({ kind, state, cause, jobs }) =>
      [kind, state, ...(cause === undefined ? [] : [cause]), jobs].map(String).join(' '),
    );
  const found = await rowsOf(waiting);
  expect(counted(found).toSorted()).toEqual(['erasure waiting 1', 'logout parked 1', 'logout waiting 1']);
  const [{ oldest = '' } = {}] = found;
  expect(new Date(oldest as string).getFullYear()).toBe(new Date().getFullYear());
  expect(counted(await rowsOf(why)).toSorted()).toEqual(['logout parked 401 1', 'logout waiting 503 1']);
  const [list] = await rowsOf(lists);
  expect({ ...list, not_done: Number(list?.not_done) }).toMatchObject({
    name: 'case-1',
    total: 2,
    users_erased: 1,
    not_done: 1,
    complete: 1,
  });
  expect(await rowsOf(pauses)).toMatchObject([{ id: 'my-app/logout-paused-until' }]);

  await run(retry ?? '');
  const [logout] = await storage.listLogouts('waiting', 2);
  expect(logout?.dueAt).toBe(logout?.since);
  await run(remove ?? '');
  expect((await storage.logoutsOf(['1', '2', '3'])).map(({ state }) => state).toSorted()).toEqual([
    'parked',
    'waiting',
  ]);
}

describe('the pages about storages', () => {
  it('say what each storage promises, word by word', () => {
    const functions = { query: () => Promise.resolve([]), transaction: () => Promise.reject(new Error()) };
    const engines = [
      plugin.memoryStorage(),
      sqliteStorage({ path: '' }),
      postgresStorage(functions),
      mysqlStorage(functions),
    ];
    for (const { guarantee } of engines) expect(page).toContain(`| ${guarantee} `);
  });

  it('say how to look into SQLite, and what to change', async () => {
    const path = temporaryFile();
    const storage = await opened(sqliteStorage({ path }));
    const driver = await openDriver(path);
    scene.afterwards(() => driver.close());
    const run: Run = (sql) => Promise.resolve(driver.prepare(sql)).then((statement) => statement.all());
    await lookInto(storage, run, (sql) =>
      sql.replaceAll(/to_timestamp\((.*?) \/ 1000\)/g, `datetime($1 / 1000, 'unixepoch')`),
    );
  });
});

postgresServer.describe('with Postgres, the pages about storages', () => {
  let server: RunningPostgres;
  let pool: Pool;
  beforeAll(async () => {
    server = await startPostgres();
    pool = postgresPool(server);
  });
  afterAll(async () => {
    await pool.end();
    await server.stop();
  });

  it('say how to look into the tables, and what to change', async () => {
    await lookInto(
      await opened(postgresStorage({ pool })),
      async (sql) => (await pool.query<object>(sql)).rows,
    );
  });

  it('open the storage, by the migration for TypeORM and the grants, to a role that may not create tables', async () => {
    const { DebateSpace1760000000000: Migration } = runRecipe('debate-space.migration.ts', {
      'nestjs-debate-space/postgres': postgres,
    }) as Record<string, new () => Record<'up' | 'down', (runner: Pool) => Promise<void>>>;
    if (!Migration) throw new Error('the recipe has no migration');
    await new Migration().up(pool);
    await new Migration().up(pool);
    await pool.query('CREATE ROLE my_app LOGIN');
    for (const grant of statementsOf('docs/storage.md')) await pool.query(grant);

    const ofRole = postgresPool({ ...server, user: 'my_app' });
    scene.afterwards(() => ofRole.end());
    await fill(await opened(postgresStorage({ pool: ofRole, schema: 'app', migrate: false })));
    await new Migration().down(pool);
    const { rows } = await pool.query(`SELECT 1 FROM pg_tables WHERE schemaname = 'app'`);
    expect(rows).toEqual([]);
  });
});

mariadbServer.describe('with MariaDB, the pages about storages', () => {
  let server: RunningMariadb;
  let pool: MysqlPool;
  beforeAll(async () => {
    server = await startMariadb();
    pool = createPool(server.uri);
  });
  afterAll(async () => {
    await pool.end();
    await server.stop();
  });

  it('say how to look into the tables, and what to change', async () => {
    await lookInto(
      await opened(mysqlStorage({ pool })),
      async (sql) => (await pool.query(sql))[0],
      (sql) => sql.replaceAll('to_timestamp(', 'FROM_UNIXTIME('),
    );
  });

  it('create and drop the tables by the migration for Knex', async () => {
    const { up, down } = runRecipe('debate-space.knex-migration.ts', {
      'nestjs-debate-space/mysql': mysql,
    }) as Record<'up' | 'down', (knex: { raw: Run }) => Promise<void>>;
    const knex = { raw: (sql: string) => pool.query(sql) };
    await up(knex);
    await fill(await opened(mysqlStorage({ pool, prefix: 'app_', migrate: false })));
    await down(knex);
    const [rows] = await pool.query(`SHOW TABLES LIKE 'app\\_%'`);
    expect(rows).toEqual([]);
  });
});

describe('the way to another storage', () => {
  it('delivers what waits in the old one, and each new logout once', async () => {
    const path = temporaryFile();
    const { former } = runRecipe('former-storage.ts', {
      'nestjs-debate-space/sqlite': { sqliteStorage: () => sqliteStorage({ path }) },
    }) as { former: (options: plugin.DebateSpaceModuleOptions) => plugin.DebateSpaceModuleOptions };
    const { service } = scene;
    const act = destroySession;
    const logOut = async (host: SessionHost, uid: string): Promise<void> => {
      const browser = await logInTo(host, uid);
      await browser.post('/act');
    };
    const repair = service.faults.add({ kind: 'status', status: 503, operation: 'logout' });
    await logOut(await scene.start({ act }, { storage: sqliteStorage({ path }) }), 'alice');
    await scene.stop();
    repair();
    const debateSpace = [using(service), former(using(service))];
    await logOut(await scene.start({ act, debateSpace }), 'bob');
    await service.received.waitFor(({ uid, accepted }) => uid === 'alice' && accepted, { timeoutMs: 60_000 });
    expect((await scene.logouts()).toSorted()).toEqual(['alice', 'bob']);
  });
});
