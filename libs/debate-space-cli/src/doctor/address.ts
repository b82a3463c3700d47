import type { Settings } from '../settings.js';
import { variables } from '../variables.js';
import { faultOf, fine, unchecked, type CheckResult } from './check.js';

/** Where the service is, as far as it can be told from the settings. */
export interface ServiceAddress {
  /** Without a slash at its end. */
  readonly authUrl: string;
  readonly baseUrl: string;
}

const isAddress = (problem: string): boolean => /^DEBATE_SPACE_(AUTH|BASE)_URL /.test(problem);

/** Of all problems, those of the addresses, and the others. */
export function ofAddresses(problems: readonly string[]): [readonly string[], readonly string[]] {
  return [problems.filter(isAddress), problems.filter((problem) => !isAddress(problem))];
}

/** @returns `undefined` when nothing can be asked there */
export function serviceAddress({ authUrl, baseUrl }: Settings): ServiceAddress | undefined {
  if (authUrl === undefined || !isUrl(authUrl) || (baseUrl !== undefined && !isUrl(baseUrl)))
    return undefined;
  const root = withoutSlash(authUrl);
  return { authUrl: root, baseUrl: withoutSlash(baseUrl ?? `${root}/api/v1`) };
}

/** @param problems what the plugin would say if `http:` were not permitted */
export function* checkAddress(
  { authUrl, allowInsecureHttp }: Settings,
  problems: readonly string[],
): Generator<CheckResult> {
  if (authUrl === undefined) yield unchecked('address', 'there is none');
  else if (problems.length === 0) yield fine('address', authUrl);
  const permitted = allowInsecureHttp ? `, and ${variables.allowInsecureHttp} permits it` : '';
  for (const problem of problems) {
    const insecure = /^(\S+) has the scheme http: and must have https:, (because .*?);/.exec(problem);
    yield insecure
      ? faultOf(
          'address',
          `${insecure[1]} has the scheme http:${permitted}; write it with https:, ${insecure[2]}`,
        )
      : faultOf('address', problem);
  }
}

function isUrl(text: string): boolean {
  return URL.canParse(text) && /^https?:$/.test(new URL(text).protocol);
}

function withoutSlash(url: string): string {
  return url.replace(/\/+$/, '');
}
