import { afterAll, beforeAll, expect, it } from '@jest/globals';
import createPostgresStore from 'connect-pg-simple';
import session, { type Store } from 'express-session';
import { randomUUID } from 'node:crypto';
import { DebateSpaceEvents } from 'nestjs-debate-space';
import type { Pool } from 'pg';
import { Browser } from '#support/browser/browser.js';
import {
  postgresPool,
  postgresServer,
  startPostgres,
  type RunningPostgres,
} from '#support/servers/postgres.js';
import { scenario } from '#support/hosts/scenario.js';
import { jobs } from '#support/hosts/session-jobs.js';

const SESSIONS = 500;
const uids = Array.from({ length: SESSIONS }, (_, n) => `user-${n}`);
const PostgresStore = createPostgresStore(session);
const scene = scenario();

async function someAtATime(
  sids: readonly string[],
  count: number,
  work: (sid: string) => Promise<void>,
): Promise<void> {
  let next = 0;
  const worker = async (): Promise<void> => {
    for (let sid = sids[next++]; sid !== undefined; sid = sids[next++]) await work(sid);
  };
  await Promise.all(Array.from({ length: count }, worker));
}

postgresServer.describe(
  '500 sessions in Postgres that this process has never seen, through a pool of ten,',
  () => {
    let [postgres, pool]: [RunningPostgres | undefined, Pool | undefined] = [undefined, undefined];
    beforeAll(async () => {
      postgres = await startPostgres();
      pool = postgresPool({ connectionString: postgres.connectionString, max: 10 });
    });
    afterAll(async () => {
      await pool?.end();
      await postgres?.stop();
    });

    /** Has another process log everybody in: with rows alone. */
    async function filled(): Promise<{ readonly store: Store; readonly sids: readonly string[] }> {
      if (!pool) throw new Error('no pool');
      const schemaName = `of ${randomUUID()}`;
      await pool.query(`CREATE SCHEMA "${schemaName}"`);
      const store = new PostgresStore({
        pool,
        schemaName,
        createTableIfMissing: true,
        pruneSessionInterval: false,
      });
      await new Promise((resolve) => {
        store.get('', resolve); // makes the table
      });
      await pool.query(
        `INSERT INTO "${schemaName}".session SELECT 'session-' || n, json_build_object('cookie', json_build_object('path', '/'),
       'user', json_build_object('uid', 'user-' || n)), now() + interval '1 hour' FROM generate_series(0, ${SESSIONS - 1}) n`,
      );
      return { store, sids: uids.map((_, n) => `session-${n}`) };
    }

    const cases = ['a job', 'a request'].flatMap((by) => [1, 50].map((count) => ({ by, count })));
    it.each(cases)('are each reported when $by ends them, $count at a time', async ({ by, count }) => {
      const { store, sids } = await filled();
      const kill = (): Promise<void> => someAtATime(sids, count, (sid) => jobs.destroy(store, sid));
      const host = await scene.start({ store, act: kill }, { session: { store } });
      const reported = new Set<string>();
      host.app.get(DebateSpaceEvents).events$.subscribe((event) => {
        if (event.type === 'session-ended') reported.add(event.uid);
      });
      if (by === 'a job') await kill();
      else expect(await new Browser(host.url).post('/act')).toBe('done');
      await scene.stop(); // has every verdict fall
      expect(uids.filter((uid) => !reported.has(uid))).toEqual([]);
      expect(reported.size).toBe(SESSIONS);
    });
  },
);
