import type { OnApplicationBootstrap, OnApplicationShutdown, OnModuleInit } from '@nestjs/common';
import type { HttpAdapterHost, ModulesContainer } from '@nestjs/core';
import { Containment } from '../async/containment.js';
import type { LogoutTokenSigner } from '../logout/logout-token-signer.js';
import { backchannelLogoutUrl } from '../service/calls/logout-route.js';
import type { Transport } from '../service/http/transport.js';
import { Application } from './application.js';
import { EventLog } from './event-log.js';
import type { Runners } from './runners.js';
import type { SessionWatch } from './session-watch.js';
import type { Shutdown } from './shutdown.js';
import type { ResolvedOptions } from './resolve-options.js';

/** How often the log says how many more logouts and erasures were parked. */
const LOG_FLUSH_MS = 60_000;
/** After so many ms what signs and sends is loaded: the start need not wait for it, nor the first logout. */
const LOAD_MS = 1_000;

/** Ties one application to the life of its Nest app. */
export class DebateSpaceLifecycle implements OnModuleInit, OnApplicationBootstrap, OnApplicationShutdown {
  readonly #containment: Containment;
  #loading: NodeJS.Timeout | undefined;

  constructor(
    private readonly application: Application,
    private readonly sessions: SessionWatch,
    private readonly runners: Runners,
    private readonly shutdown: Shutdown,
    private readonly signer: LogoutTokenSigner,
    private readonly transport: Transport,
    private readonly adapterHost: HttpAdapterHost,
    private readonly modules: ModulesContainer,
  ) {
    const log = new EventLog(application.logger);
    this.#containment = new Containment(log.write.bind(log));
    const flush = (): void => {
      this.#containment.run('logger', () => {
        log.flush();
      });
    };
    const timer = setInterval(flush, LOG_FLUSH_MS).unref();
    application.events.subscribe({
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
      for (const warning of bootWarnings(this.application, this.signer, this.modules)) logger.warn(warning);
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
    await this.shutdown.run();
  }

  /** Not when the identity provider notifies the service of the ends. */
  #attach(): void {
    if (this.application.options.logout.mode === 'oidc') return;
    this.sessions.watcher.attach(this.adapterHost.httpAdapter);
  }
}

const FORGETFUL =
  'session.expiry with a storage in memory: after a restart, sessions that are not used again expire unreported; ' +
  'hint: a durable storage, such as sqliteStorage(), keeps them';

/** What tells that this process is frozen or ended after its answers, by the variable of the platform. */
const SERVERLESS = ['AWS_LAMBDA_FUNCTION_NAME', 'VERCEL', 'K_SERVICE'] as const;
/** Storages that end with the process, or with its disk. */
const OF_ONE_PROCESS: ReadonlySet<string> = new Set(['memory', 'sqlite']);

/** The warnings that are logged at boot. Call it when all modules of the Nest app are there. */
function bootWarnings(
  { options, bootSecretKey, opened }: Application,
  signer: LogoutTokenSigner,
  modules: ModulesContainer,
): readonly string[] {
  const { expiry } = options.session;
  const isDirect = options.logout.mode === 'direct';
  return [
    signer.weakness(bootSecretKey),
    isDirect && expiry !== false && !options.storage.durable ? FORGETFUL : undefined,
    serverlessWarning(options),
    ...opened.warnings.map(({ problem, hint }) => `${problem}; hint: ${hint}`),
    sharedApiKeyWarning(options, modules),
  ].filter((warning) => warning !== undefined);
}

/**
 * A frozen process delivers nothing, and a new one does not have what waited in the memory or on the disk of the one before.
 * Cloud Run sets `K_SERVICE` also where the CPU is always allocated, and nothing in the environment shows that.
 */
function serverlessWarning({ storage, worker }: ResolvedOptions): string | undefined {
  const variable = SERVERLESS.find((name) => (process.env[name] ?? '') !== '');
  if (variable === undefined) return undefined;
  if (OF_ONE_PROCESS.has(storage.name)) {
    return `${variable} is set, and the storage ${storage.name} is lost with this process: logouts and erasures that wait are lost, too; hint: use postgresStorage() or mysqlStorage() with worker: false, and a worker elsewhere (docs/serverless.md)`;
  }
  if (!worker) return undefined;
  return `${variable} is set, and this process has a worker, which stands still after each answer; hint: set worker: false here, and run a worker elsewhere (docs/serverless.md)`;
}

/** The service counts requests by API key, and each module keeps a limit of its own: a warning for the first of them. */
function sharedApiKeyWarning(options: ResolvedOptions, modules: ModulesContainer): string | undefined {
  const applications = [...modules.values()].flatMap(({ providers }) => {
    const application = providers.get(Application)?.instance as Application | undefined;
    return application?.options ?? [];
  });
  const sharing = applications.filter(
    ({ apiKey, baseUrl, http }) =>
      http.rateLimit !== false && baseUrl === options.baseUrl && apiKey.reveal() === options.apiKey.reveal(),
  );
  if (sharing.length < 2 || sharing[0] !== options) return undefined;
  return `${sharing.length} DebateSpaceModules use one API key, and each has a rate limit of its own; hint: set http.rateLimit of each to its share of the service's limit`;
}
