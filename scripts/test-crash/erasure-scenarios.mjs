import { gusts, hurry } from './disturbances.mjs';
import { AT_ONCE } from './erasure-account.mjs';
import { killErasing } from './erasure-kills.mjs';
import { ErasureTrial } from './erasure-trial.mjs';
import { temporaryFolder } from './places.mjs';
import { PostgresServer } from './postgres.mjs';
import { RedisServer } from './redis.mjs';

const STORM_SPEED = 20;

/** What a kill leaves under way is due again after its lease: a few seconds. */
const options = (speed = 1) => ({
  http: { timeoutMs: 1_000 * speed, totalTimeoutMs: 1_000 * speed, rateLimit: false },
  erasure: { concurrency: AT_ONCE },
});
const ofErasures = { Trial: ErasureTrial, options: options(), disturb: killErasing };
const whole = { kills: 25, erasures: 3_000 };

async function startedServer(server) {
  await server.start();
  return server.url;
}

export const erasureScenarios = [
  {
    name: 'erasures-lmdb',
    what: 'lmdb; a list of users deleted, the app killed while it reads the list, carries it out, and ends',
    engine: 'lmdb',
    mode: 'delete',
    place: () => temporaryFolder(),
    ...ofErasures,
    size: whole,
    full: whole,
  },
  {
    name: 'erasures-redis-two',
    what: 'Redis; a list of users anonymised by two apps on one Redis, both killed in the same way',
    engine: 'redis',
    mode: 'anonymize',
    apps: 2,
    place: () => startedServer(new RedisServer('everysec')),
    ...ofErasures,
    size: whole,
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
      calm();
    },
  },
];
