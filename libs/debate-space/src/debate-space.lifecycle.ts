import type {
  LoggerService,
  OnApplicationBootstrap,
  OnApplicationShutdown,
  OnModuleInit,
} from '@nestjs/common';
import type { HttpAdapterHost } from '@nestjs/core';
import { Containment } from './containment.js';
import type { DebateSpaceRuntime } from './debate-space-runtime.js';
import { EventLog } from './event-log.js';
import type { ResolvedOptions } from './resolve-options.js';
import { HostSessions } from './session-end/host-sessions.js';

/** Ties one application to the life of its Nest app. */
export class DebateSpaceLifecycle implements OnModuleInit, OnApplicationBootstrap, OnApplicationShutdown {
  readonly #runtime: DebateSpaceRuntime;
  readonly #options: ResolvedOptions;
  readonly #adapterHost: HttpAdapterHost | undefined;
  readonly #logger: LoggerService;
  readonly #containment: Containment;
  readonly #appWarning: () => string | undefined;
  /** None when the identity provider tells of the ends. */
  readonly #sessions: HostSessions | undefined;

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
    runtime.events.events$.subscribe((event) => {
      this.#containment.run('logger', () => {
        log.write(event);
      });
    });
    if (options.logout.mode === 'oidc') return;
    this.#sessions = new HostSessions(runtime.detector, options.session);
    this.#sessions.attach(adapterHost?.httpAdapter);
  }

  onModuleInit(): void {
    this.#sessions?.attach(this.#adapterHost?.httpAdapter); // under @nestjs/testing it is not there earlier
    this.#containment.run('start', () => {
      this.#runtime.start();
    });
  }

  /** One line that says what is on. */
  onApplicationBootstrap(): void {
    this.#containment.run('logger', () => {
      const { applicationName, authUrl, storage } = this.#options;
      const { warnings } = this.#runtime;
      const sessions =
        this.#sessions?.description ?? 'no session is watched, the identity provider notifies the service';
      this.#logger.log(
        `"${applicationName}" at ${new URL(authUrl).host}; ${sessions}; storage: ${storage.name}, ${storage.guarantee}`,
      );
      for (const warning of [...warnings, this.#appWarning()])
        if (warning !== undefined) this.#logger.warn(warning);
    });
  }

  async onApplicationShutdown(): Promise<void> {
    this.#sessions?.detach();
    await this.#containment.run('shutdown', () => this.#runtime.close(), undefined);
  }
}
