import type { OnApplicationBootstrap, OnApplicationShutdown, OnModuleInit } from '@nestjs/common';
import type { HttpAdapterHost } from '@nestjs/core';
import { Containment } from '../async/containment.js';
import type { LogoutTokenSigner } from '../logout/logout-token-signer.js';
import { backchannelLogoutUrl } from '../service/calls/logout-route.js';
import type { Application } from './application.js';
import { EventLog } from './event-log.js';
import { shutDown, type ApplicationParts } from './shutdown.js';
import type { ResolvedOptions } from './resolve-options.js';

/** After so many ms what signs and sends is loaded: the start need not wait for it, nor the first logout. */
const LOAD_MS = 1_000;

/** Ties one application to the life of its Nest app. */
export class DebateSpaceLifecycle implements OnModuleInit, OnApplicationBootstrap, OnApplicationShutdown {
  readonly #containment: Containment;
  #loading: NodeJS.Timeout | undefined;
  #shutdown: Promise<void> | undefined;

  constructor(
    private readonly parts: ApplicationParts,
    private readonly signer: LogoutTokenSigner,
    private readonly adapterHost: HttpAdapterHost,
  ) {
    const { application } = parts;
    const log = new EventLog(application.logger);
    this.#containment = new Containment(log.write.bind(log));
    application.events.subscribe((event) => {
      this.#containment.run('logger', () => {
        log.write(event);
      });
    });
    this.#attach();
  }

  onModuleInit(): void {
    this.#attach(); // under @nestjs/testing, the adapter is not there earlier
    const { application, runners, sessions } = this.parts;
    this.#containment.run('start', () => {
      runners.start();
      sessions.start();
      application.watch.start();
    });
  }

  /** One line that says what is on. */
  onApplicationBootstrap(): void {
    const { application, transport } = this.parts;
    const { options, logger } = application;
    this.#containment.run('logger', () => {
      const { applicationName, authUrl, logout, storage } = options;
      const sessions =
        logout.mode === 'oidc'
          ? `no session is watched, the identity provider notifies the service at ${backchannelLogoutUrl(authUrl, applicationName)}`
          : this.parts.sessions.watcher.describe();
      logger.log(
        `"${applicationName}" at ${new URL(authUrl).host}; ${sessions}; storage: ${storage.name}, ${storage.guarantee}`,
      );
      for (const warning of bootWarnings(application, this.signer)) logger.warn(warning);
    });
    const load = (): void => {
      this.#containment.run('start', () => Promise.all([this.signer.load(), transport.load()]));
    };
    if (options.worker) this.#loading = setTimeout(load, LOAD_MS).unref();
  }

  async onApplicationShutdown(): Promise<void> {
    this.parts.sessions.watcher.detach();
    clearTimeout(this.#loading);
    this.parts.application.watch.stop();
    this.#shutdown ??= shutDown(this.parts);
    await this.#shutdown;
  }

  /** Not when the identity provider notifies the service of the ends. */
  #attach(): void {
    const { application, sessions } = this.parts;
    if (application.options.logout.mode === 'oidc') return;
    sessions.watcher.attach(this.adapterHost.httpAdapter);
  }
}

/** Set where this process stands still after its answers, and is then replaced by another. */
const SERVERLESS = ['AWS_LAMBDA_FUNCTION_NAME', 'VERCEL', 'K_SERVICE'] as const;
/** Storages that end with the process, or with its disk. */
const OF_ONE_PROCESS: ReadonlySet<string> = new Set(['memory', 'sqlite']);

/** The warnings that are logged at boot. */
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

/** Cloud Run sets `K_SERVICE` also where the CPU is always allocated, and nothing in the environment shows that. */
function serverlessWarning({ storage, worker }: ResolvedOptions): string | undefined {
  const variable = SERVERLESS.find((name) => (process.env[name] ?? '') !== '');
  if (variable === undefined || (!worker && !OF_ONE_PROCESS.has(storage.name))) return undefined;
  return (
    `${variable} is set: the platform freezes a worker after each answer, and the storages memory and sqlite are lost with the process; ` +
    'hint: use postgresStorage() or mysqlStorage() with worker: false, and a worker elsewhere (docs/deploying.md)'
  );
}
