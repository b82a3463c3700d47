import {
  Logger,
  Module,
  type DynamicModule,
  type OnApplicationBootstrap,
  type OnApplicationShutdown,
  type OnModuleInit,
} from '@nestjs/common';
import { HttpAdapterHost } from '@nestjs/core';
import type { SessionEndOptions } from './session-end.js';
import { SessionEndWatcher } from './watch-session-ends.js';

const OPTIONS = Symbol('SessionEndOptions');

/** Ties one watcher to the life of its Nest app. */
class SessionEndLifecycle implements OnModuleInit, OnApplicationBootstrap, OnApplicationShutdown {
  readonly #logger = new Logger('SessionEnd');
  readonly #watcher: SessionEndWatcher;
  readonly #adapterHost: HttpAdapterHost;

  constructor(options: SessionEndOptions, adapterHost: HttpAdapterHost) {
    const logger = this.#logger;
    this.#adapterHost = adapterHost;
    this.#watcher = new SessionEndWatcher({
      onFault: (where, error) => {
        logger.error(`${where} failed: ${error instanceof Error ? error.name : typeof error}`);
      },
      onWarning: ({ code, message, hint }) => {
        logger.warn(`${message}; ${hint} (${code})`);
      },
      ...options,
    });
    this.#watcher.attach(adapterHost.httpAdapter);
  }

  get watcher(): SessionEndWatcher {
    return this.#watcher;
  }

  onModuleInit(): void {
    this.#watcher.attach(this.#adapterHost.httpAdapter); // under @nestjs/testing, the adapter is not there earlier
  }

  onApplicationBootstrap(): void {
    this.#logger.log(this.#watcher.describe());
  }

  onApplicationShutdown(): Promise<void> {
    return this.#watcher.close();
  }
}

/** Tells an app when a session of one of its users has ended. Exports its {@link SessionEndWatcher}. */
@Module({})
export class SessionEndModule {
  /** @example SessionEndModule.forRoot({ onSessionEnd: ({ uid, reason, endedAt }) => audit.write(uid, reason, endedAt) }) */
  static forRoot(options: SessionEndOptions): DynamicModule {
    return this.forRootAsync({ useFactory: () => options });
  }

  /** The same, with a listener that other providers are needed for. */
  static forRootAsync({
    imports = [],
    inject = [],
    useFactory,
  }: Pick<DynamicModule, 'imports'> & {
    readonly inject?: (string | symbol | (abstract new (...args: never) => unknown))[];
    readonly useFactory: (...args: never[]) => SessionEndOptions | Promise<SessionEndOptions>;
  }): DynamicModule {
    return {
      module: SessionEndModule,
      global: true,
      imports,
      providers: [
        { provide: OPTIONS, inject, useFactory },
        {
          provide: SessionEndLifecycle,
          inject: [OPTIONS, HttpAdapterHost],
          useFactory: (options: SessionEndOptions, host: HttpAdapterHost) =>
            new SessionEndLifecycle(options, host),
        },
        {
          provide: SessionEndWatcher,
          inject: [SessionEndLifecycle],
          useFactory: ({ watcher }: SessionEndLifecycle) => watcher,
        },
      ],
      exports: [SessionEndWatcher],
    };
  }
}
