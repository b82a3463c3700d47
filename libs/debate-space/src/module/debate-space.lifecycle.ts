import type { OnApplicationBootstrap, OnApplicationShutdown, OnModuleInit } from '@nestjs/common';
import type { HttpAdapterHost } from '@nestjs/core';
import { Containment } from '../async/containment.js';
import type { LogoutRecorder } from '../logout/logout-recorder.js';
import type { LogoutTokenSigner } from '../logout/logout-token-signer.js';
import { backchannelLogoutUrl } from '../service/calls/logout-route.js';
import type { Transport } from '../service/http/transport.js';
import type { Application } from './application.js';
import { EventLog } from './event-log.js';
import type { Runners } from './runners.js';
import type { SessionWatch } from './session-watch.js';
import { shutDown } from './shutdown.js';
import type { ResolvedOptions } from './resolve-options.js';

/** After so many ms what signs and sends is loaded: the start need not wait for it, nor the first logout. */
const LOAD_MS = 1_000;

/** Ties one application to the life of its Nest app. */
export class DebateSpaceLifecycle implements OnModuleInit, OnApplicationBootstrap, OnApplicationShutdown {
  readonly #containment: Containment;
  #loading: NodeJS.Timeout | undefined;
  #shutdown: Promise<void> | undefined;

  constructor(
    private readonly application: Application,
    private readonly recorder: LogoutRecorder,
    private readonly sessions: SessionWatch,
    private readonly runners: Runners,
    private readonly signer: LogoutTokenSigner,
    private readonly transport: Transport,
    private readonly adapterHost: HttpAdapterHost,
  ) {
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
    this.#containment.run('start', () => {
      this.runners.start();
      this.sessions.start();
      this.application.watch.start();
    });
  }

  /** One line that says what is on. */
  onApplicationBootstrap(): void {
    const { options, logger } = this.application;
    this.#containment.run('logger', () => {
      const { applicationName, authUrl, logout, storage } = options;
      const sessions =
        logout.mode === 'oidc'
          ? `no session is watched, the identity provider notifies the service at ${backchannelLogoutUrl(authUrl, applicationName)}`
          : this.sessions.watcher.describe();
      logger.log(
        `"${applicationName}" at ${new URL(authUrl).host}; ${sessions}; storage: ${storage.name}, ${storage.guarantee}`,
      );
      for (const warning of bootWarnings(this.application, this.signer)) logger.warn(warning);
    });
    const load = (): void => {
      this.#containment.run('start', () => Promise.all([this.signer.load(), this.transport.load()]));
    };
    if (options.worker) this.#loading = setTimeout(load, LOAD_MS).unref();
  }

  async onApplicationShutdown(): Promise<void> {
    this.sessions.watcher.detach();
    clearTimeout(this.#loading);
    this.application.watch.stop();
    const { application, recorder, sessions, runners, transport } = this;
    this.#shutdown ??= shutDown(application, recorder, sessions, runners, transport);
    await this.#shutdown;
  }

  /** Not when the identity provider notifies the service of the ends. */
  #attach(): void {
    if (this.application.options.logout.mode === 'oidc') return;
    this.sessions.watcher.attach(this.adapterHost.httpAdapter);
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
    `${variable} is set: a worker stands still after each answer, and the storages memory and sqlite are lost with the process; ` +
    'hint: use postgresStorage() or mysqlStorage() with worker: false, and a worker elsewhere (docs/serverless.md)'
  );
}
