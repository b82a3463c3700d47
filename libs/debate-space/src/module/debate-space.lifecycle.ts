import type {
  LoggerService,
  OnApplicationBootstrap,
  OnApplicationShutdown,
  OnModuleInit,
} from '@nestjs/common';
import type { HttpAdapterHost } from '@nestjs/core';
import { Containment } from '../async/containment.js';
import type { DebateSpaceRuntime } from './debate-space-runtime.js';
import { EventLog } from './event-log.js';
import type { ResolvedOptions } from './resolve-options.js';
import {
  attachPlatform,
  describeSessions,
  type AttachedPlatform,
} from '../session-end/platforms/attach-platform.js';

/** How often the log says how many more logouts and erasures were parked. */
const LOG_FLUSH_MS = 60_000;

/** Ties one application to the life of its Nest app. */
export class DebateSpaceLifecycle implements OnModuleInit, OnApplicationBootstrap, OnApplicationShutdown {
  readonly #runtime: DebateSpaceRuntime;
  readonly #options: ResolvedOptions;
  readonly #adapterHost: HttpAdapterHost | undefined;
  readonly #logger: LoggerService;
  readonly #containment: Containment;
  readonly #appWarning: () => string | undefined;
  #platform: AttachedPlatform | undefined;

  /** @param appWarning asked when all modules of the app are there */
  constructor(
    runtime: DebateSpaceRuntime,
    options: ResolvedOptions,
    adapterHost: HttpAdapterHost | undefined,
    logger: LoggerService,
    appWarning: () => string | undefined,
  ) {
    this.#runtime = runtime;
    this.#options = options;
    this.#adapterHost = adapterHost;
    this.#logger = logger;
    this.#appWarning = appWarning;
    const log = new EventLog(logger);
    this.#containment = new Containment((event) => {
      log.write(event);
    });
    const flush = (): void => {
      this.#containment.run('logger', () => {
        log.flush();
      });
    };
    const timer = setInterval(flush, LOG_FLUSH_MS).unref();
    runtime.events.events$.subscribe({
      next: (event) => {
        this.#containment.run('logger', () => {
          log.write(event);
        });
      },
      complete: () => {
        clearInterval(timer);
        flush();
      },
    });
    this.#attach();
  }

  onModuleInit(): void {
    this.#attach(); // under @nestjs/testing, the adapter is not there earlier
    this.#containment.run('start', () => {
      this.#runtime.start();
    });
  }

  /** One line that says what is on. */
  onApplicationBootstrap(): void {
    this.#containment.run('logger', () => {
      const { applicationName, authUrl, logout, storage } = this.#options;
      const { detector, warnings } = this.#runtime;
      const sessions =
        logout.mode === 'oidc'
          ? 'no session is watched, the identity provider notifies the service'
          : describeSessions(detector, this.#platform);
      this.#logger.log(
        `"${applicationName}" at ${new URL(authUrl).host}; ${sessions}; storage: ${storage.name}, ${storage.guarantee}`,
      );
      for (const warning of [...warnings, this.#appWarning()])
        if (warning !== undefined) this.#logger.warn(warning);
    });
  }

  async onApplicationShutdown(): Promise<void> {
    this.#platform?.detach();
    await this.#containment.run('shutdown', () => this.#runtime.close(), undefined);
  }

  /** Not when the identity provider notifies the service of the ends. */
  #attach(): void {
    if (this.#options.logout.mode === 'oidc') return;
    this.#platform ??= attachPlatform(this.#adapterHost?.httpAdapter, this.#runtime.detector);
  }
}
