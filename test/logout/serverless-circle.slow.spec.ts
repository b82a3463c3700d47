import { afterAll, beforeAll, expect, it } from '@jest/globals';
import { DebateSpaceOutbox } from 'nestjs-debate-space';
import { postgresStorage } from 'nestjs-debate-space/postgres';
import { readFile } from 'node:fs/promises';
import { createRequire } from 'node:module';
import { availableParallelism } from 'node:os';
import type { Pool } from 'pg';
import { Browser } from '#support/browser/browser.js';
import { Functions } from './functions.js';
import { lambdaFetch } from '#support/hosts/lambda-fetch.js';
import {
  postgresPool,
  postgresServer,
  startPostgres,
  type RunningPostgres,
} from '#support/servers/postgres.js';
import { scenario } from '#support/hosts/scenario.js';
import { using } from '#support/service/service.js';

const USERS = 60;
/**
 * So many users have a fresh process for each request; the others have processes that the platform has frozen. A start
 * takes a second of CPU: `FRESH_FUNCTIONS=200` for all of them.
 */
const FRESH = Number(process.env.FRESH_FUNCTIONS ?? 2);
const TOGETHER = availableParallelism() + 1;
const storageKey = 'a storage key of these tests that is long enough';
const uids = Array.from({ length: USERS }, (_, n) => `user-${n}`);
const scene = scenario({ users: uids.map((uid) => ({ uid })), rateLimit: false });

let postgres: RunningPostgres;
let pool: Pool;

/** Several at a time. */
async function each<T>(items: readonly T[], work: (item: T) => Promise<void>): Promise<void> {
  const left = [...items];
  const worker = async (): Promise<void> => {
    for (let item = left.shift(); item !== undefined; item = left.shift()) await work(item);
  };
  await Promise.all(Array.from({ length: TOGETHER }, worker));
}

postgresServer.describe(
  'functions without a worker, each killed or frozen as soon as its answer has left,',
  () => {
    beforeAll(async () => {
      postgres = await startPostgres();
      pool = postgresPool(postgres);
      const table = createRequire(import.meta.url).resolve('connect-pg-simple/table.sql');
      await pool.query(await readFile(table, 'utf8'));
    });
    afterAll(async () => {
      await pool.end();
      await postgres.stop();
    });

    it(
      `log ${USERS} users in and out, and a scheduled drain in another process delivers each logout once`,
      async () => {
        // On a busy machine, too, the storage takes each logout: what is in memory is delivered without a worker.
        const logout = { storageTimeoutMs: 20_000 };
        const debateSpace = using(scene.service, { storageKey, worker: false, logout });
        const settings = { debateSpace, databaseUrl: postgres.connectionString };
        const [fresh, reused] = [new Functions(settings, 1), new Functions(settings, Infinity)];
        const browsers = uids.map((uid, n) => {
          const functions = n < FRESH ? fresh : reused;
          return {
            uid,
            browser: new Browser(
              'http://lambda',
              lambdaFetch((event) => functions.invoke(event)),
            ),
          };
        });
        const first = browsers[0]?.browser;
        const statuses = new Set<number>();

        await each(browsers, async ({ uid, browser }) => {
          const body = new URLSearchParams({ uid });
          statuses.add((await browser.fetch('/login', { method: 'POST', body })).status);
        });
        expect(await first?.get('/whoami')).toBe('user-0');
        await each(browsers, async ({ browser }) => {
          statuses.add((await browser.fetch('/logout', { method: 'POST' })).status);
        });
        expect(await first?.get('/whoami')).toBe('nobody');
        await reused.stop();
        expect([...statuses]).toEqual([200]);
        expect(fresh.ends).toEqual(Array(2 * FRESH + 2).fill('SIGKILL'));
        expect(new Set(reused.ends)).toEqual(new Set(FRESH < USERS ? ['SIGKILL'] : []));
        expect(scene.service.received.of('logout')).toEqual([]);

        const storage = postgresStorage({ pool });
        const scheduled = await scene.app({ storage, storageKey, worker: false });
        await scheduled.init();
        const outbox = scheduled.get(DebateSpaceOutbox);
        expect(await outbox.stats()).toMatchObject({ pending: USERS });
        const stats = await outbox.drain({ timeoutMs: 60_000 });
        expect(stats).toMatchObject({ drained: true, pending: 0, parked: 0 });
        expect(scene.service.received.logouts.toSorted()).toEqual(uids.toSorted());
      },
      120_000 + FRESH * 20_000,
    );
  },
);
