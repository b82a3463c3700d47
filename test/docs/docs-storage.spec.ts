import { afterAll, beforeAll, describe, expect, it } from '@jest/globals';
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { Redis } from 'ioredis';
import * as plugin from 'nestjs-debate-space';
import { lmdbStorage } from 'nestjs-debate-space/lmdb';
import * as postgres from 'nestjs-debate-space/postgres';
import { postgresStorage, type PostgresQuery } from 'nestjs-debate-space/postgres';
import { redisStorage, type SendCommand } from 'nestjs-debate-space/redis';
import * as contract from 'nestjs-debate-space/storage-contract';
import type { Pool } from 'pg';
import { createCluster } from 'redis';
import { pageOf, runCode, runRecipe, runSnippet } from 'debate-space-fixtures/docs-snippets.js';
import {
  postgresPool,
  postgresServer,
  startPostgres,
  type RunningPostgres,
} from 'debate-space-fixtures/postgres.js';
import { redisClient, redisServer, startRedis, type RunningRedis } from 'debate-space-fixtures/redis.js';
import { logInTo } from 'debate-space-fixtures/browser.js';
import { scenario } from 'debate-space-fixtures/scenario.js';
import { using } from 'debate-space-fixtures/service.js';
import type { SessionHost } from 'debate-space-fixtures/session-host.js';
import { destroySession } from 'debate-space-fixtures/session-jobs.js';
import { startRedisCluster, type RunningRedisCluster } from 'debate-space-fixtures/redis-cluster.js';

const page = pageOf('docs/choosing-a-storage.md');
const transactionPage = pageOf('docs/erasures-in-your-transaction.md');
const customPage = pageOf('docs/custom-storage.md');
const { memoryStorage } = plugin;

/** The code in the row of a table that begins with these words. */
function codeOf(row: string): string {
  const [, code] = new RegExp(`^\\| ${row} +\\| \`(.*?)\` +\\|$`, 'm').exec(page) ?? [];
  if (code === undefined) throw new Error(`docs/choosing-a-storage.md has no row ${row}`);
  return code;
}

const scene = scenario();

async function expectToKeepRows(engine: plugin.StorageEngine): Promise<void> {
  const contained = (work: () => void): void => {
    work();
  };
  const storage = await engine.open({ namespace: 'my-app', families: ['row'], contained });
  scene.afterwards(() => storage.close());
  expect(await storage.commit(new Map(), new Map([['row:a', '1']]))).toBe(true);
  expect(await storage.get(['row:a'])).toEqual(['1']);
}

