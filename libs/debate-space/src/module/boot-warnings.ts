import type { ModulesContainer } from '@nestjs/core';
import type { LogoutTokenSigner } from '../logout/delivery/logout-token-signer.js';
import { Application } from './application.js';
import type { ResolvedOptions } from './resolve-options.js';

const FORGETFUL =
  'session.expiry with a storage in memory: after a restart, sessions that are not used again expire unreported; ' +
  'hint: a durable storage, such as lmdbStorage(), keeps them';
const UNENDING =
  "session.policy 'last' without session.expiry: a user whose last session runs out is never logged out of the debate space";

/** What tells that this process is frozen or ended after its answers, by the variable of the platform. */
const SERVERLESS = ['AWS_LAMBDA_FUNCTION_NAME', 'VERCEL', 'K_SERVICE'] as const;
/** Storages that outlive the file system of a function, and that another process can read. Unknown ones may be. */
const OF_ONE_PROCESS: ReadonlySet<string> = new Set(['memory', 'lmdb']);

/** The warnings that are logged at boot. Call it when all modules of the Nest app are there. */
export function bootWarnings(
  { options, bootSecretKey, storage }: Application,
  signer: LogoutTokenSigner,
  modules: ModulesContainer,
  environment: NodeJS.ProcessEnv = process.env,
): readonly string[] {
  const { expiry, policy } = options.session;
  const isDirect = options.logout.mode === 'direct';
  return [
    signer.weakness(bootSecretKey),
    isDirect && expiry !== false && !options.storage.durable ? FORGETFUL : undefined,
    isDirect && expiry === false && policy === 'last' ? UNENDING : undefined,
    serverlessWarning(options, environment),
    ...(storage.warnings ?? []).map(({ problem, hint }) => `${problem}; hint: ${hint}`),
    sharedApiKeyWarning(options, modules),
  ].filter((warning) => warning !== undefined);
}

/**
 * A frozen process delivers nothing, and a new one does not have what waited in the memory or on the disk of the one before.
 * On Cloud Run `K_SERVICE` is also set where the CPU is always allocated: the hint is right there, too, but not needed.
 */
function serverlessWarning(
  { storage, worker }: ResolvedOptions,
  environment: NodeJS.ProcessEnv,
): string | undefined {
  const variable = SERVERLESS.find((name) => (environment[name] ?? '') !== '');
  if (variable === undefined) return undefined;
  if (OF_ONE_PROCESS.has(storage.name)) {
    return `${variable} is set, and the storage ${storage.name} is lost with this process: logouts and erasures that wait are lost, too; hint: use redisStorage() or postgresStorage() with worker: false, and a worker elsewhere (docs/serverless.md)`;
  }
  return worker
    ? `${variable} is set, and this process has a worker, which stands still after each answer; hint: set worker: false here, and run a worker elsewhere (docs/serverless.md)`
    : undefined;
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
