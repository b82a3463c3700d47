import { afterAll, expect, it } from '@jest/globals';
import { createPool } from 'mysql2/promise';
import * as plugin from 'nestjs-debate-space';
import { mysqlStorage } from 'nestjs-debate-space/mysql';
import { postgresStorage } from 'nestjs-debate-space/postgres';
import { sqliteStorage } from 'nestjs-debate-space/sqlite';
import { logInTo } from '#support/browser/browser.js';
import { fencesOf, pageOf } from '#support/docs-snippets.js';
import { scenario } from '#support/hosts/scenario.js';
import { destroySession } from '#support/hosts/session-jobs.js';
import { mariadbServer, startMariadb } from '#support/servers/mariadb.js';
import { postgresPool, postgresServer, startPostgres } from '#support/servers/postgres.js';
import { using } from '#support/service/service.js';
import { tableStorages } from '#support/storages/table-storages.js';
import { down, up } from '../../docs/examples/recipes/debate-space.knex-migration.js';
import { DebateSpace1760000000000 as Migration } from '../../docs/examples/recipes/debate-space.migration.js';
import { former } from '../../docs/examples/recipes/former-storage.js';
import { erasureId } from '../../libs/debate-space/src/storage/rules.js';
import type { Storage } from '../../libs/debate-space/src/storage/storage.js';

const scene = scenario();
type Rows = readonly Readonly<Record<string, unknown>>[];

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

/** One logout is delivered, one is parked, one waits for its next attempt, and of a list one user is erased, and the answer of the other one is lost. */
async function fill(storage: Storage): Promise<void> {
  await storage.addLogouts(
    ['1', '2', '3'].map((id) => ({ id, subject: id, sealed: 'x', details: 'destroyed' })),
  );
  const [delivered, parked, retried] = (await storage.claim('logout', 3)).claims;
  if (!delivered || !parked || !retried) throw new Error('the logouts are not due');
  const progress = { attempts: 1, failures: 1, rejections: 0, uncertain: undefined };
  await storage.finishLogout(delivered, 1);
  await storage.park(parked, 'compare the keys', { ...progress, cause: '401' });
  await storage.postpone(retried, 300_000, { ...progress, cause: '503' });
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
  const [erased, uncertain] = (await storage.claim('erasure', 2)).claims;
  if (!erased || !uncertain) throw new Error('the erasures are not due');
  await storage.finishErasure(erased, 'erased', 1, '{}');
  await storage.postpone(uncertain, 300_000, { ...progress, uncertain: 'mark', cause: 'TIMEOUT' });
}

const dates: Readonly<Record<string, (sql: string) => string>> = {
  SQLite: (sql) => sql.replaceAll(/to_timestamp\((.*?) \/ 1000\)/g, `datetime($1 / 1000, 'unixepoch')`),
  MariaDB: (sql) => sql.replaceAll('to_timestamp(', 'FROM_UNIXTIME('),
  Postgres: (sql) => sql,
};
for (const kind of tableStorages.filter(({ name }) => name in dates))
  kind.describe(`with ${kind.name}, the statements of the runbook`, () => {
    afterAll(() => kind.stop());

    it('show what waits and why, and change what may be changed', async () => {
      const storage = await opened(await kind.engine());
      await fill(storage);
      const statements = statementsOf('docs/runbook.md').map(dates[kind.name] ?? String);
      expect(statements).toHaveLength(7);
      const [lost = '', waiting, why, lists, pauses, retry, remove] = statements;
      const rowsOf = async (sql = ''): Promise<Rows> => (await kind.run?.(sql)) ?? [];
      const told = async (sql: string | undefined, names: readonly string[]): Promise<string[]> =>
        (await rowsOf(sql)).map((row) => names.map((name) => String(row[name])).join(' ')).toSorted();
      expect(await told(lost.replace('REFERENCE', 'case-1'), ['answer_lost'])).toEqual(['1']);
      expect(await told(waiting, ['kind', 'state', 'jobs'])).toEqual([
        'erasure waiting 1',
        'logout parked 1',
        'logout waiting 1',
      ]);
      const [{ oldest = '' } = {}] = await rowsOf(waiting);
      expect(new Date(oldest as string).getFullYear()).toBe(new Date().getFullYear());
      expect(await told(why, ['state', 'cause', 'jobs'])).toEqual([
        'parked 401 1',
        'waiting 503 1',
        'waiting TIMEOUT 1',
      ]);
      const counts = ['name', 'total', 'users_erased', 'not_done', 'complete'];
      expect(await told(lists, counts)).toEqual(['case-1 2 1 1 1']);
      expect(await told(pauses, ['id'])).toEqual([expect.stringMatching(/^my-app.*\/logout-paused-until$/)]);

      await rowsOf(retry);
      const [logout] = await storage.listLogouts('waiting', 2);
      expect(logout?.dueAt).toBe(logout?.since);
      await rowsOf(remove);
      const left = (await storage.logoutsOf(['1', '2', '3'])).map(({ state }) => state);
      expect(left.toSorted()).toEqual(['parked', 'waiting']);
    });
  });

