import { afterAll, beforeAll, beforeEach, describe, expect, it } from '@jest/globals';
import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { mariadbServer, startMariadb } from '#support/servers/mariadb.js';
import { postgresPool, postgresServer, startPostgres } from '#support/servers/postgres.js';
import { mariadbPool } from '#support/storages/table-storages.js';
import { storageMigration } from './migration.js';
import { mysqlStorage } from './mysql.js';
import { postgresStorage } from './postgres.js';
import { MIGRATIONS, statementsOf, type Dialect, type Migration } from './schema.js';
import { openDriver, sqliteDatabase } from './sqlite-file.js';
import { sqliteStorage } from './sqlite.js';
import type { StorageEngine } from './engine.js';
import { endedAtOf, referenceKey } from './rules.js';
import type { Storage } from './storage.js';

const ROWS = 1_000;
const FIRST = 1;
const NEWEST = MIGRATIONS.length;

interface Place {
  /** By hand, in a process of its own. */
  run(text: string): Promise<unknown>;
  engine(migrate?: boolean): StorageEngine;
  stop(): Promise<unknown>;
}

async function inPostgres(): Promise<Place> {
  const server = await startPostgres();
  const pool = postgresPool({ ...server, max: 8 });
  return {
    run: async (text) => (await pool.query(text)).rows as unknown,
    engine: (migrate) => postgresStorage({ pool, migrate }),
    stop: () => pool.end().then(() => server.stop()),
  };
}

async function inMariadb(): Promise<Place> {
  const server = await startMariadb();
  const pool = mariadbPool(server.uri);
  return {
    run: async (text) => (await pool.query(text))[0],
    engine: (migrate) => mysqlStorage({ pool, migrate }),
    stop: () => pool.end().then(() => server.stop()),
  };
}

async function inSqlite(): Promise<Place> {
  const folder = await mkdtemp(join(tmpdir(), 'migration-'));
  const path = join(folder, 'debate-space.db');
  await writeFile(`${path}.key`, `${Buffer.alloc(32).toString('base64')}\n`, { mode: 0o600 });
  return {
    // The tests close the storage before: this process must not have the file open twice.
    run: async (text) => {
      const driver = await openDriver(path);
      try {
        return (await sqliteDatabase(driver).query(text)).rows;
      } finally {
        driver.close();
      }
    },
    engine: () => sqliteStorage({ path }),
    stop: () => rm(folder, { recursive: true }),
  };
}

const engines: readonly [Dialect, typeof describe, () => Promise<Place>][] = [
  ['postgres', postgresServer.describe as typeof describe, inPostgres],
  ['mysql', mariadbServer.describe as typeof describe, inMariadb],
  ['sqlite', describe, inSqlite],
];

/** As version 1 wrote it. */
const COLUMNS = `id, app, kind, queue, reference, subject, state, outcome, cause, hint, details, attempts, failures, rejections,
  uncertain, due_at, token, since, ended_at, sealed`;
function insertOfFirst(state: string, from: number, kind = 'logout', rows = ROWS): string {
  const row = (_: unknown, n: number): string => {
    const id =
      kind === 'logout' ? `00000000000${1_000 + from + n}-${state}` : `${referenceKey('r')}.${from + n}`;
    const [due, ended, sealed] =
      state === 'waiting'
        ? ['1', 'NULL', `'sealed'`]
        : ['NULL', '5', `'${state === 'done' ? '' : 'sealed'}'`];
    const reference = kind === 'logout' ? 'NULL' : `'app/${referenceKey('r')}'`;
    const outcome = state === 'done' ? `'${kind === 'logout' ? 'delivered' : 'erased'}'` : 'NULL';
    return `('app/${id}', 'app', '${kind}', 'app/${kind}', ${reference}, 's', '${state}', ${outcome}, NULL, NULL, '', 0, 0, 0, 0, ${due}, NULL, 1, ${ended}, ${sealed})`;
  };
  return `INSERT INTO debate_space_jobs (${COLUMNS}) VALUES ${Array.from({ length: rows }, row).join(', ')}`;
}
const referenceOfFirst = `INSERT INTO debate_space_references (id, app, name, mode, is_list, complete, paused, canceled, started,
  requested_at, overdue_ms, total, users_erased, users_not_found, users_vetoed, users_canceled)
  VALUES ('app/${referenceKey('r')}', 'app', 'r', 'delete', 0, 1, 0, 0, 0, 1, 0, ${2 * ROWS}, ${ROWS}, 0, 0, 0)`;

const KEEP_ALL = { historyMs: 1e13, receiptsMs: 1e13 };

