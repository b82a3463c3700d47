import { gusts, hurry } from './disturbances.js';
import { AT_ONCE } from './erasure-account.js';
import { killEnding, killErasing, killRequesting } from './erasure-kills.js';
import { ErasureTrial } from './erasure-trial.js';
import { temporaryFolder } from './places.js';
import { PostgresServer } from './postgres.js';
import { RedisServer } from './redis.js';
import type { ErasureScenario } from './scenario.js';
import type { ServerProcess } from './server-process.js';
import { TransactionTrial } from './transaction-trial.js';

const STORM_SPEED = 20;

const options = (speed = 1): ErasureScenario['options'] => ({
  http: { timeoutMs: 1_000 * speed, totalTimeoutMs: 1_000 * speed, rateLimit: false },
  erasure: { concurrency: AT_ONCE },
});
/** What a kill leaves under way is due again after its lease of 30 s. */
const SETTLED_WITHIN_SECONDS = 90;
const ofErasures = {
  Trial: ErasureTrial,
  settledWithinSeconds: SETTLED_WITHIN_SECONDS,
  options: options(),
  disturb: killErasing,
  disturbEnd: killEnding,
};
const whole = { kills: 25, erasures: 3_000 };

async function startedServer(server: ServerProcess): Promise<string> {
  await server.start();
  return server.url;
}

export const erasureScenarios: readonly ErasureScenario[] = [
  {
    name: 'erasures-lmdb-two',
    what: 'lmdb; a list of users deleted by two apps on one folder, both killed while they read the list, carry it out, and end',
    engine: 'lmdb',
    mode: 'delete',
    apps: 2,
    place: () => temporaryFolder(),
    ...ofErasures,
    size: whole,
    full: whole,
  },
  {
    name: 'erasures-redis-two',
    what: 'Redis; a list of users anonymized by two apps on one Redis, both killed in the same way',
    engine: 'redis',
    mode: 'anonymize',
    apps: 2,
    place: () => startedServer(new RedisServer('everysec')),
    ...ofErasures,
    size: { kills: 12, erasures: 1_500 },
    full: whole,
  },
  {
    name: 'erasures-postgres-two',
    what: 'Postgres; the same by two apps on one Postgres',
    engine: 'postgres',
    mode: 'anonymize',
    apps: 2,
    place: () => startedServer(new PostgresServer()),
    ...ofErasures,
    size: { kills: 10, erasures: 800 },
    full: whole,
  },
  {
    name: 'erasures-transaction',
    what: 'Postgres; two apps delete members and request the erasures in the same transactions; half of these are rolled back, and both apps are killed meanwhile',
    engine: 'postgres',
    mode: 'delete',
    apps: 2,
    place: () => startedServer(new PostgresServer()),
    ...ofErasures,
    Trial: TransactionTrial,
    size: { kills: 6, erasures: 120 },
    full: { kills: 25, erasures: 1_500 },
    disturb: killRequesting,
    disturbEnd: undefined,
  },
  {
    name: 'erasures-storm',
    what: `lmdb; users deleted through 429, 503, cut answers and answers lost after they were applied, and kills, at ${STORM_SPEED} times the speed`,
    engine: 'lmdb',
    mode: 'delete',
    isStormy: true,
    place: (trial) => {
      hurry(trial, STORM_SPEED);
      return temporaryFolder();
    },
    ...ofErasures,
    options: options(STORM_SPEED),
    size: { kills: 8, erasures: 500 },
    full: whole,
    disturb: async (trial) => {
      const calm = gusts(trial, ['logout', trial.scenario.mode]);
      await killErasing(trial);
      await killEnding(trial);
      calm();
    },
    disturbEnd: undefined,
  },
];
