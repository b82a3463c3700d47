// The disturbances while browsers log out, as data.
import { spawnSync } from 'node:child_process';
import { rm } from 'node:fs/promises';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import type { AppProcess } from './app-process.js';
import { durableEngines, type EngineName } from './engines.js';
import type { Load } from './load.js';
import type { Setting, Trial } from './trial.js';

/** How many times something goes wrong, and how many logouts are answered at least. */
export type Size = readonly [times: number, logouts: number];

export interface Disturbance extends Setting, Load {
  readonly name: string;
  readonly engines: readonly EngineName[];
  readonly size: Size;
  readonly full: Size;
  /** How many logouts may arrive again for each kill. Default: any number. */
  readonly repeatsPerKill?: number;
  readonly play: (trial: Trial, size: Size) => Promise<void>;
}

const AWAY_MS = 4_000;
const servers: readonly EngineName[] = ['postgres', 'mariadb'];
const usual = { options: { http: { timeoutMs: 1_000 } }, browsers: 12, pauseMs: 20 };
const onDisk = { ...usual, isOnSmallDisk: true };
/** The apps wait for the storage, so that no logout is in memory when an app is killed, however busy this machine is. */
const patient = { ...usual.options, logout: { storageTimeoutMs: 20_000 } };

export const disturbances: readonly Disturbance[] = [
  {
    ...usual,
    name: 'app killed',
    engines: durableEngines,
    options: patient,
    repeatsPerKill: 8, // what is under way at once: `logout.concurrency`
    size: [4, 300],
    full: [40, 4_000],
    play: killApps,
  },
  {
    ...usual,
    name: 'app killed after its answer', // another app delivers
    engines: durableEngines,
    options: patient,
    isDeadly: true,
    browsers: 2,
    pauseMs: 0,
    size: [3, 0],
    full: [40, 0],
    play: restartTheDead,
  },
  { ...usual, name: 'server killed', engines: servers, size: [2, 300], full: [10, 3_000], play: killServer },
  { ...usual, name: 'server away', engines: servers, size: [1, 0], full: [3, 0], play: takeServerAway },
  { ...onDisk, name: 'disk full', engines: ['sqlite'], size: [1, 0], full: [3, 0], play: fillDisk },
];

/** At random, now and then while they start. */
async function killApps(trial: Trial, [times, logouts]: Size): Promise<void> {
  const perApp = times / trial.apps.length;
  trial.service.faults.add({ operation: 'logout', kind: 'latency', ms: 50 }); // so that kills meet deliveries
  const killOften = async (app: AppProcess): Promise<void> => {
    for (let kills = 0; kills < perApp; kills += 1) {
      await trial.ledger.more(trial.between(1, Math.floor((1.6 * logouts) / perApp)));
      await sleep(trial.between(0, 30));
      await trial.kill(app);
      if (Math.random() < 1 / 10) {
        const starting = app.start();
        await sleep(trial.between(0, 1_000));
        await trial.kill(app);
        await starting;
      }
      await app.start();
    }
  };
  await Promise.all(trial.apps.map(killOften));
}

async function restartTheDead(trial: Trial, [times]: Size): Promise<void> {
  const [app] = trial.apps;
  while (app && trial.kills < times) {
    await app.ended();
    await trial.kill(app);
    await app.start();
  }
  void app?.ended(); // the browsers are still there
}

async function killServer(trial: Trial, [times, logouts]: Size): Promise<void> {
  const { server } = trial.place;
  while (trial.kills < times) {
    await trial.ledger.more(trial.between(1, Math.floor(logouts / times)));
    await server?.kill();
    await sleep(trial.between(100, 1_500));
    await server?.restart();
    await trial.kill(); // only now something can be claimed
  }
}

async function takeServerAway(trial: Trial, [times]: Size): Promise<void> {
  const { server } = trial.place;
  if (!server) throw new Error('this storage has no server');
  const stopped = [() => server.kill(), () => server.restart()] as const;
  for (let n = 0; n < times; n += 1) {
    await endure(trial, 'stopped', ...stopped);
    await endure(
      trial,
      'silent',
      () => server.signal('SIGSTOP'),
      () => server.signal('SIGCONT'),
    );
    for (const order of ['read-only', 'one connection'] as const)
      await endure(
        trial,
        order,
        () => server.order(order),
        () => server.order('writable'),
      );
    await handOver(trial, ...stopped);
  }
}

async function fillDisk(trial: Trial, [times]: Size): Promise<void> {
  const filler = join(trial.place.url, '..', 'filler');
  const fill = () => spawnSync('dd', ['if=/dev/zero', `of=${filler}`]); // until nothing fits
  const makeRoom = () => rm(filler);
  for (let n = 0; n < times; n += 1) {
    await endure(trial, 'full disk', fill, makeRoom);
    await handOver(trial, fill, makeRoom);
  }
}

/** Logouts are answered and delivered while the storage is away. @param begin takes it away @param end brings it back */
async function endure(trial: Trial, name: string, begin: () => unknown, end: () => unknown): Promise<void> {
  const { ledger } = trial;
  await ledger.more(20);
  await begin();
  await trial.degraded();
  const before = [ledger.answered, ledger.delivered] as const;
  ledger.slowestMs = 0;
  await sleep(AWAY_MS);
  const [answered, delivered] = [ledger.answered - before[0], ledger.delivered - before[1]];
  const words = `${name}: in ${AWAY_MS / 1000} s, ${answered} logouts were answered and ${delivered} delivered`;
  trial.notes.push(`${words}; the slowest answer took ${ledger.slowestMs} ms`);
  if (answered < 10 || delivered < 10) trial.wrong.push(words);
  await end();
  await trial.recovered();
}

/** Storage and service are away. When the storage is back, the apps end, and move to it what they have in memory. */
async function handOver(trial: Trial, begin: () => unknown, end: () => unknown): Promise<void> {
  const { apps, ledger, service } = trial;
  await service.goDown();
  await begin();
  await ledger.more(40);
  await end();
  await trial.recovered();
  await Promise.all(apps.map((app) => app.end('SIGTERM')));
  trial.notes.push(`shutdown with the service away: ${ledger.missing} answered logouts wait`);
  await service.comeBack();
  await Promise.all(apps.map((app) => app.start()));
}
