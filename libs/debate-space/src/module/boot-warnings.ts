import type { LogoutTokenSigner } from '../logout/logout-token-signer.js';
import type { Application } from './application.js';
import type { ResolvedOptions } from './resolve-options.js';

const FORGETFUL =
  'session.expiry with a storage in memory: after a restart, sessions that are not used again expire unreported; ' +
  'hint: a durable storage, such as lmdbStorage(), keeps them';
const UNENDING =
  "session.policy 'last' without session.expiry: a user whose last session runs out is never logged out of the debate space";

/**
 * What is logged at boot, beside the line that says what is on.
 * @param all the options of every DebateSpaceModule of the Nest app
 */
export function bootWarnings(
  { options, hashKey, storage }: Application,
  signer: LogoutTokenSigner,
  all: readonly ResolvedOptions[],
): readonly string[] {
  const { expiry, policy } = options.session;
  const isDirect = options.logout.mode === 'direct';
  return [
    signer.weakness(hashKey),
    isDirect && expiry !== false && !options.storage.durable ? FORGETFUL : undefined,
    isDirect && expiry === false && policy === 'last' ? UNENDING : undefined,
    ...(storage.warnings ?? []),
    sharedApiKeyWarning(options, all),
  ].filter((warning) => warning !== undefined);
}

/** The service counts requests by API key, and each module keeps a limit of its own: a warning for the first of them. */
function sharedApiKeyWarning(options: ResolvedOptions, all: readonly ResolvedOptions[]): string | undefined {
  const sharing = all.filter(
    ({ apiKey, baseUrl, http }) =>
      http.rateLimit !== false && baseUrl === options.baseUrl && apiKey.reveal() === options.apiKey.reveal(),
  );
  if (sharing.length < 2 || sharing[0] !== options) return undefined;
  return `${sharing.length} DebateSpaceModules use one API key, and each has a rate limit of its own; hint: set http.rateLimit of each to its share of the service's limit`;
}
