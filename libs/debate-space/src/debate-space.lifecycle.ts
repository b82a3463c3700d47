import type {
  LoggerService,
  OnApplicationBootstrap,
  OnApplicationShutdown,
  OnModuleInit,
} from '@nestjs/common';
import type { HttpAdapterHost } from '@nestjs/core';
import type { DebateSpaceRuntime } from './debate-space-runtime.js';
import { EventLog } from './event-log.js';
import type { ResolvedOptions } from './resolve-options.js';
import { onExpressSessionStore } from './session-end/express-session-stores.js';

/** Ties one application to the life of its Nest app. */
export class DebateSpaceLifecycle implements OnModuleInit, OnApplicationBootstrap, OnApplicationShutdown {
  readonly #runtime: DebateSpaceRuntime;
  readonly #options: ResolvedOptions;
  readonly #adapterHost: HttpAdapterHost | undefined;
  readonly #logger: LoggerService;
  #sessions = 'no session is watched';
  #detach: () => void = () => undefined;

  constructor(
    runtime: DebateSpaceRuntime,
    options: ResolvedOptions,
    adapterHost: HttpAdapterHost | undefined,
    logger: LoggerService,
  ) {
    this.#runtime = runtime;
    this.#options = options;
    this.#adapterHost = adapterHost;
    this.#logger = logger;
    const log = new EventLog(logger);
    runtime.events.events$.subscribe((event) => {
      log.write(event);
    });
  }

  onModuleInit(): void {
    this.#watchSessions();
    this.#runtime.start();
  }

  /** One line that says what is on. */
  onApplicationBootstrap(): void {
    const { applicationName, authUrl } = this.#options;
    const { outbox, warnings } = this.#runtime;
    this.#logger.log(
      `"${applicationName}" at ${new URL(authUrl).host}; ${this.#sessions}; outbox: ${outbox.engine}, ${outbox.promise}`,
    );
    for (const warning of warnings) this.#logger.warn(warning);
  }

  async onApplicationShutdown(): Promise<void> {
    try {
      this.#detach();
      await this.#runtime.close();
    } catch (error) {
      this.#logger.error(`shutdown failed (${error instanceof Error ? error.name : typeof error})`);
    }
  }

  #watchSessions(): void {
    const { session, logout } = this.#options;
    const { detector } = this.#runtime;
    if (logout.mode === 'oidc') {
      this.#sessions = 'no session is watched, the identity provider notifies the service';
      return;
    }
    if (session.store) {
      const stores = [session.store].flat() as object[];
      for (const store of stores) detector.watch(store);
      this.#sessions = `session store: ${stores.map((store) => store.constructor.name).join(', ')}`;
      return;
    }
    const adapter = this.#adapterHost?.httpAdapter;
    if (adapter?.getType() !== 'express') return;
    this.#detach = onExpressSessionStore(adapter.getInstance<{ request: object }>(), (store) => {
      detector.watch(store);
    });
    this.#sessions = 'session stack: Express, the store is taken from the first request that has one';
  }
}
