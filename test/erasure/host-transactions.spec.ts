import { afterAll, afterEach, beforeAll, beforeEach, expect, it } from '@jest/globals';
import {
  DebateSpaceErasures,
  memoryStorage,
  type DebateSpaceEvent,
  type ErasureStatus,
  type HostTransaction,
  type StorageEngine,
} from 'nestjs-debate-space';
import { postgresStorage } from 'nestjs-debate-space/postgres';
import type { Pool, PoolClient } from 'pg';
import { eventsOf } from 'debate-space-fixtures/events.js';
import {
  postgresPool,
  postgresServer,
  startPostgres,
  type RunningPostgres,
} from 'debate-space-fixtures/postgres.js';
import { postgresShapes } from 'debate-space-fixtures/postgres-clients.js';
import { scenario } from 'debate-space-fixtures/scenario.js';

const uidsOf = (count: number, prefix = 'user'): string[] =>
  Array.from({ length: count }, (_, n) => `${prefix}-${n}`);

postgresServer.describe("an erasure in the host's own transaction", () => {
  let server: RunningPostgres;
  let pool: Pool;
  let engine: StorageEngine;
  let table: string;
  let tables = 0;
  const scene = scenario({ rateLimit: false });
  beforeAll(async () => {
    server = await startPostgres();
    pool = postgresPool({ connectionString: server.connectionString, max: 20 });
    await pool.query('CREATE TABLE account (uid text PRIMARY KEY)');
  });
  afterAll(async () => {
    await pool.end();
    await server.stop();
  });
  beforeEach(() => {
    table = `public.erasures_${(tables += 1)}`;
    engine = postgresStorage({ query: (text, values) => pool.query(text, values), table });
  });
  afterEach(async () => {
    await pool.query('TRUNCATE account');
  });

  async function start(worker = true, storage = engine): Promise<DebateSpaceErasures> {
    const storageKey = 'the storage key of a test';
    const options = { storage, storageKey, worker, http: { rateLimit: false as const } };
    const app = await (await scene.app(options)).init();
    events = eventsOf(app);
    return app.get(DebateSpaceErasures);
  }
  let events: DebateSpaceEvent[];

  /** As a host does it: again on 40001 and 40P01, and rolled back on any other error. */
  async function inTransaction<T>(work: (client: PoolClient) => Promise<T>): Promise<T> {
    for (;;) {
      const client = await pool.connect();
      try {
        await client.query('BEGIN');
        const result = await work(client);
        await client.query('COMMIT');
        return result;
      } catch (error) {
        await client.query('ROLLBACK');
        if (!['40001', '40P01'].includes(String((error as { code?: string }).code))) throw error;
      } finally {
        client.release();
      }
    }
  }
  class RolledBack extends Error {}
  const rollBack = (): never => {
    throw new RolledBack();
  };
  async function all<T>(items: AsyncIterable<T>): Promise<T[]> {
    const found: T[] = [];
    for await (const item of items) found.push(item);
    return found;
  }
  async function finished(erasures: DebateSpaceErasures): Promise<readonly ErasureStatus[]> {
    for (;;) {
      const listed = await all(erasures.list());
      const found = listed.filter((erasure) => erasure.state !== 'unreadable');
      expect(found).toHaveLength(listed.length);
      if (found.every(({ state }) => state === 'done')) return found;
      await new Promise((resolve) => setTimeout(resolve, 100));
    }
  }
  const rowsOfErasures = async (): Promise<number> => {
    const { rows } = await pool.query<{ key: string }>(`SELECT key FROM ${table} WHERE key ~ ':erasure'`);
    return rows.length;
  };

  it.each(postgresShapes)('exists exactly if the host commits, through $name', async (shape) => {
    const erasures = await start(false);
    const request = (client: PoolClient, uid: string) => {
      const transaction: HostTransaction = { query: shape.query(client) };
      return erasures.request({ uid, mode: 'delete', reference: `of ${uid}`, transaction });
    };
    const rolledBack = inTransaction(async (client) => {
      expect(await request(client, 'alice')).toMatchObject({
        total: 1,
        complete: true,
        alreadyRequested: false,
      });
      await expect(erasures.status('of alice')).rejects.toMatchObject({
        code: 'ERR_DEBATE_SPACE_UNKNOWN_ERASURE',
      });
      rollBack();
    });
    await expect(rolledBack).rejects.toThrow(RolledBack);
    expect(await rowsOfErasures()).toBe(0);
    await inTransaction((client) => request(client, 'bob'));
    expect(await all(erasures.list())).toMatchObject([{ reference: 'of bob', total: 1, waiting: 1 }]);
    expect(events.filter(({ type }) => type === 'erasure-requested')).toEqual([]);
  });

  it('is found by a runner after the commit', async () => {
    const erasures = await start();
    scene.service.users.add({ uid: 'carol' });
    await inTransaction((transaction) =>
      erasures.request({ uid: 'carol', mode: 'delete', reference: 'c', transaction }),
    );
    expect(await finished(erasures)).toMatchObject([{ reference: 'c', done: 1 }]);
  });

  it('of a list without a user leaves nothing, although the host commits', async () => {
    const erasures = await start(false);
    const request = { mode: 'delete', reference: 'nobody' } as const;
    for (const list of [[], ['']])
      await inTransaction(async (transaction) => {
        await expect(erasures.requestMany(list, { ...request, transaction })).rejects.toMatchObject({
          code: 'ERR_DEBATE_SPACE_INVALID_ARGUMENT',
        });
      });
    expect(await rowsOfErasures()).toBe(0);
  });

  it('of many is in commits of 250 users, all or none of which exist', async () => {
    const erasures = await start(false);
    const uids = uidsOf(600);
    const request = (transaction: HostTransaction, reference: string) =>
      erasures.requestMany(uids, { mode: 'anonymize', reference, transaction });
    const statements: string[] = [];
    const rolledBack = inTransaction(async (client) => {
      const query = (text: string, values: string[]) => {
        statements.push(text);
        return client.query(text, values);
      };
      expect(await request({ query }, 'none')).toMatchObject({ total: 600, complete: true });
      rollBack();
    });
    await expect(rolledBack).rejects.toThrow(RolledBack);
    expect(statements.filter((text) => text.includes('_commit_v1'))).toHaveLength(4); // 250, 250, 100, end
    expect(await rowsOfErasures()).toBe(0);
    await inTransaction((client) => request(client, 'all'));
    expect(await all(erasures.list())).toMatchObject([{ reference: 'all', total: 600, waiting: 600 }]);
  });

  it('leaves nothing of what is rolled back under load: exactly the committed ones are erased', async () => {
    const erasures = await start();
    const uids = uidsOf(160);
    for (const uid of [...uids, ...uidsOf(40, 'shared')]) {
      scene.service.users.add({ uid });
      await pool.query('INSERT INTO account VALUES ($1)', [uid]);
    }
    /** Each deletes a user of its own and one that others delete, too; half of them are rolled back. */
    const deleteUser = (uid: string, n: number) =>
      inTransaction(async (transaction) => {
        const mine = [uid, `shared-${n % 40}`];
        await transaction.query('DELETE FROM account WHERE uid = ANY ($1)', [mine]);
        const reference = n % 5 === 0 ? 'one for many' : undefined;
        if (n % 3 === 0) {
          await erasures.requestMany(mine, { mode: 'delete', reference: `list ${n}`, transaction });
        } else {
          await erasures.request({ uid, mode: 'delete', reference, transaction });
        }
        if (n % 2 === 1) rollBack();
      });
    const outcomes = await Promise.allSettled(uids.map(deleteUser));
    for (const outcome of outcomes) {
      if (outcome.status === 'rejected') expect(outcome.reason).toBeInstanceOf(RolledBack);
    }
    expect(outcomes.filter(({ status }) => status === 'fulfilled')).toHaveLength(80);

    const references = await finished(erasures);
    const kept = await pool.query<{ uid: string }>('SELECT uid FROM account WHERE uid LIKE $1', ['user-%']);
    expect(kept.rows).toHaveLength(80);
    const erased = new Set(scene.service.received.of('delete').map(({ uid }) => uid));
    const committed = uids.filter((_, n) => n % 2 === 0);
    const shared = uids.flatMap((_, n) => (n % 6 === 0 ? [`shared-${n % 40}`] : []));
    expect(erased).toEqual(new Set([...committed, ...shared]));
    expect(references.reduce((sum, { total }) => sum + total, 0)).toBe(
      committed.length + uids.filter((_, n) => n % 6 === 0).length,
    );
    const { rows } = await pool.query(
      `SELECT key FROM ${table} WHERE key ~ ':erasure(pending|parked|due|key|since|aside|paused):'`,
    );
    expect(rows).toEqual([]);
  }, 60_000);

  it("leaves the host its own errors, and the host's transaction fails as it would without it", async () => {
    const erasures = await start(false);
    await inTransaction((transaction) =>
      erasures.request({ uid: 'alice', mode: 'delete', reference: 'r', transaction }),
    );
    const [one, other] = [await pool.connect(), await pool.connect()];
    try {
      for (const client of [one, other]) await client.query('BEGIN ISOLATION LEVEL REPEATABLE READ');
      for (const client of [one, other]) await client.query('SELECT count(*) FROM account');
      const first = { uid: 'bob', mode: 'delete', reference: 'r', transaction: one } as const;
      await erasures.request(first);
      const second = erasures.request({ ...first, uid: 'carol', transaction: other });
      const refused = expect(second).rejects.toMatchObject({ code: '40001' });
      await one.query('COMMIT');
      await refused;
      await expect(other.query('SELECT 1')).rejects.toMatchObject({ code: '25P02' }); // until the host rolls back
      await other.query('ROLLBACK');
      expect(await erasures.status('r')).toMatchObject({ total: 2 });
    } finally {
      one.release();
      other.release();
    }
  });

  it('is refused with a hint, before anything is stored, by a storage without transactions of the host', async () => {
    const erasures = await start(true, memoryStorage());
    const transaction = { query: () => Promise.reject(new Error('not to be called')) };
    const refused = {
      code: 'ERR_DEBATE_SPACE_INVALID_ARGUMENT',
      message: expect.stringMatching(/hint: use postgresStorage/),
    };
    const request = { mode: 'delete', reference: 'r', transaction } as const;
    await expect(erasures.request({ uid: 'alice', ...request })).rejects.toMatchObject(refused);
    await expect(erasures.requestMany(['alice'], request)).rejects.toMatchObject(refused);
    const nothing = { ...request, transaction: {} as HostTransaction };
    await expect(erasures.request({ uid: 'alice', ...nothing })).rejects.toMatchObject({
      code: refused.code,
    });
    expect(await all(erasures.list())).toEqual([]);
    expect(events).toEqual([]);
  });
});
