import { afterAll, afterEach, beforeAll, expect, it } from '@jest/globals';
import { DebateSpaceErasures, type DebateSpaceEvent, type HostTransaction } from 'nestjs-debate-space';
import { eventsOf, nextEvents } from '#support/hosts/events.js';
import { scenario } from '#support/hosts/scenario.js';
import { tableStorages } from '#support/storages/table-storages.js';

/** What Postgres and MariaDB call a transaction that lost against another one, and is to be repeated. */
const LOST: readonly unknown[] = ['40001', '40P01', 1213, 1205];
const uidsOf = (count: number, prefix = 'user'): string[] =>
  Array.from({ length: count }, (_, n) => `${prefix}-${n}`);
const scene = scenario({ rateLimit: false });

class RolledBack extends Error {}
const rollBack = (): never => {
  throw new RolledBack();
};

async function all<T>(items: AsyncIterable<T>): Promise<T[]> {
  const found: T[] = [];
  for await (const item of items) found.push(item);
  return found;
}

const kinds = tableStorages.filter(({ name }) => name === 'Postgres' || name === 'MariaDB');

for (const kind of kinds) {
  kind.describe(`an erasure in the host's own transaction, on ${kind.name},`, () => {
    let events: DebateSpaceEvent[];
    let erasures: DebateSpaceErasures;
    beforeAll(async () => {
      await kind.engine();
      await run('CREATE TABLE account (uid varchar(20) PRIMARY KEY)');
    });
    afterEach(async () => {
      await scene.stop();
      for (const table of ['account', 'debate_space_jobs', 'debate_space_references'])
        await run(`DELETE FROM ${table}`);
    });
    afterAll(() => kind.stop());

    async function start(worker: boolean) {
      const storage = await kind.engine();
      const storageKey = 'the storage key of a test';
      const app = await scene.app({ storage, storageKey, worker, http: { rateLimit: false } });
      await app.init();
      events = eventsOf(app);
      erasures = app.get(DebateSpaceErasures);
      return app;
    }

    /** As a host does it: again when it has lost against another one, and rolled back on any other error. */
    async function inTransaction<T>(work: (transaction: HostTransaction) => Promise<T>): Promise<T> {
      for (;;) {
        try {
          const results: T[] = [];
          await kind.transaction?.(async (host) => void results.push(await work(host)));
          return results[0] as T;
        } catch (error) {
          const { code, errno } = error as { code?: unknown; errno?: unknown };
          if (!LOST.includes(code) && !LOST.includes(errno)) throw error;
        }
      }
    }
    const run = (statement: string): Promise<unknown> => inTransaction((host) => host.query(statement));
    const rowsOf = async (table: string): Promise<number> =>
      ((await run(`SELECT * FROM ${table}`)) as unknown[]).length;
    const rowsOfErasures = async (): Promise<number> =>
      (await rowsOf('debate_space_jobs')) + (await rowsOf('debate_space_references'));

    it('exists if and only if the host commits', async () => {
      await start(false);
      const request = (uid: string) => async (host: HostTransaction) => {
        const requested = await erasures.request({
          uid,
          mode: 'delete',
          reference: `of ${uid}`,
          transaction: host,
        });
        expect(requested).toMatchObject({ total: 1, complete: true, alreadyRequested: false });
        await expect(erasures.status(`of ${uid}`)).rejects.toMatchObject({
          code: 'ERR_DEBATE_SPACE_UNKNOWN_ERASURE',
        });
        if (uid === 'alice') rollBack();
      };
      await expect(inTransaction(request('alice'))).rejects.toThrow(RolledBack);
      expect(await rowsOfErasures()).toBe(0);
      await inTransaction(request('bob'));
      expect(await all(erasures.list())).toMatchObject([{ reference: 'of bob', total: 1, waiting: 1 }]);
      expect(events.filter(({ type }) => type === 'erasure-requested')).toEqual([]);
    });

    it('of a list without a user leaves nothing, although the host commits', async () => {
      await start(false);
      for (const list of [[], ['']])
        await inTransaction(async (host) => {
          const request = { mode: 'delete', reference: 'nobody', transaction: host } as const;
          await expect(erasures.requestMany(list, request)).rejects.toMatchObject({
            code: 'ERR_DEBATE_SPACE_INVALID_ARGUMENT',
          });
        });
      expect(await rowsOfErasures()).toBe(0);
    });

    it('of 600 users is all there, or not at all', async () => {
      await start(false);
      const request = (reference: string) => async (host: HostTransaction) => {
        const bulk = { mode: 'anonymize', reference, transaction: host } as const;
        expect(await erasures.requestMany(uidsOf(600), bulk)).toMatchObject({ total: 600, complete: true });
        if (reference === 'none') rollBack();
      };
      await expect(inTransaction(request('none'))).rejects.toThrow(RolledBack);
      expect(await rowsOfErasures()).toBe(0);
      await inTransaction(request('all'));
      expect(await all(erasures.list())).toMatchObject([{ reference: 'all', total: 600, waiting: 600 }]);
    });

    it('leaves the host its own errors', async () => {
      await start(false);
      const error = new RangeError('of the host');
      const host = { query: () => Promise.reject(error) };
      const request = { mode: 'delete', reference: 'r', transaction: host } as const;
      await expect(erasures.request({ uid: 'alice', ...request })).rejects.toBe(error);
      await expect(erasures.requestMany(['alice'], request)).rejects.toBe(error);
    });

    it('erases exactly the users of committed transactions, when half of many are rolled back', async () => {
      const app = await start(true);
      const uids = uidsOf(60);
      for (const uid of [...uids, ...uidsOf(20, 'shared')]) {
        scene.service.users.add({ uid });
        await run(`INSERT INTO account VALUES ('${uid}')`);
      }
      const done = nextEvents(app, 'erasure-done', 40);
      /** Deletes a user of its own, and a user whom other transactions delete as well. */
      const deleteUsers = (uid: string, n: number): Promise<void> =>
        inTransaction(async (host) => {
          const shared = `shared-${n % 20}`;
          await host.query(`DELETE FROM account WHERE uid IN ('${uid}', '${shared}')`);
          const request = { mode: 'delete', transaction: host } as const;
          if (n % 3 === 0) await erasures.requestMany([uid, shared], { ...request, reference: `list ${n}` });
          else
            await erasures.request({ ...request, uid, reference: n % 5 === 0 ? 'one for many' : undefined });
          if (n % 2 === 1) rollBack();
        });
      const outcomes = await Promise.allSettled(uids.map(deleteUsers));
      for (const outcome of outcomes)
        if (outcome.status === 'rejected') expect(outcome.reason).toBeInstanceOf(RolledBack);

      await done;
      const references = await all(erasures.list());
      expect(new Set(references.map(({ state }) => state))).toEqual(new Set(['done']));
      expect(await rowsOf("account WHERE uid LIKE 'user%'")).toBe(30);
      const committed = uids.filter((_, n) => n % 2 === 0);
      const shared = uids.flatMap((_, n) => (n % 6 === 0 ? [`shared-${n % 20}`] : []));
      const erased = new Set(scene.service.received.of('delete').map(({ uid }) => uid));
      expect(erased).toEqual(new Set([...committed, ...shared]));
      expect(references.reduce((sum, { total }) => sum + total, 0)).toBe(committed.length + 10);
    });
  });
}
