import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { fillTheDisk } from './disk-full.js';
import { hurry, killAtRandom, setRightAndReplay, shutDownAtRandom, storm } from './disturbances.js';
import { openLater } from './file-format.js';
import { killAfterAnswer, noteDeliveryTimes } from './killed-after-answer.js';
import { postgres, redis } from './logout-places.js';
import { smallDisk, temporaryFolder } from './places.js';
import { DAY_MS, hurried, impatient, ofDurable, ofKilledServer, patient } from './scenario-kinds.js';
import type { LogoutScenario } from './scenario.js';

/** So many times as fast, two hours are half a minute. */
const OUTAGE_SPEED = 240;
const STORM_SPEED = 20;
const SLOW_SPEED = 5;
const LEASE_MS = 30_000;
const SWEEP_LEASE_MS = 60_000;
const SESSION_MS = 10_000;

const places = { lmdb: temporaryFolder, redis: redis('everysec'), postgres };

/** Apps that are killed at random, on a storage that loses nothing by it. */
function durable(name: string, what: string, engine: keyof typeof places, apps = 1): LogoutScenario {
  return { name, what, engine, apps, place: places[engine], ...ofDurable };
}

/** Two apps on a storage that loses nothing; the one that takes the requests dies right after its answers. */
function answered(engine: keyof typeof places): LogoutScenario {
  return {
    name: `${engine}-answered`,
    what: `${engine}; the app dies right after the answer to each logout and each renewed login; another app delivers`,
    engine,
    place: places[engine],
    apps: 2,
    appsWithoutWorker: 1,
    browsers: 0,
    repeatsPerKill: 0,
    options: patient,
    size: { kills: 40, endings: 0 },
    full: { kills: 200, endings: 0 },
    disturb: killAfterAnswer,
    afterwards: async (trial) => {
      await sleep(LEASE_MS + 5_000); // nothing that a dead process has left may be reported later
      noteDeliveryTimes(trial);
    },
  };
}