for (const [dialect, describeThese, start] of engines)
  describeThese(`a migration of ${dialect}`, () => {
    let place: Place;
    beforeAll(async () => {
      place = await start();
    });
    afterAll(() => place.stop());
    beforeEach(async () => {
      for (const name of ['jobs', 'references', 'sessions', 'rate', 'facts'])
        await place.run(`DROP TABLE IF EXISTS debate_space_${name}`);
      for (const text of statementsOf(dialect, undefined, 0, MIGRATIONS.slice(0, FIRST)))
        await place.run(text);
    });

    async function claimAll(storage: Storage): Promise<number> {
      let claimed = 0;
      for (;;) {
        const { claims } = await storage.claim('logout', 500);
        if (claims.length === 0) return claimed;
        claimed += claims.length;
        for (const claim of claims) expect(endedAtOf(claim.id)).toBeGreaterThan(0);
      }
    }

    for (const from of [...MIGRATIONS.keys()].slice(FIRST))
      it(`keeps all rows of version ${from}, and what its processes write after it`, async () => {
        for (const text of statementsOf(dialect, undefined, FIRST, MIGRATIONS.slice(0, from)))
          await place.run(text);
        for (const [n, state] of ['waiting', 'parked', 'done'].entries())
          await place.run(insertOfFirst(state, n * ROWS));
        await place.run(referenceOfFirst);
        await place.run(insertOfFirst('waiting', 0, 'erasure'));
        await place.run(insertOfFirst('done', ROWS, 'erasure'));
        await (await place.engine().open('app')).storage.close();
        await place.run(insertOfFirst('waiting', 5 * ROWS, 'logout', 10)); // an old process

        const { storage } = await place.engine().open('app');
        while (await storage.prune(KEEP_ALL)); // takes over what it finds of the old process
        expect(await claimAll(storage)).toBe(ROWS + 10);
        expect(await storage.listLogouts('parked', 1_000)).toHaveLength(ROWS);
        expect(await storage.counts('erasure')).toMatchObject({ waiting: ROWS });
        expect((await storage.claim('erasure', 5)).claims).toHaveLength(5);
        expect((await storage.receipts('r', 1_000)).map(({ job }) => job.outcome)).toEqual(
          Array(ROWS).fill('erased'),
        );
        await storage.close();
      });

    if (dialect !== 'sqlite')
      it('is run by the host if it says so, from the version that the boot names', async () => {
        const dialectOf = `--dialect ${dialect} --from ${FIRST}`;
        await expect(place.engine(false).open('app')).rejects.toThrow(
          `The tables of the storage have version ${FIRST}, and this app needs ${NEWEST}; hint: run the SQL of \`npx debate-space storage migration ${dialectOf}\``,
        );
        for (const text of storageMigration(dialect, undefined, FIRST).split(/;\n/).filter(Boolean))
          await place.run(text);
        await (await place.engine(false).open('app')).storage.close();
      });

    if (dialect !== 'sqlite')
      it('runs once while several processes boot, and an old one continues until it boots again', async () => {
        const { storage: old } = await place.engine().open('app');
        const next: Migration = [
          'ALTER TABLE {jobs} ADD COLUMN example_of_test $key',
          'CREATE INDEX {jobs_example_of_test} ON {jobs} (example_of_test)',
          `INSERT INTO {facts} (id, value) VALUES ('once', 1)`,
        ];
        (MIGRATIONS as Migration[]).push(next);
        try {
          const boots = await Promise.allSettled([1, 2, 3].map(() => place.engine().open('app')));
          const opened = boots.map((boot) => {
            if (boot.status === 'rejected') throw boot.reason; // after the others: none of them works in the next test
            return boot.value;
          });
          await old.addLogouts([{ id: '000000000000001-1', subject: 's', sealed: 'x', details: '' }]);
          for (const { storage } of opened) expect(await storage.logoutsOf(['s'])).toHaveLength(1);
          expect(await claimAll(old)).toBe(1);
          for (const { storage } of [{ storage: old }, ...opened]) await storage.close();
        } finally {
          (MIGRATIONS as Migration[]).pop();
        }
        await expect(place.engine().open('app')).rejects.toThrow(
          `have version ${NEWEST + 1}, and this version of nestjs-debate-space knows ${NEWEST}; hint: update`,
        );
      });

    if (dialect !== 'sqlite')
      it('leaves the version as it was when a statement fails, and is repeated from there', async () => {
        await (await place.engine().open('app')).storage.close();
        const broken: Migration = [
          'ALTER TABLE {jobs} ADD COLUMN example_of_test $key',
          'ALTER TABLE {jobs} DROP COLUMN missing_one',
        ];
        (MIGRATIONS as Migration[]).push(
          dialect === 'mysql' ? [...broken.slice(0, 1), 'SELECT nothing'] : broken,
        );
        try {
          await expect(place.engine().open('app')).rejects.toThrow(/column is missing/);
          (MIGRATIONS as Migration[])[NEWEST] = broken.slice(0, 1);
          await (await place.engine().open('app')).storage.close();
          expect(await place.run('SELECT example_of_test FROM debate_space_jobs')).toEqual([]);
        } finally {
          (MIGRATIONS as Migration[]).pop();
        }
      });
  });
