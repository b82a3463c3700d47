import type { OnApplicationBootstrap, OnApplicationShutdown, OnModuleInit } from '@nestjs/common';
import type { HttpAdapterHost } from '@nestjs/core';
import { Containment, faultsTo } from '../async/containment.js';
import { Periodic } from '../async/background.js';
import { withTimeout } from '../async/with-timeout.js';
import type { ErasureWorker } from '../erasure/erasure-worker.js';
import { JobLane } from '../jobs/job-lane.js';
import type { LogoutDelivery } from '../logout/logout-delivery.js';
import type { LogoutTokenSigner } from '../logout/logout-token-signer.js';
import type { Logouts } from '../logout/logouts.js';
import { backchannelLogoutUrl } from '../service/calls/logout-route.js';
import type { Transport } from '../service/http/transport.js';
import type { JobKind } from '../storage/storage.js';
import type { Application } from './application.js';
import { EventLog } from './event-log.js';
import type { ResolvedOptions } from './resolve-options.js';
import type { SessionWatch } from './session-watch.js';

/** When the code that signs and sends is loaded, so that neither the boot nor the first logout waits for it. */
const LOAD_MS = 1_000;
const UPKEEP_MS = 1_500;
const PRUNE_MS = 60_000;
const PRUNE_AT_ONCE_MS = 1_000;

/** How long a shutdown takes at most, in milliseconds: Docker kills after ten seconds. */
const SHUTDOWN_MS = 5_000;
/** When each step of a shutdown must end, in milliseconds since its beginning. */
const VERDICTS_UNTIL_MS = 1_500;
const DELIVERIES_UNTIL_MS = 3_500;
const ANSWERS_UNTIL_MS = 4_000;
const MOVES_UNTIL_MS = 4_700;
/** The least time for a step of a shutdown, also for a late one, in milliseconds. */
const LATE_STEP_MS = 50;

/** The lanes that work on the jobs of an application, and the maintenance of its storage. */
export class Workers {
  /** Delivers from the storage. */
  readonly stored: JobLane;
  readonly erasures: JobLane;
  /** Delivers from memory while the storage is away. Absent when the storage is memory itself. */
  readonly memory: JobLane | undefined;
  readonly #upkeep: Periodic;
  #prunedAt = -Infinity;
  #isWorkingOff = false;
  #isStopped = false;

  constructor(
    private readonly application: Application,
    delivery: { readonly stored: LogoutDelivery; readonly memory: LogoutDelivery | undefined },
    private readonly erasureWorker: ErasureWorker,
  ) {
    const { emit } = application;
    const containment = new Containment(faultsTo(emit));
    const onFault = containment.report.bind(containment);
    this.stored = new JobLane(delivery.stored, onFault);
    this.erasures = new JobLane(erasureWorker, onFault);
    if (delivery.memory) this.memory = new JobLane(delivery.memory, onFault);
    this.#upkeep = new Periodic(UPKEEP_MS, () => this.#keepUp().catch(onFault.bind(undefined, 'jobs')));
  }

