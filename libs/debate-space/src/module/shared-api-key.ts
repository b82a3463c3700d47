import type { ResolvedOptions } from './resolve-options.js';

/**
 * The service counts requests by API key, and each module keeps a limit of its own.
 * @param all the options of every DebateSpaceModule of the Nest app
 * @returns a warning, for the first of several modules with one API key
 */
export function sharedApiKeyWarning(
  options: ResolvedOptions,
  all: readonly ResolvedOptions[],
): string | undefined {
  const sharing = all.filter(
    ({ apiKey, baseUrl, http }) =>
      http.rateLimit !== false && baseUrl === options.baseUrl && apiKey.reveal() === options.apiKey.reveal(),
  );
  if (sharing.length < 2 || sharing[0] !== options) return undefined;
  return `${sharing.length} DebateSpaceModules use one API key, and each has a rate limit of its own; hint: set http.rateLimit of each to its share of the service's limit`;
}
