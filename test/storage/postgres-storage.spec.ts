import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, it, jest } from '@jest/globals';
import { performance } from 'node:perf_hooks';
import { Client, type Pool, type PoolClient } from 'pg';
import { StorageError, type Storage, type StorageContext } from 'durable-jobs';
import { postgresMigration, type PostgresQuery } from 'durable-jobs/postgres';
import { PostgresStorage } from '../../libs/durable-jobs/src/postgres.js';
import {
  postgresPool,
  postgresServer,
  startPostgres,
  type RunningPostgres,
} from 'debate-space-fixtures/postgres.js';
import { postgresShapes } from 'debate-space-fixtures/postgres-clients.js';

const values = (...rows: [string, string | undefined][]) => new Map(rows);
const none = values();
const context = (namespace = 'app'): StorageContext => ({
  namespace,
  families: ['row'],
  contained: (work) => {
    work();
  },
});
const stateOf = (error: unknown): unknown => (error as { code?: unknown }).code;

postgresServer.describe('the storage in Postgres', () => {
  let postgres: RunningPostgres;
  let admin: Client;
  let pool: Pool;
  let databases = 0;
  const closing: (() => unknown)[] = [];

  beforeAll(async () => {
    postgres = await startPostgres();
    admin = new Client(postgres.connectionString);
    await admin.connect();
  });
  beforeEach(async () => {
    databases += 1;
    await admin.query(`CREATE DATABASE test_${databases}`);
    pool = poolAs('postgres');
  });
  afterEach(async () => {
    jest.restoreAllMocks();
    for (const close of closing.splice(0).reverse()) await close();
  });
  afterAll(async () => {
    await admin.end();
    await postgres.stop();
  });

  function poolAs(user: string, options = ''): Pool {
    const url = new URL(postgres.connectionString);
    url.username = user;
    url.pathname = `/test_${databases}`;
    const made = postgresPool({ connectionString: url.href, max: 16, options });
    closing.push(() => made.end());
    return made;
  }

  const queryOf =
    (connection: Pick<Pool, 'query'>): PostgresQuery =>
    (text, values) =>
      connection.query(text, values);

  async function open(
    query: PostgresQuery = queryOf(pool),
    { namespace, ...options }: { namespace?: string; table?: string; timeoutMs?: number } = {},
  ): Promise<PostgresStorage> {
    const storage = await PostgresStorage.open({ query, ...options }, context(namespace));
    closing.push(() => storage.close());
    return storage;
  }

  /** Every statement once, and both answers of a commit. */
  async function expectToWork(storage: Storage): Promise<void> {
    expect(await storage.commit(values(['row:a', undefined]), values(['row:a', 'é'], ['row:b', '']))).toBe(
      true,
    );
    expect(await storage.commit(values(['row:a', undefined]), values(['row:c', 'never']))).toBe(false);
    expect(await storage.get(['row:b', 'row:c', 'row:a'])).toEqual(['', undefined, 'é']);
    const rows = [
      ['row:a', 'é'],
      ['row:b', ''],
    ];
    expect(await storage.range('row:', 'row;', { limit: 9 })).toEqual(rows);
    expect(await storage.range('row:', 'row;', { limit: 9, reverse: true })).toEqual(rows.reverse());
    expect(await storage.count('row')).toBe(2);
    expect(Math.abs(storage.now() - Date.now())).toBeLessThan(1_000);
  }

  /** Runs `work` in a transaction of the host's. */
  async function transaction<T>(
    work: (client: PoolClient) => Promise<T>,
    end: 'COMMIT' | 'ROLLBACK' = 'COMMIT',
    isolation = 'READ COMMITTED',
  ): Promise<T> {
    const client = await pool.connect();
    try {
      await client.query(`BEGIN ISOLATION LEVEL ${isolation}`);
      const result = await work(client);
      await client.query(end);
      return result;
    } catch (error) {
      await client.query('ROLLBACK');
      throw error;
    } finally {
      client.release();
    }
  }

  /** Resolves when so many connections wait for a lock. */
  async function waiting(count: number): Promise<void> {
    for (;;) {
      const { rows } = await admin.query<{ count: string }>(
        `SELECT count(*) FROM pg_stat_activity WHERE wait_event_type = 'Lock' AND datname = $1`,
        [`test_${databases}`],
      );
      if (Number(rows[0]?.count) >= count) return;
    }
  }

  it.each(postgresShapes)('works through the shape of $name', async (shape) => {
    await expectToWork(await open(shape.query(pool)));
  });

  it('keeps applications that share a table apart', async () => {
    await expectToWork(await open(undefined, { namespace: 'app' }));
    await expectToWork(await open(undefined, { namespace: 'app-2' }));
    await expectToWork(await open(undefined, { namespace: 'App' }));
  });

  it('orders keys by their bytes, whatever the collation of the database', async () => {
    await admin.query(`DROP DATABASE test_${databases}`);
    await admin.query(
      `CREATE DATABASE test_${databases} TEMPLATE template0 LOCALE_PROVIDER icu ICU_LOCALE 'en-US' LOCALE 'C'`,
    );
    const storage = await open();
    await storage.commit(none, values(['row:b', '1'], ['row:B', '1'], ['row:a', '1'], ['row:-', '1']));
    const rows = await storage.range('row:', 'row;', { limit: 9 });
    expect(rows.map(([key]) => key)).toEqual(['row:-', 'row:B', 'row:a', 'row:b']);
  });

  it('counts once a second', async () => {
    const storage = await open();
    expect(await storage.count('row')).toBe(0);
    await storage.commit(none, values(['row:a', '1']));
    const now = performance.now();
    const clock = jest.spyOn(performance, 'now').mockReturnValue(now);
    expect(await storage.count('row')).toBe(0);
    clock.mockReturnValue(now + 1_000);
    expect(await storage.count('row')).toBe(1);
  });

  it('says that commits may be lost where they are not written through', async () => {
    expect((await open()).warnings).toEqual([
      { problem: expect.stringContaining('(fsync = off)'), hint: 'set fsync = on' },
    ]);
    const careless = await open(queryOf(poolAs('postgres', '-c synchronous_commit=off')));
    expect(careless.warnings).toHaveLength(2);
  });

  it('has no warnings when Postgres writes its commits through', async () => {
    const durable = await startPostgres('on');
    closing.push(() => durable.stop());
    const own = postgresPool({ connectionString: durable.connectionString });
    closing.push(() => own.end());
    expect((await open(queryOf(own))).warnings).toEqual([]);
  });

  describe('its table, dropped while it is open,', () => {
    it('is made again by the first of many calls, and noticed', async () => {
      const storage = await open();
      await storage.commit(none, values(['row:a', '1']));
      expect(storage.wasEmptied).toBe(false);
      await pool.query('DROP TABLE durable_jobs');
      const [found, rows, made] = await Promise.all([
        storage.get(['row:a']),
        storage.range('row:', 'row:b', { limit: 9 }),
        storage.commit(none, values(['row:c', '1'])),
      ]);
      expect([found, rows, made, storage.wasEmptied]).toEqual([[undefined], [], true, true]);
      expect(await storage.get(['row:c'])).toEqual(['1']);
    });

    it('is named in the error when the role may not make it', async () => {
      await open();
      await pool.query('GRANT SELECT, INSERT, UPDATE, DELETE ON durable_jobs TO PUBLIC');
      await pool.query(`CREATE ROLE guest_${databases} LOGIN`);
      const storage = await open(queryOf(poolAs(`guest_${databases}`)));
      await pool.query('DROP TABLE durable_jobs');
      await expect(storage.get(['row:a'])).rejects.toMatchObject({
        problem: expect.stringMatching(
          /^The table "public"\."durable_jobs" of postgresStorage is missing and could not be created \(42501\)$/,
        ),
        hint: expect.stringContaining('postgresMigration'),
      });
    });
  });

  describe('its set-up', () => {
    it('is made once when many processes start at the same time', async () => {
      const connections = await Promise.all(Array.from({ length: 8 }, async () => pool.connect()));
      for (const connection of connections) connection.release();
      const storages = await Promise.all(Array.from({ length: 8 }, async () => open()));
      await Promise.all(storages.map(async (storage) => storage.commit(none, values(['row:a', '1']))));
      expect(await storages[0]?.count('row')).toBe(1);
    });

    it('may run again over what is stored', async () => {
      const storage = await open();
      await storage.commit(none, values(['row:a', '1']));
      await pool.query(postgresMigration());
      expect(await storage.get(['row:a'])).toEqual(['1']);
    });

    it.each([
      ['Durable_Jobs', 'public.durable_jobs'],
      ['app.Durable_Jobs', 'app.durable_jobs'],
      ['"My ""App""".durable_jobs', '"My ""App""".durable_jobs'],
      ['app."select from"', 'app."select from"'],
    ])('knows the table %s as Postgres does', async (table, stored) => {
      await pool.query('CREATE SCHEMA app; CREATE SCHEMA "My ""App"""');
      await expectToWork(await open(undefined, { table }));
      const { rows } = await pool.query<{ key: string }>(`SELECT key FROM ${stored} ORDER BY key`);
      expect(rows.map(({ key }) => key)).toEqual(['app:row:a', 'app:row:b']);
    });

    it('does not depend on the search path', async () => {
      await pool.query('CREATE SCHEMA other');
      await expectToWork(await open(queryOf(poolAs('postgres', '-c search_path=other'))));
    });

    it.each(['', 'a b', 'a.b.c', 'a;DROP TABLE b', '"a$setup$"', '"a', 'x'.repeat(54)])(
      'refuses the name %j',
      async (table) => {
        await expect(open(undefined, { table })).rejects.toThrow(StorageError);
        expect(() => postgresMigration({ table })).toThrow(StorageError);
      },
    );

    describe('by a role that may not create tables', () => {
      const role = () => queryOf(poolAs(`app_${databases}`));
      beforeEach(async () => {
        await pool.query(
          `CREATE ROLE app_${databases} LOGIN; REVOKE CREATE ON SCHEMA public FROM PUBLIC; CREATE SCHEMA app`,
        );
      });

      it.each([undefined, 'app.durable_jobs', 'missing.durable_jobs'])(
        'is refused, with a hint (table %s)',
        async (table) => {
          const opening = open(role(), { table });
          await expect(opening).rejects.toThrow(StorageError);
          await expect(opening).rejects.toThrow(/42501|3F000/);
        },
      );

      it('names the migration', async () => {
        await expect(open(role())).rejects.toThrow(/\(42501\); hint: run the SQL of postgresMigration/);
      });

      it('is not needed after the migration', async () => {
        await pool.query(postgresMigration({ table: 'app.durable_jobs' }));
        await pool.query(`GRANT USAGE ON SCHEMA app TO app_${databases}`);
        await expect(open(role(), { table: 'app.durable_jobs' })).rejects.toThrow(/42501.*hint:.*role/);
        await pool.query(`GRANT SELECT, INSERT, UPDATE, DELETE ON app.durable_jobs TO app_${databases}`);
        await expectToWork(await open(role(), { table: 'app.durable_jobs' }));
      });
    });
  });

  describe('commits at the same time', () => {
    /** Adds one to several counters, in any order. */
    async function increment(storage: Storage, keys: readonly string[]): Promise<void> {
      for (;;) {
        const found = await storage.get(keys);
        const checks = keys.map((key, n): [string, string | undefined] => [key, found[n]]);
        const changes = keys.map((key, n): [string, string] => [key, String(Number(found[n] ?? 0) + 1)]);
        if (await storage.commit(values(...checks), values(...changes.reverse()))) return;
      }
    }

    it.each(['read committed', 'repeatable read', 'serializable'])(
      'never deadlock and lose nothing (%s)',
      async (isolation) => {
        const states: unknown[] = [];
        const busy = poolAs('postgres', `-c default_transaction_isolation=${isolation.replace(' ', '\\ ')}`);
        const storage = await open(async (text, values) =>
          busy.query(text, values).catch((error: unknown) => {
            states.push(stateOf(error));
            throw error;
          }),
        );
        const keys = Array.from({ length: 6 }, (_, n) => `row:${n}`);
        // Each takes four of six counters, beginning anywhere and in either direction.
        const rounds = Array.from({ length: 48 }, async (_, n) => {
          const turned = [...keys.slice(n % 6), ...keys.slice(0, n % 6)].slice(0, 4);
          await increment(storage, n % 2 ? turned : turned.reverse());
        });
        await Promise.all(rounds);
        const total = (await storage.get(keys)).reduce((sum, count) => sum + Number(count), 0);
        expect(total).toBe(48 * 4);
        expect(states).not.toContain('40P01');
        if (isolation === 'read committed') expect(states).toEqual([]);
      },
    );

    it.each([
      ['pg', (error: Error) => error],
      ['Drizzle', (cause: Error) => new Error('Failed query', { cause })],
      ['Prisma', (error: Error) => ({ code: 'P2010', meta: { code: stateOf(error) } })],
      [
        'Prisma with an adapter',
        (error: Error) => ({
          code: 'P2010',
          meta: { driverAdapterError: { cause: { originalCode: stateOf(error) } } },
        }),
      ],
    ])('are repeated after 40P01 in the shape of %s', async (_, wrapped) => {
      let failures = 0;
      const storage = await open(async (text, values) => {
        if (failures === 0 || !text.includes('_commit_v1"($1')) return pool.query(text, values);
        failures -= 1;
        throw wrapped(Object.assign(new Error('deadlock detected'), { code: '40P01' })) as Error;
      });
      failures = 2;
      expect(await storage.commit(none, values(['row:a', '1']))).toBe(true);
      expect(failures).toBe(0);
    });

    it('wait for each other where both change one row', async () => {
      const storage = await open();
      await storage.commit(none, values(['row:a', '1']));
      const second = await transaction(async (client) => {
        const first = storage.within({ query: queryOf(client) });
        expect(await first.commit(values(['row:a', '1']), values(['row:a', '2']))).toBe(true);
        const late = storage.commit(values(['row:a', '1']), values(['row:a', '3']));
        await waiting(1);
        return { late };
      });
      expect(await second.late).toBe(false);
      expect(await storage.get(['row:a'])).toEqual(['2']);
    });

    it('wait for each other also where one only checks that a key is absent', async () => {
      const storage = await open();
      const second = await transaction(async (client) => {
        const first = storage.within({ query: queryOf(client) });
        expect(await first.commit(values(['row:a', undefined]), values(['row:b', '1']))).toBe(true);
        const late = storage.commit(values(['row:b', undefined]), values(['row:a', '1']));
        await waiting(1);
        return { late };
      });
      expect(await second.late).toBe(false);
      expect(await storage.get(['row:a', 'row:b'])).toEqual([undefined, '1']);
    });

    it('wait for each other also where one removes a key that is absent', async () => {
      const storage = await open();
      const second = await transaction(async (client) => {
        const first = storage.within({ query: queryOf(client) });
        expect(await first.commit(values(['row:b', undefined]), values(['row:a', '1']))).toBe(true);
        const late = storage.commit(none, values(['row:a', undefined], ['row:b', '1']));
        await waiting(1);
        return { late };
      });
      expect(await second.late).toBe(true);
      expect(await storage.get(['row:a', 'row:b'])).toEqual([undefined, '1']);
    });

    it('are not held up by a host transaction that has other keys', async () => {
      const storage = await open();
      await transaction(async (client) => {
        await storage.within({ query: queryOf(client) }).commit(none, values(['row:a', '1']));
        expect(await storage.commit(none, values(['row:b', '1']))).toBe(true);
        expect(await storage.range('row:', 'row;', { limit: 9 })).toEqual([['row:b', '1']]);
      });
    });
  });

  describe('in a transaction of the host’s', () => {
    it('reads what the transaction has changed', async () => {
      const storage = await open();
      await transaction(async (client) => {
        const within = storage.within({ query: queryOf(client) });
        await within.commit(none, values(['row:a', '1']));
        expect(await within.get(['row:a'])).toEqual(['1']);
        expect(await within.range('row:', 'row;', { limit: 9 })).toEqual([['row:a', '1']]);
      });
    });

    it('keeps a commit exactly if the host commits, under load', async () => {
      const storage = await open();
      await pool.query('CREATE TABLE users (id int PRIMARY KEY)');
      await Promise.all(
        Array.from({ length: 60 }, async (_, n) => {
          await transaction(
            async (client) => {
              await client.query('INSERT INTO users VALUES ($1)', [n]);
              const within = storage.within({ query: queryOf(client) });
              expect(await within.commit(values([`row:${n}`, undefined]), values([`row:${n}`, `${n}`]))).toBe(
                true,
              );
            },
            n % 3 ? 'COMMIT' : 'ROLLBACK',
          );
          await storage.commit(none, values([`other:${n}`, '1']));
        }),
      );
      const { rows: users } = await pool.query<{ id: number }>('SELECT id FROM users ORDER BY id');
      const rows = await storage.range('row:', 'row;', { limit: 100 });
      expect(users).toHaveLength(40);
      expect(rows.map(([, value]) => Number(value)).sort((a, b) => a - b)).toEqual(users.map(({ id }) => id));
    });

    it('leaves the transaction usable, and the rows unlocked, when a check fails', async () => {
      const storage = await open();
      await storage.commit(none, values(['row:a', '1'], ['row:b', '1']));
      await transaction(async (client) => {
        const within = storage.within({ query: queryOf(client) });
        const checks = values(['row:a', '1'], ['row:b', 'wrong']);
        expect(await within.commit(checks, values(['row:a', '2'], ['row:0', '2']))).toBe(false);
        expect(await storage.commit(none, values(['row:a', '3']))).toBe(true);
        expect(await within.commit(none, values(['row:c', '4']))).toBe(true);
      });
      const rows = await storage.range('row:', 'row;', { limit: 9 });
      expect(rows).toEqual([
        ['row:a', '3'],
        ['row:b', '1'],
        ['row:c', '4'],
      ]);
    });

    it.each(['REPEATABLE READ', 'SERIALIZABLE'])(
      'leaves it to the host to repeat after 40001 (%s)',
      async (isolation) => {
        const storage = await open();
        await storage.commit(none, values(['row:a', '1']));
        const repeated = transaction(
          async (client) => {
            await client.query('SELECT 1'); // takes the snapshot
            await storage.commit(none, values(['row:a', '2']));
            await storage
              .within({ query: queryOf(client) })
              .commit(values(['row:a', '1']), values(['row:a', '3']));
          },
          'COMMIT',
          isolation,
        );
        expect(await repeated.catch(stateOf)).toBe('40001');
        expect(await storage.get(['row:a'])).toEqual(['2']);
      },
    );

    it('leaves it to the host to repeat after 40P01', async () => {
      const storage = await open();
      const twoCommits = (first: string, second: string, met: () => Promise<void>) =>
        transaction(async (client) => {
          const within = storage.within({ query: queryOf(client) });
          await within.commit(none, values([first, '1']));
          await met();
          await within.commit(none, values([second, '1']));
        }).catch(stateOf);
      let arrived = 0;
      let go: () => void = () => undefined;
      const both = new Promise<void>((resolve) => (go = resolve));
      const met = (): Promise<void> => {
        arrived += 1;
        if (arrived === 2) go();
        return both;
      };
      const ends = await Promise.all([twoCommits('row:a', 'row:b', met), twoCommits('row:b', 'row:a', met)]);
      expect(ends.filter((end) => end === '40P01')).toHaveLength(1);
      expect(await storage.get(['row:a', 'row:b'])).toEqual(['1', '1']);
    });
  });

  describe('when Postgres does not answer', () => {
    it('rejects in time, and names nothing of what was sent', async () => {
      let isAway = false;
      const storage = await open(
        (text, values) => (isAway ? new Promise(() => undefined) : pool.query(text, values)),
        { timeoutMs: 1_000 },
      );
      isAway = true;
      const commit = storage.commit(none, values(['row:of-a-user', 'a secret']));
      await expect(commit).rejects.toThrow(StorageError);
      await expect(commit).rejects.toThrow(/no answer.*hint:/);
      await expect(commit).rejects.not.toThrow(/secret|of-a-user/);
      await expect(storage.count('row')).rejects.toThrow(StorageError);
      isAway = false;
      expect(await storage.count('row')).toBe(0);
    });

    it('gives up a commit that the host’s transaction keeps waiting', async () => {
      const storage = await open(undefined, { timeoutMs: 1_000 });
      await pool.query('ALTER FUNCTION durable_jobs_commit_v1(text, text) SET lock_timeout = 500');
      await transaction(async (client) => {
        await storage.within({ query: queryOf(client) }).commit(none, values(['row:a', '1']));
        const late = storage.commit(none, values(['row:a', '2']));
        await expect(late).rejects.toThrow(/55P03/);
      });
    });

    it('names the cause of a failure, and nothing of what was sent', async () => {
      const storage = await open();
      await pool.query('ALTER TABLE durable_jobs RENAME COLUMN value TO another');
      const error = await Promise.resolve(storage.get(['row:of-a-user'])).catch((caught: unknown) => caught);
      expect(String(error)).toMatch(/Postgres failed \(42703\)/);
      expect(JSON.stringify([error, String(error)])).not.toMatch(/of-a-user/);
    });

    it.each([
      ['nothing', undefined],
      ['something else', 'OK'],
    ])('does not open through a query that returns %s', async (_, result) => {
      await expect(open(() => Promise.resolve(result))).rejects.toThrow(/must return the result/);
    });
  });

  it('waits for open commits when it is closed, and refuses later calls', async () => {
    const storage = await open();
    let isMade = false;
    void storage.commit(none, values(['row:a', '1'])).then((made) => {
      isMade = made;
    });
    await storage.close();
    expect(isMade).toBe(true);
    await expect(storage.get(['row:a'])).rejects.toThrow(StorageError);
  });
});