  /** Milliseconds since the slowest lane last heard from the storage. */
  get stalledMs(): number {
    return Math.max(...this.#lanes.map((lane) => lane.stalledMs));
  }

  /** Delivers from memory, also with `worker: false`, because no other process can. */
  startMemory(): void {
    this.memory?.start();
    this.#upkeep.start();
  }

  /** Works on the storage. Call it when the storage is open. */
  start(): void {
    if (this.application.options.worker && !this.#isStopped) for (const lane of this.#lanes) lane.start();
  }

  /**
   * Works on the jobs that are due, also with `worker: false`.
   * @returns whether no job is left that is due
   */
  async workOff(ms: number, signal?: AbortSignal): Promise<boolean> {
    if (this.#isStopped) return false;
    const endsAt = performance.now() + ms;
    this.#isWorkingOff = true;
    const drained = await Promise.all(this.#lanes.map((lane) => lane.drain(ms, false, signal)));
    await this.#upkeep.run();
    this.#isWorkingOff = false;
    if (!this.application.options.worker) {
      const idle = Promise.all(this.#lanes.map((lane) => lane.idle()));
      await withTimeout(idle, Math.max(0, endsAt - performance.now()), undefined);
    }
    return drained.every(Boolean);
  }

  /** Delivers the logouts that are due, for `ms` at most, and stops. Ends a drain of the host, too. */
  async stop(ms: number): Promise<void> {
    this.#isStopped = true;
    this.erasures.stop();
    if (!this.application.options.worker) this.stored.stop();
    const lanes = [this.stored, ...(this.memory ? [this.memory] : [])];
    const stopping = lanes.map(async (lane) => {
      if (lane.isStarted) await lane.drain(ms, true);
      lane.stop();
      await lane.idle();
    });
    await withTimeout(Promise.all(stopping), ms, undefined);
    for (const lane of lanes) lane.stop();
  }

  /** After {@link stop}: resolves when no job runs, and all claimed jobs are released. */
  async idle(): Promise<void> {
    const lanes = [this.stored, this.erasures, this.memory];
    await Promise.all([...lanes.map((lane) => lane?.idle()), this.#upkeep.stop()]);
  }

  get #kinds(): readonly JobKind[] {
    return this.application.options.storage.guest?.kinds ?? ['logout', 'erasure'];
  }

  /** The lanes of the storage that this process works on. */
  get #lanes(): readonly JobLane[] {
    return [this.stored, this.erasures].filter(({ kind }) => this.#kinds.includes(kind));
  }

  /**
   * Prunes rows and reports overdue erasures by the options of the app. A guest does not know these options, and a process
   * without a worker leaves this to others.
   */
  async #keepUp(): Promise<void> {
    const { options, storage, memory, watch } = this.application;
    const keep = {
      historyMs: options.logout.historyRetentionMs,
      receiptsMs: options.erasure.receiptRetentionMs,
    };
    const isPruned = performance.now() - this.#prunedAt < PRUNE_MS;
    if (!isPruned) while (await memory?.prune(keep));
    if (options.storage.guest || !watch.isOpen) return;
    if (!options.worker && !this.#isWorkingOff) return;
    await this.erasureWorker.maintain();
    // One call removes few rows, and a busy app finishes more than that.
    const until = performance.now() + PRUNE_AT_ONCE_MS;
    let hasMore = !isPruned;
    while (hasMore && !this.#isStopped && performance.now() < until) hasMore = await storage.prune(keep);
    if (!hasMore && !isPruned) this.#prunedAt = performance.now();
  }
}

/** The parts of an application that start and end with the Nest app. */
export interface ApplicationParts {
  readonly application: Application;
  readonly sessions: SessionWatch;
  readonly logouts: Logouts;
  readonly workers: Workers;
  readonly transport: Transport;
}

/** Starts and ends one application with its Nest app. */
export class DebateSpaceLifecycle implements OnModuleInit, OnApplicationBootstrap, OnApplicationShutdown {
  readonly #log: Containment;
  #isWorking = false;
  #loading: NodeJS.Timeout | undefined;
  #shutdown: Promise<void> | undefined;

  constructor(
    private readonly parts: ApplicationParts,
    private readonly signer: LogoutTokenSigner,
    private readonly adapterHost: HttpAdapterHost,
  ) {
    const { application } = parts;
    const log = new EventLog(application.logger);
    this.#log = new Containment(faultsTo(log.write.bind(log)));
    application.events.subscribe((event) => {
      this.#log.run('logger', () => {
        log.write(event);
        if (event.type === 'storage-recovered' && !this.#isWorking) {
          this.#startWork(); // the storage did not answer at boot
          for (const { problem, hint } of application.opened.warnings)
            application.logger.warn(`${problem}; hint: ${hint}`);
        }
      });
    });
    this.#attach();
  }

  onModuleInit(): void {
    this.#attach(); // under @nestjs/testing, no adapter exists earlier
    const { application, workers } = this.parts;
    this.#log.run('start', () => {
      workers.startMemory();
      if (application.watch.isOpen) this.#startWork();
      application.watch.start();
    });
  }

  /** Logs one line with the setup. */
  onApplicationBootstrap(): void {
    const { application, sessions, transport } = this.parts;
    const { options, logger } = application;
    this.#log.run('logger', () => {
      const { applicationName, authUrl, logout, storage } = options;
      const watched =
        logout.mode === 'oidc'
          ? `no session is watched, the identity provider notifies the service at ${backchannelLogoutUrl(authUrl, applicationName)}`
          : sessions.watcher.describe();
      logger.log(
        `"${applicationName}" at ${new URL(authUrl).host}; ${watched}; storage: ${storage.name}, ${storage.guarantee}`,
      );
      for (const warning of bootWarnings(application, this.signer)) logger.warn(warning);
    });
    const load = (): void => {
      this.#log.run('start', () => Promise.all([this.signer.load(), transport.load()]));
    };
    if (options.worker) this.#loading = setTimeout(load, LOAD_MS).unref();
  }

  async onApplicationShutdown(): Promise<void> {
    this.parts.sessions.watcher.detach();
    clearTimeout(this.#loading);
    this.#shutdown ??= shutDown(this.parts);
    await this.#shutdown;
  }

  /** Starts the work on the storage. */
  #startWork(): void {
    this.#isWorking = true;
    this.parts.workers.start();
    this.parts.sessions.startSweep();
  }

  /** Watches the sessions of the host, unless the identity provider notifies the service. */
  #attach(): void {
    const { application, sessions } = this.parts;
    if (application.options.logout.mode === 'oidc') return;
    sessions.watcher.attach(this.adapterHost.httpAdapter);
  }
}

