import { afterAll, beforeAll, expect, it } from '@jest/globals';
import createPostgresStore from 'connect-pg-simple';
import session, { type Store } from 'express-session';
import type { Pool } from 'pg';
import { Browser } from '#support/browser/browser.js';
import { eventsOf } from '#support/hosts/events.js';
import { scenario } from '#support/hosts/scenario.js';
import { jobs } from '#support/hosts/session-jobs.js';
import {
  postgresPool,
  postgresServer,
  startPostgres,
  type RunningPostgres,
} from '#support/servers/postgres.js';

const SESSIONS = 500;
const all = Array.from({ length: SESSIONS }, (_, n) => n);
const PostgresStore = createPostgresStore(session);
const scene = scenario();

/** Another process has logged everybody in. */
async function filled(pool: Pool): Promise<Store> {
  const store = new PostgresStore({ pool, createTableIfMissing: true, pruneSessionInterval: false });
  await new Promise((resolve) => {
    store.get('', resolve); // makes the table
  });
  await pool.query(
    `INSERT INTO session SELECT 'session-' || n, json_build_object('cookie', json_build_object('path', '/'),
     'user', json_build_object('uid', 'user-' || n)), now() + interval '1 hour' FROM generate_series(0, ${SESSIONS - 1}) n`,
  );
  return store;
}

postgresServer.describe('500 sessions in Postgres that this process has never seen', () => {
  let [postgres, pool]: [RunningPostgres | undefined, Pool | undefined] = [undefined, undefined];
  beforeAll(async () => {
    postgres = await startPostgres();
    pool = postgresPool({ connectionString: postgres.connectionString, max: 10 });
  });
  afterAll(async () => {
    await pool?.end();
    await postgres?.stop();
  });

  it.each([
    { by: 'a request', count: 1 },
    { by: 'a job', count: 50 },
  ])('are each reported when $by ends them, $count at a time', async ({ by, count }) => {
    if (!pool) throw new Error('no pool');
    const store = await filled(pool);
    const kill = async (): Promise<void> => {
      for (let n = 0; n < SESSIONS; n += count)
        await Promise.all(all.slice(n, n + count).map((each) => jobs.destroy(store, `session-${each}`)));
    };
    // Another process would deliver: this one would need seconds for 500 logouts, and wait for them when it stops.
    const options = { session: { store }, storage: await scene.sqlite(), worker: false };
    const host = await scene.start({ store, act: kill }, options);
    const events = eventsOf(host.app);
    if (by === 'a job') await kill();
    else expect(await new Browser(host.url).post('/act')).toBe('done');
    await scene.stop(); // decides every open end
    const reported = events.flatMap((event) => (event.type === 'session-ended' ? [event.uid] : []));
    expect(reported.toSorted()).toEqual(all.map((n) => `user-${n}`).toSorted());
  });
});