describe('the page about storages', () => {
  it('says what each storage promises, word by word', () => {
    const query = () => Promise.resolve([]);
    const sendCommand = () => Promise.resolve('');
    const engines = [
      memoryStorage(),
      lmdbStorage({ path: '' }),
      redisStorage({ sendCommand }),
      postgresStorage({ query }),
    ];
    for (const { guarantee } of engines) expect(page).toContain(`| ${guarantee} `);
  });

  redisServer.describe('its way to Redis', () => {
    let redis: RunningRedis;
    let nodes: RunningRedisCluster;
    beforeAll(async () => {
      [redis, nodes] = await Promise.all([startRedis(), startRedisCluster()]);
    });
    afterAll(async () => {
      await Promise.all([redis.stop(), nodes.stop()]);
    });
    const storageOf = (row: string, names: object) =>
      redisStorage({ sendCommand: runCode(`return ${codeOf(row)}`, { ...names }) as SendCommand });

    it('works through node-redis', async () => {
      const client = redisClient(redis.url);
      await client.connect();
      scene.afterwards(() => client.close());
      await expectToKeepRows(storageOf('node-redis, one node', { client }));
    });

    it('works through node-redis and a Cluster', async () => {
      const cluster = createCluster({ rootNodes: nodes.nodes.map((socket) => ({ socket })) });
      await cluster.connect();
      scene.afterwards(() => cluster.close());
      await expectToKeepRows(storageOf('node-redis, Cluster', { cluster }));
    });

    it('works through ioredis', async () => {
      const client = new Redis(redis.url);
      scene.afterwards(() => client.quit());
      await expectToKeepRows(storageOf('ioredis, one node, Sentinel or Cluster', { client }));
    });
  });

  postgresServer.describe('its way to Postgres', () => {
    const table = 'app.debate_space';
    let server: RunningPostgres;
    let pool: Pool;
    beforeAll(async () => {
      server = await startPostgres();
      pool = postgresPool({ connectionString: server.connectionString });
    });
    afterAll(async () => {
      await pool.end();
      await server.stop();
    });
    const rowsOf = async (text: string, values: unknown[]): Promise<unknown[]> =>
      (await pool.query<object>(text, values)).rows;
    // As these packages have it: none of them is one of this workspace.
    const dataSource = { query: rowsOf };
    const prisma = { $queryRawUnsafe: (text: string, ...values: unknown[]) => rowsOf(text, values) };

    it.each([
      ['pg', () => ({ pool })],
      ['TypeORM', () => ({ dataSource })],
      ['Prisma', () => ({ prisma })],
      ['Drizzle, with node-postgres', () => ({ db: { $client: pool } })],
    ])('works through %s', async (row, names) => {
      const query = runCode(`return ${codeOf(row)}`, names()) as PostgresQuery;
      await expectToKeepRows(postgresStorage({ query }));
    });

    /** Over one connection, as these packages have it for one transaction. */
    async function inTransaction<T>(work: (query: typeof rowsOf) => Promise<T>): Promise<T> {
      const client = await pool.connect();
      try {
        await client.query('BEGIN');
        const done = await work(async (text, values) => (await client.query<object>(text, values)).rows);
        await client.query('COMMIT');
        return done;
      } catch (error) {
        await client.query('ROLLBACK');
        throw error;
      } finally {
        client.release();
      }
    }
    const transactions: Record<string, unknown> = {
      'src/accounts/delete-account.ts': () => pool,
      'delete-account-with-prisma.ts': () => ({
        $transaction: (work: (tx: object) => Promise<void>) =>
          inTransaction((query) =>
            work({
              $queryRawUnsafe: (text: string, ...values: unknown[]) => query(text, values),
              account: {
                delete: ({ where: { uid } }: { where: { uid: string } }) =>
                  query('DELETE FROM account WHERE uid = $1', [uid]),
              },
            }),
          ),
      }),
    };
    it.each(Object.keys(transactions))('takes an erasure in the transaction of %s', async (path) => {
      const { deleteAccount } = (
        path.endsWith('prisma.ts') ? runRecipe(path, {}) : runSnippet(transactionPage, path, {})
      ) as {
        deleteAccount: (uid: string, connection: unknown, erasures: unknown) => Promise<void>;
      };
      const connection = (transactions[path] as () => unknown)();
      const storage = postgresStorage({ query: (text, values) => pool.query(text, values) });
      const options = { storage, storageKey: 'the storage key of a test', worker: false };
      const app = await scene.app(options);
      const erasures = (await app.init()).get(plugin.DebateSpaceErasures);
      const listed = async (): Promise<number> => {
        let count = 0;
        for await (const erasure of erasures.list()) count += 'total' in erasure ? erasure.total : 0;
        return count;
      };
      const before = await listed();
      await pool.query('CREATE TABLE IF NOT EXISTS account (uid text PRIMARY KEY)');
      await pool.query(
        'CREATE TABLE IF NOT EXISTS held (uid text REFERENCES account DEFERRABLE INITIALLY DEFERRED)',
      );
      await pool.query(`INSERT INTO account VALUES ('${path}'), ('held ${path}')`);
      await pool.query(`INSERT INTO held VALUES ('held ${path}')`); // the commit fails
      await deleteAccount(path, connection, erasures);
      await expect(deleteAccount(`held ${path}`, connection, erasures)).rejects.toMatchObject({
        code: '23503',
      });
      expect(await listed()).toBe(before + 1);
      expect(await rowsOf('SELECT uid FROM account WHERE uid LIKE $1', [`%${path}`])).toHaveLength(1);
    });

    it('is set up by the migration that the command prints', () => {
      const [, code = ''] = /^node --input-type=module -e "\n(.*?)"$/ms.exec(page) ?? [];
      let printed = '';
      runCode(code.replace(/import (.*?) from '(.*?)';/, "const $1 = require('$2');"), {
        require: (name: string) => ({ 'nestjs-debate-space/postgres': postgres })[name],
        console: { log: (text: string) => (printed += text) },
      });
      expect(printed).toBe(`${postgres.postgresMigration({ table })};`);
    });

    it('is open, after the migration and the grants, to a role that may not create tables', async () => {
      const { DebateSpace1760000000000: Migration } = runRecipe('debate-space-migration.ts', {
        'nestjs-debate-space/postgres': postgres,
      }) as Record<string, new () => Record<'up' | 'down', (runner: Pool) => Promise<void>>>;
      if (!Migration) throw new Error('the recipe has no migration');
      const [, grants = ''] = /^```sql\n(.*?)^```/ms.exec(page) ?? [];
      await new Migration().up(pool);
      await pool.query('ALTER DEFAULT PRIVILEGES REVOKE EXECUTE ON FUNCTIONS FROM PUBLIC');
      await pool.query('REVOKE EXECUTE ON ALL FUNCTIONS IN SCHEMA app FROM PUBLIC');
      await pool.query(`CREATE ROLE my_app LOGIN; ${grants}`);

      const ofRole = postgresPool({ connectionString: server.connectionString, user: 'my_app' });
      scene.afterwards(() => ofRole.end());
      await expectToKeepRows(postgresStorage({ query: (text, values) => ofRole.query(text, values), table }));
      await new Migration().down(pool);
      expect(await rowsOf(`SELECT to_regclass('app.debate_space') AS name`, [])).toEqual([{ name: null }]);
    });
  });
});

const example = runRecipe('my-storage.ts', { 'nestjs-debate-space': plugin });
runSnippet(customPage, 'test/my-storage.spec.ts', {
  '../src/my-storage.js': example,
  'nestjs-debate-space/storage-contract': contract,
});

describe('the way to another storage', () => {
  it('delivers what waits in the old one, and each new logout once', async () => {
    const path = mkdtempSync(join(tmpdir(), 'former-storage-'));
    scene.afterwards(() => {
      rmSync(path, { recursive: true });
    });
    const { former } = runRecipe('former-storage.ts', {
      'nestjs-debate-space/lmdb': { lmdbStorage: () => lmdbStorage({ path }) },
    }) as { former: (options: plugin.DebateSpaceModuleOptions) => plugin.DebateSpaceModuleOptions };
    const { service } = scene;
    const act = destroySession;
    const logOut = async (host: SessionHost, uid: string): Promise<void> => {
      const browser = await logInTo(host, uid);
      await browser.post('/act');
    };
    const repair = service.faults.add({ kind: 'status', status: 503, operation: 'logout' });
    await logOut(await scene.start({ act }, { storage: lmdbStorage({ path }) }), 'alice');
    await scene.stop();
    repair();
    const debateSpace = [using(service), former(using(service))];
    await logOut(await scene.start({ act, debateSpace }), 'bob');
    await service.received.waitFor(({ uid, accepted }) => uid === 'alice' && accepted, { timeoutMs: 60_000 });
    expect((await scene.logouts()).toSorted()).toEqual(['alice', 'bob']);
  });
});
