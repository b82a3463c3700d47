import type {
  LoggerService,
  OnApplicationBootstrap,
  OnApplicationShutdown,
  OnModuleInit,
} from '@nestjs/common';
import type { HttpAdapterHost } from '@nestjs/core';
import type { DebateSpaceOutbox } from '../api/debate-space-outbox.js';
import { Containment } from '../async/containment.js';
import { withTimeout } from '../async/with-timeout.js';
import type { ErasureStorage } from '../erasure/erasure-storage.js';
import type { JobRunner } from '../jobs/job-runner.js';
import type { FallbackQueue } from '../logout/fallback-queue.js';
import type { Transport } from '../service/transport.js';
import type { SessionRegistry } from '../session-end/expiry/session-registry.js';
import {
  attachPlatform,
  describeSessions,
  type AttachedPlatform,
} from '../session-end/platforms/attach-platform.js';
import type { SessionEndDetector } from '../session-end/session-end-detector.js';
import type { EndRecorder } from '../session-end/verdict/end-recorder.js';
import type { Application } from './application.js';
import { EventLog } from './event-log.js';

const DRAIN_MS = 5_000;
/** So much is left for it when the verdicts have taken the rest. */
const MIN_DRAIN_MS = 1_000;

export interface LifecycleParts {
  readonly application: Application;
  readonly detector: SessionEndDetector;
  readonly recorder: EndRecorder;
  readonly registry: SessionRegistry;
  readonly runner: JobRunner;
  readonly logouts: FallbackQueue;
  readonly outbox: DebateSpaceOutbox;
  readonly erasures: ErasureStorage;
  readonly transport: Transport;
}

/** Ties one application to the life of its Nest app: its start, its log lines, its shutdown. */
export class DebateSpaceLifecycle implements OnModuleInit, OnApplicationBootstrap, OnApplicationShutdown {
  readonly #containment: Containment;
  #platform: AttachedPlatform | undefined;
  #closed: Promise<void> | undefined;

  /** @param warnings asked when all modules of the app are there */
  constructor(
    private readonly parts: LifecycleParts,
    private readonly adapterHost: HttpAdapterHost | undefined,
    private readonly logger: LoggerService,
    private readonly warnings: () => readonly string[],
  ) {
    const log = new EventLog(logger);
    this.#containment = new Containment((event) => {
      log.write(event);
    });
    parts.application.events.subscribe((event) => {
      this.#containment.run('logger', () => {
        log.write(event);
      });
    });
    this.#attach();
  }

  onModuleInit(): void {
    this.#attach(); // under @nestjs/testing, the adapter is not there earlier
    this.#containment.run('start', () => {
      if (this.parts.application.options.worker) this.parts.runner.start();
      this.parts.detector.start();
    });
  }

  /** One line that says what is on. */
  onApplicationBootstrap(): void {
    this.#containment.run('logger', () => {
      const { applicationName, authUrl, logout, storage } = this.parts.application.options;
      const sessions =
        logout.mode === 'oidc'
          ? 'no session is watched, the identity provider notifies the service'
          : describeSessions(this.parts.detector, this.#platform);
      this.logger.log(
        `"${applicationName}" at ${new URL(authUrl).host}; ${sessions}; storage: ${storage.name}, ${storage.guarantee}`,
      );
      for (const warning of this.warnings()) this.logger.warn(warning);
    });
  }

  async onApplicationShutdown(): Promise<void> {
    this.#platform?.detach();
    this.#closed ??= this.#close();
    await this.#containment.run('shutdown', () => this.#closed, undefined);
  }

  /**
   * Decides what is open, delivers what is pending – for five seconds at most –, and closes everything. A part that does
   * not answer must not keep the host from closing.
   */
  async #close(): Promise<void> {
    const { application, detector, recorder, registry, runner, logouts, transport } = this.parts;
    const deadline = performance.now() + DRAIN_MS;
    recorder.close();
    await withTimeout(detector.close(), DRAIN_MS, undefined);
    if (application.options.worker) await runner.drain(Math.max(MIN_DRAIN_MS, deadline - performance.now()));
    application.abort();
    await runner.idle(DRAIN_MS);
    await withTimeout(logouts.flush(), DRAIN_MS, undefined);
    await this.#reportUnfinished();
    transport.close();
    await withTimeout(registry.idle(), MIN_DRAIN_MS, undefined);
    await withTimeout(logouts.close(), DRAIN_MS, undefined); // and the storage
    application.events.complete();
  }

  async #reportUnfinished(): Promise<void> {
    const { application, logouts, outbox, erasures } = this.parts;
    const { options, emit } = application;
    const { unpersistedCount } = logouts;
    const isDurable = options.storage.durable;
    const stats = options.worker ? await inTime(outbox.stats()) : undefined;
    const pending = Math.max(stats?.pending ?? 0, unpersistedCount);
    const lost = !isDurable || unpersistedCount > 0;
    if (pending > 0) emit({ type: 'shutdown-incomplete', pending, lost });
    const count = isDurable ? 0 : ((await inTime(erasures.count())) ?? 0);
    if (count > 0) emit({ type: 'erasures-dropped', count });
  }

  /** Not when the identity provider notifies the service of the ends. */
  #attach(): void {
    if (this.parts.application.options.logout.mode === 'oidc') return;
    this.#platform ??= attachPlatform(this.adapterHost?.httpAdapter, this.parts.detector);
  }
}

/** As far as the storage can say. */
async function inTime<T>(answer: Promise<T>): Promise<T | undefined> {
  return withTimeout(
    answer.catch(() => undefined),
    MIN_DRAIN_MS,
    undefined,
  );
}