/** Those that take longest first. */
export const logoutScenarios: readonly LogoutScenario[] = [
  {
    name: 'long-outage',
    what: `lmdb; the service is away for two hours (half a minute at ${OUTAGE_SPEED} times the speed), the app is killed meanwhile`,
    engine: 'lmdb',
    place: async (trial) => {
      hurry(trial, OUTAGE_SPEED);
      await trial.service.goDown();
      return temporaryFolder();
    },
    options: hurried(OUTAGE_SPEED),
    size: { kills: 2, endings: 300 },
    full: { kills: 10, endings: 2_000 },
    disturb: killAtRandom,
    afterwards: async (trial) => {
      await sleep(7_200_000 / OUTAGE_SPEED);
      await trial.service.comeBack();
    },
  },
  {
    name: 'shutdown',
    what: 'lmdb; SIGTERM instead of SIGKILL, with a service so slow that five seconds do not suffice',
    engine: 'lmdb',
    place: temporaryFolder,
    reportsCutOff: true,
    options: patient,
    size: { kills: 3, endings: 1_200 },
    full: { kills: 10, endings: 5_000 },
    disturb: async (trial) => {
      const fix = trial.service.faults.add({ operation: 'logout', kind: 'latency', ms: 400 });
      await shutDownAtRandom(trial);
      fix();
    },
  },
  answered('lmdb'),
  answered('redis'),
  { ...answered('postgres'), onlyFull: true },
  {
    name: 'lmdb-expiry',
    what: 'lmdb; with session.expiry: an end whose answer a kill prevented is found by the sweep, when the session would have expired',
    engine: 'lmdb',
    place: temporaryFolder,
    sessionMs: SESSION_MS,
    reportsCutOff: true,
    stayMs: 1_000, // a login is not answered later because its session is registered for the sweep
    browsers: 60,
    options: patient,
    size: { kills: 12, endings: 600 },
    full: { kills: 100, endings: 5_000 },
    disturb: killAtRandom,
    // A sweep that a kill has met leaves its sessions to the next after a minute; then they are delivered.
    afterwards: () => sleep(SESSION_MS + SWEEP_LEASE_MS + LEASE_MS),
  },
  durable('lmdb', 'lmdb; one app, killed at random', 'lmdb'),
  durable('lmdb-two', 'lmdb; two apps on one folder, both killed at random', 'lmdb', 2),
  durable(
    'redis-two',
    'Redis; two apps on one Redis with an append-only file, both killed at random',
    'redis',
    2,
  ),
  durable('postgres-two', 'Postgres; two apps on one Postgres, both killed at random', 'postgres', 2),
  ...(['lmdb', 'redis', 'postgres'] as const).map((engine) => ({
    ...durable(
      `${engine}-four`,
      `${engine}; four apps on one storage, all of them killed at random`,
      engine,
      4,
    ),
    onlyFull: true,
  })),
  {
    name: 'postgres-killed',
    what: 'Postgres; its postmaster killed and started again, two apps live on',
    engine: 'postgres',
    place: postgres,
    ...ofKilledServer,
  },
  {
    name: 'redis-killed',
    what: 'Redis; Redis itself killed and started again (appendfsync always), two apps live on',
    engine: 'redis',
    place: redis('always'),
    ...ofKilledServer,
  },
  {
    name: 'redis-everysec',
    what: 'Redis; the same with appendfsync everysec: what Redis had answered and not written yet is counted',
    engine: 'redis',
    place: redis('everysec'),
    mayLose: true,
    ...ofKilledServer,
  },
  {
    name: 'clock-jumps',
    what: 'lmdb; the clock of the app, and of the service with it, a day ahead, a day behind or right after each kill',
    engine: 'lmdb',
    place: temporaryFolder,
    options: patient,
    size: { kills: 6, endings: 300 },
    full: { kills: 40, endings: 2_000 },
    disturb: async (trial) => {
      const set = (offsetMs: number): void => {
        trial.clock = { offsetMs };
        trial.service.clockOffsetSeconds = offsetMs / 1000;
      };
      trial.beforeStart = () => {
        set(trial.random.oneOf([-DAY_MS, 0, DAY_MS]));
      };
      await killAtRandom(trial);
      await trial.firstHost.end();
      set(0);
      await trial.firstHost.start(trial.clock);
    },
  },
  {
    name: 'clock-wrong',
    what: 'lmdb; the clock of the app alone is a day ahead, so that the service refuses and logouts are parked; set right, they are retried',
    engine: 'lmdb',
    place: (trial) => {
      trial.clock = { offsetMs: DAY_MS };
      return temporaryFolder();
    },
    options: patient,
    size: { kills: 2, endings: 150 },
    full: { kills: 10, endings: 1_000 },
    disturb: killAtRandom,
    afterwards: setRightAndReplay,
  },
  {
    name: 'storm',
    what: `lmdb; 429, 503, cut answers and answers lost after they were applied, and kills, at ${STORM_SPEED} times the speed`,
    engine: 'lmdb',
    place: (trial) => {
      hurry(trial, STORM_SPEED);
      return temporaryFolder();
    },
    options: hurried(STORM_SPEED),
    size: { kills: 4, endings: 400 },
    full: { kills: 40, endings: 3_000 },
    disturb: async (trial) => {
      const calm = storm(trial);
      await killAtRandom(trial);
      await trial.ledger.reaches(trial.size.endings);
      calm();
    },
  },
  {
    name: 'slow-service',
    what: `lmdb; two apps, answers of the service that take longer than a lease, at ${SLOW_SPEED} times the speed`,
    engine: 'lmdb',
    apps: 2,
    browsers: 30,
    place: (trial) => {
      hurry(trial, SLOW_SPEED);
      trial.service.faults.add({ operation: 'logout', kind: 'latency', ms: (1.4 * LEASE_MS) / SLOW_SPEED });
      return temporaryFolder();
    },
    repeatsPerKill: 0,
    options: {
      ...hurried(SLOW_SPEED),
      http: { timeoutMs: 120_000 },
      logout: { ...hurried(SLOW_SPEED).logout, concurrency: 100 },
    },
    size: { kills: 0, endings: 60 },
    full: { kills: 0, endings: 1_000 },
    // The service takes a logout as it comes: what comes again comes later.
    afterwards: () => sleep((2 * LEASE_MS) / SLOW_SPEED),
  },
  {
    name: 'disk-full',
    what: 'lmdb; the disk is full while the service is away: logouts go on from memory, and are handed over afterwards',
    engine: 'lmdb',
    place: (trial) => {
      trial.folder = smallDisk('16m');
      return join(trial.folder, 'storage');
    },
    options: impatient,
    pauseMs: 2,
    size: { kills: 1, endings: 1_000 },
    full: { kills: 1, endings: 5_000 },
    disturb: fillTheDisk,
  },
  {
    name: 'file-format',
    what: 'lmdb; a file in the format of a later version is refused and left alone, one of this version is read',
    engine: 'lmdb',
    place: async (trial) => {
      await trial.service.goDown();
      return (trial.folder = temporaryFolder());
    },
    options: patient,
    size: { kills: 1, endings: 100 },
    full: { kills: 1, endings: 500 },
    disturb: async (trial) => {
      await trial.ledger.reaches(trial.size.endings);
      trial.kills += 1;
      await trial.firstHost.end();
      trial.trouble.push(...(await openLater(trial.folder)));
      await trial.service.comeBack();
      await trial.firstHost.start();
    },
  },
  {
    name: 'memory',
    what: 'memory; one app, killed at random: what it loses is counted',
    engine: 'memory',
    mayLose: true,
    options: patient,
    size: { kills: 6, endings: 400 },
    full: { kills: 40, endings: 2_000 },
    disturb: killAtRandom,
  },
  {
    name: 'memory-unharmed',
    what: 'memory; one app, no kills: nothing is lost, and nothing waits for a lease',
    engine: 'memory',
    settledWithinMs: 10_000,
    options: patient,
    size: { kills: 0, endings: 400 },
    full: { kills: 0, endings: 2_000 },
  },
];