it('docs/storage.md says what each storage promises, word by word', () => {
  const functions = { query: () => Promise.resolve([]), transaction: () => Promise.reject(new Error()) };
  const engines = [
    plugin.memoryStorage(),
    sqliteStorage({ path: '' }),
    postgresStorage(functions),
    mysqlStorage(functions),
  ];
  for (const { guarantee } of engines) expect(pageOf('docs/storage.md')).toContain(`| ${guarantee} `);
});

postgresServer.describe('the migration for TypeORM and the grants of docs/storage.md', () => {
  it('open the storage to a role that may not create tables', async () => {
    const server = await startPostgres();
    const pool = postgresPool(server);
    // A connection string would win over the user.
    const ofRole = postgresPool({
      host: '127.0.0.1',
      port: server.port,
      database: 'postgres',
      user: 'my_app',
    });
    scene.afterwards(() => Promise.all([pool.end(), ofRole.end()]).then(() => server.stop()));
    await new Migration().up(pool);
    await pool.query('CREATE ROLE my_app LOGIN');
    for (const grant of statementsOf('docs/storage.md')) await pool.query(grant);
    await fill(await opened(postgresStorage({ pool: ofRole, schema: 'app', migrate: false })));
    await new Migration().down(pool);
    const { rows } = await pool.query(`SELECT 1 FROM pg_tables WHERE schemaname = 'app'`);
    expect(rows).toEqual([]);
  });
});

mariadbServer.describe('the migration for Knex', () => {
  it('creates and drops the tables', async () => {
    const server = await startMariadb();
    const pool = createPool(server.uri);
    scene.afterwards(() => pool.end().then(() => server.stop()));
    const knex = { raw: (sql: string) => pool.query(sql) };
    await up(knex);
    await fill(await opened(mysqlStorage({ pool, prefix: 'app_', migrate: false })));
    await down(knex);
    const [rows] = await pool.query(`SHOW TABLES LIKE 'app\\_%'`);
    expect(rows).toEqual([]);
  });
});

it('the recipe for a former storage delivers what waits there, and each new logout once', async () => {
  const { service } = scene;
  const act = destroySession;
  const storage = await scene.sqlite();
  const logOut = async (host: { url: string }, uid: string): Promise<void> => {
    await (await logInTo(host, uid)).post('/act');
  };
  const repair = service.faults.add({ kind: 'status', status: 503, operation: 'logout' });
  await logOut(await scene.start({ act }, { storage }), 'alice');
  await scene.stop();
  repair();
  const debateSpace = [using(service), { ...former(using(service)), storage }];
  await logOut(await scene.start({ act, debateSpace }), 'bob');
  await service.received.waitFor(({ uid, accepted }) => uid === 'alice' && accepted, { timeoutMs: 60_000 });
  expect((await scene.logouts()).toSorted()).toEqual(['alice', 'bob']);
});