/**
 * Shuts an application down, from the sessions to the storage: decides about open sessions, delivers the logouts that are due,
 * moves those in memory to the storage, and closes everything, within {@link SHUTDOWN_MS}. Never rejects.
 */
export async function shutDown(parts: ApplicationParts): Promise<void> {
  const { application, sessions, workers, transport } = parts;
  const { emit, watch, storage, shutdown, events } = application;
  const containment = new Containment(faultsTo(emit));
  const begunAt = performance.now();
  const leftMs = (untilMs: number): number => Math.max(LATE_STEP_MS, begunAt + untilMs - performance.now());

  /** The next steps also run after a step that fails or does not answer. */
  async function step(work: () => unknown, untilMs: number): Promise<void> {
    const awaited = async (): Promise<void> => {
      await work();
    };
    const done = containment.run<Promise<void>>('shutdown', awaited, undefined);
    await withTimeout(done, leftMs(untilMs), undefined);
  }

  await step(() => {
    sessions.recorder.close();
  }, VERDICTS_UNTIL_MS);
  await step(() => sessions.close(), VERDICTS_UNTIL_MS);
  await step(() => workers.stop(leftMs(DELIVERIES_UNTIL_MS)), DELIVERIES_UNTIL_MS);
  shutdown.abort();
  await step(() => workers.idle(), ANSWERS_UNTIL_MS);
  await step(() => reportUnfinished(parts, leftMs), SHUTDOWN_MS);
  await step(() => watch.stop(), SHUTDOWN_MS);
  await step(() => {
    transport.close();
  }, SHUTDOWN_MS);
  await step(() => storage.close(), SHUTDOWN_MS);
  events.complete();
}

async function reportUnfinished(
  { application, logouts }: ApplicationParts,
  leftMs: (untilMs: number) => number,
): Promise<void> {
  const { options, emit, storage } = application;
  const { durable } = options.storage;
  const unmoved = await logouts.moveToStorage(leftMs(MOVES_UNTIL_MS));
  /** `undefined` when the storage does not answer in time. */
  const counts = (kind: JobKind) => {
    const counted = storage.counts(kind).catch(() => undefined);
    return withTimeout(counted, leftMs(SHUTDOWN_MS - LATE_STEP_MS), undefined);
  };
  const { waiting = 0 } = (options.worker ? await counts('logout') : undefined) ?? {};
  const lost = durable ? unmoved : waiting;
  const pending = durable ? waiting + unmoved : waiting;
  if (pending > 0) emit({ type: 'shutdown-incomplete', pending, lost });
  if (durable) return;
  const erasures = await counts('erasure');
  const count = (erasures?.waiting ?? 0) + (erasures?.parked ?? 0);
  if (count > 0) emit({ type: 'erasures-dropped', count });
}

/** Variables of platforms that freeze a process after each answer, and later replace it. */
const SERVERLESS = ['AWS_LAMBDA_FUNCTION_NAME', 'VERCEL', 'K_SERVICE'] as const;
/** Storages that are lost with the process or its disk. */
const OF_ONE_PROCESS: ReadonlySet<string> = new Set(['memory', 'sqlite']);

/** The warnings for the boot log. */
function bootWarnings(application: Application, signer: LogoutTokenSigner): readonly string[] {
  const { options, bootSecretKey, opened } = application;
  return [
    signer.weakness(bootSecretKey),
    expiryWarning(options),
    serverlessWarning(options),
    ...opened.warnings.map(({ problem, hint }) => `${problem}; hint: ${hint}`),
  ].filter((warning) => warning !== undefined);
}

function expiryWarning({ session, logout, storage }: ResolvedOptions): string | undefined {
  if (logout.mode === 'oidc' || session.expiry === false || storage.durable) return undefined;
  return (
    'session.expiry with a storage in memory: after a restart, sessions that are not used again expire unreported; ' +
    'hint: a durable storage, such as sqliteStorage(), keeps them'
  );
}

/** Cloud Run also sets `K_SERVICE` where the CPU is always allocated, which nothing in the environment shows. */
function serverlessWarning({ storage, worker }: ResolvedOptions): string | undefined {
  const variable = SERVERLESS.find((name) => (process.env[name] ?? '') !== '');
  if (variable === undefined || (!worker && !OF_ONE_PROCESS.has(storage.name))) return undefined;
  return (
    `${variable} is set: the platform freezes a worker after each answer, and the storages memory and sqlite are lost with the process; ` +
    'hint: use postgresStorage() or mysqlStorage() with worker: false, and a worker elsewhere (docs/deploying.md)'
  );
}
