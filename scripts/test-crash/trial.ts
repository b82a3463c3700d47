import { mkdirSync } from 'node:fs';
import { join } from 'node:path';
import { performance } from 'node:perf_hooks';
import { setTimeout as sleep } from 'node:timers/promises';
import { DebateSpaceSimulator, DEMO_CREDENTIALS } from 'debate-space-simulator';
import type { AppEvent, AppSettings } from './app.js';
import { AppProcess } from './app-process.js';
import type { Cleanup } from './cleanup.js';
import { startEngine, type EngineName, type Place } from './engines.js';
import { Ledger } from './ledger.js';

/** Shared by the scenarios of a run. */
export interface Run {
  /** The compiled app. */
  readonly program: string;
  readonly cleanup: Cleanup;
}

/** How two apps run. */
export interface Setting {
  readonly options: Partial<AppSettings['options']>;
  /** Whether the first app only takes requests, and dies right after its answers to logouts and second logins. */
  readonly isDeadly?: boolean;
  /** Whether the file of the storage is on a disk that is small enough to be filled. */
  readonly isOnSmallDisk?: boolean;
}

/** The row of a scenario in the table, and a sentence for each violation. */
export interface Outcome extends Readonly<Record<'wrong' | 'notes', readonly string[]>> {
  readonly row: Readonly<Record<string, number | undefined>>;
}

type HeardEvent = AppEvent & { readonly at: number };

/** A service, and apps on one storage. */
export class Trial {
  readonly wrong: string[] = [];
  readonly notes: string[] = [];
  kills = 0;
  /** In milliseconds. */
  lastKillAt: number | undefined;
  readonly #events: HeardEvent[] = [];
  readonly #degraded = new Set<AppProcess>();

  constructor(
    readonly service: DebateSpaceSimulator,
    readonly ledger: Ledger,
    readonly apps: readonly AppProcess[],
    readonly place: Place,
  ) {
    for (const app of apps)
      app.on('event', (event) => {
        this.#events.push({ ...event, at: Date.now() });
        if (event.type === 'storage-degraded') this.#degraded.add(app);
        if (event.type === 'storage-recovered' || event.type === 'listening') this.#degraded.delete(app);
      });
  }

  /** A random whole number. */
  between(least: number, most: number): number {
    return least + Math.floor(Math.random() * (most - least + 1));
  }

  /** @param app absent when something else was killed */
  async kill(app?: AppProcess): Promise<void> {
    this.kills += 1;
    this.lastKillAt = Date.now();
    await app?.end();
  }

  heard(type: AppEvent['type']): readonly HeardEvent[] {
    return this.#events.filter((event) => event.type === type);
  }

  /** Waits until an app reports that its storage is away. Only an app which has its storage can report that. */
  degraded(): Promise<void> {
    return this.#until(() => this.#degraded.size > 0, 'no app reported storage-degraded');
  }

  /** Waits until each app has its storage again. */
  recovered(): Promise<void> {
    return this.#until(() => this.#degraded.size === 0, 'an app did not report storage-recovered');
  }

  async #until(condition: () => boolean, complaint: string, withinMs = 20_000): Promise<void> {
    const deadline = performance.now() + withinMs;
    while (!condition() && performance.now() < deadline) await sleep(20);
    if (!condition()) this.wrong.push(`${complaint} within ${withinMs / 1000} s`);
  }
}

/** Starts service and storage, has `work` play, and ends everything. */
export async function play(
  run: Run,
  engine: EngineName,
  { options, isDeadly = false, isOnSmallDisk = false }: Setting,
  work: (trial: Trial) => Promise<Outcome>,
): Promise<Outcome> {
  const { cleanup } = run;
  const started = performance.now();
  const sessions = join(cleanup.folder(), 'sessions');
  mkdirSync(sessions);
  const ledger = new Ledger(sessions);
  const service = await DebateSpaceSimulator.start({ rateLimit: false });
  const record = service.received.record.bind(service.received);
  service.received.record = (request) => {
    ledger.arrived(request);
    record(request);
  };
  const place = await startEngine(engine, isOnSmallDisk ? cleanup.smallDisk() : cleanup.folder(), cleanup);
  const { apiKey, secretKey, applicationName } = DEMO_CREDENTIALS;
  const all = { apiKey, secretKey, applicationName, authUrl: service.url, ...options };
  const apps = [{ ...all, worker: !isDeadly }, all].map(
    (options) => new AppProcess(run, { engine, place: place.url, sessions, options }),
  );
  try {
    const trial = new Trial(service, ledger, apps, place);
    const outcome = await Promise.race([work(trial), ...apps.map((app) => app.death)]);
    const seconds = Math.round((performance.now() - started) / 1000);
    return { ...outcome, row: { ...outcome.row, seconds } };
  } finally {
    await Promise.all(apps.map((app) => app.end()));
    await service.stop();
    await place.server?.stop();
  }
}
