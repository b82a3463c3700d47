import { afterAll, beforeAll, expect, it } from '@jest/globals';
import type { LoggerService } from '@nestjs/common';
import type { NestExpressApplication } from '@nestjs/platform-express';
import { truncate, mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import type { Pool } from 'pg';
import {
  DebateSpaceEvents,
  DebateSpaceHealth,
  DebateSpaceService,
  type DebateSpaceEvent,
  type StorageEngine,
} from 'nestjs-debate-space';
import { lmdbStorage } from 'nestjs-debate-space/lmdb';
import { postgresStorage } from 'nestjs-debate-space/postgres';
import { redisStorage } from 'nestjs-debate-space/redis';
import {
  postgresPool,
  postgresServer,
  startPostgres,
  type RunningPostgres,
} from 'debate-space-fixtures/postgres.js';
import { redisClients, type RedisConnection } from 'debate-space-fixtures/redis-clients.js';
import { redisServer, startRedis } from 'debate-space-fixtures/redis.js';
import { scenario } from 'debate-space-fixtures/scenario.js';

const scene = scenario();
const storageKey = 'the storage key of a test';

class Errors implements LoggerService {
  readonly lines: string[] = [];
  log(): void {
    // not looked at
  }
  warn(): void {
    // not looked at
  }
  error(line: string): void {
    this.lines.push(line);
  }
}

interface RunningApp {
  readonly app: NestExpressApplication;
  readonly errors: Errors;
  readonly events: DebateSpaceEvent[];
  emptied(): Promise<unknown>;
}

async function start(storage: StorageEngine): Promise<RunningApp> {
  const errors = new Errors();
  const app = await scene.app({ storage, storageKey }, {}, { logger: errors });
  const { events$ } = app.get(DebateSpaceEvents);
  const events: DebateSpaceEvent[] = [];
  const emptied = new Promise((resolve) => {
    events$.subscribe((event) => {
      if (event.type !== 'storage-emptied') return;
      events.push(event);
      resolve(event);
    });
  });
  await app.init();
  return { app, errors, events, emptied: () => emptied };
}

/** The process has said so once, is degraded, and delivers as ever. */
async function expectSaid({ app, errors, events }: RunningApp, place: RegExp): Promise<void> {
  await app.get(DebateSpaceService).logoutUser('alice');
  await scene.service.received.waitFor('logout');
  const { state, problems } = await app.get(DebateSpaceHealth).check();
  expect([state, problems]).toEqual([
    'degraded',
    [expect.stringMatching(/^the storage was emptied; see: docs/)],
  ]);
  expect(events).toEqual([
    { type: 'storage-emptied', place: expect.stringMatching(place), problem: undefined },
  ]);
  expect(errors.lines).toEqual([
    expect.stringMatching(
      /^the storage was emptied: the logouts and erasures that waited in .* are lost; hint: see "The storage was emptied" in docs\/troubleshooting\.md, then restart the app$/,
    ),
  ]);
  expect(errors.lines[0]).toMatch(place);
}

redisServer.describe('an app whose storage in Redis is emptied', () => {
  let redis: Awaited<ReturnType<typeof startRedis>>;
  let connection: RedisConnection;
  beforeAll(async () => {
    redis = await startRedis();
    connection = await redisClients[0].connect(redis);
  });
  afterAll(async () => {
    await connection.close();
    await redis.stop();
  });

  it.each([
    ['FLUSHALL', ['FLUSHALL']],
    ['the eviction of its values', ['DEL', 'debate-space:{demo}:values']],
    ['the eviction of its names', ['DEL', 'debate-space:{demo}:names']],
  ])('says so once, is degraded, and delivers the next logout after %s', async (_, command) => {
    const running = await start(redisStorage({ sendCommand: connection.sendCommand }));
    await connection.sendCommand(...command);
    await running.emptied();
    await expectSaid(running, /the keys debate-space:\{demo\}:…/);
  });

  it('says so in every process, and in none that starts later', async () => {
    const engine = redisStorage({ sendCommand: connection.sendCommand });
    const running = [await start(engine), await start(engine)];
    await connection.sendCommand('FLUSHALL');
    await Promise.all(running.map(async (app) => app.emptied()));
    const late = await start(engine);
    expect((await late.app.get(DebateSpaceHealth).check()).state).toBe('up');
    expect(running.map(({ events }) => events.length)).toEqual([1, 1]);
  });
});

postgresServer.describe('an app whose storage in Postgres is emptied', () => {
  let postgres: RunningPostgres;
  let pool: Pool;
  beforeAll(async () => {
    postgres = await startPostgres();
    pool = postgresPool(postgres);
    await pool.query('CREATE SCHEMA app');
  });
  afterAll(async () => {
    await pool.end();
    await postgres.stop();
  });

  function engineOf(connection: Pool): StorageEngine {
    return postgresStorage({
      query: (text, values) => connection.query(text, values),
      table: 'app.debate_space',
    });
  }

  it.each([
    'TRUNCATE app.debate_space',
    'DROP TABLE app.debate_space',
    'DROP SCHEMA app CASCADE; CREATE SCHEMA app',
  ])(
    'says so once, names the table, is degraded, and delivers the next logout after %s',
    async (statement) => {
      const running = await start(engineOf(pool));
      await pool.query(statement);
      await running.emptied();
      await expectSaid(running, /the table "app"\."debate_space"/);
    },
  );

  it('says that the role may not create a dropped table, and works when somebody else has created it', async () => {
    await pool.query('DROP SCHEMA app CASCADE; CREATE SCHEMA app; CREATE ROLE host LOGIN');
    await pool.query('GRANT USAGE, CREATE ON SCHEMA app TO host');
    const url = new URL(postgres.connectionString);
    url.username = 'host';
    const own = postgresPool({ connectionString: url.href });
    scene.afterwards(() => own.end());
    const running = await start(engineOf(own));
    await pool.query('REVOKE CREATE ON SCHEMA app FROM host; DROP TABLE app.debate_space');
    expect(await running.emptied()).toMatchObject({
      problem:
        'The table "app"."debate_space" of postgresStorage is missing and could not be created (42501)',
    });
    expect(running.errors.lines[0]).toMatch(
      /waited in the table "app"\."debate_space" are lost; The table "app"\."debate_space" of postgresStorage is missing and could not be created \(42501\); hint:/,
    );
    await pool.query('GRANT CREATE ON SCHEMA app TO host');
    await running.app.get(DebateSpaceService).logoutUser('alice');
    await scene.service.received.waitFor('logout');
    expect(running.events).toHaveLength(1);
  });
});

it('an app whose lmdb file is empty when it starts says so, and is degraded until the next start', async () => {
  const path = await mkdtemp(join(tmpdir(), 'emptied-'));
  scene.afterwards(() => rm(path, { recursive: true }));
  await start(lmdbStorage({ path }));
  await scene.stop();
  await truncate(join(path, 'demo', 'data.mdb'), 0);
  const running = await start(lmdbStorage({ path }));
  await running.emptied();
  await expectSaid(running, /the folder .*demo/);
  await scene.stop();
  const next = await start(lmdbStorage({ path }));
  expect((await next.app.get(DebateSpaceHealth).check()).state).toBe('up');
});
