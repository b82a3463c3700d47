import type { OptionProblem } from 'nestjs-debate-space';
import type { Settings } from '../settings.js';
import { variables } from '../variables.js';
import { faultOfOption, fine, unchecked, type CheckResult } from './check.js';

/** Where the service is, as far as it can be told from the settings. */
export interface ServiceAddress {
  /** Without a slash at its end. */
  readonly authUrl: string;
  readonly baseUrl: string;
}

export function isOfAddress({ option }: OptionProblem): boolean {
  return option === variables.authUrl || option === variables.baseUrl;
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
  { authUrl }: Settings,
  problems: readonly OptionProblem[],
): Generator<CheckResult> {
  if (authUrl === undefined) yield unchecked('address', 'there is none');
  else if (problems.length === 0) yield fine('address', authUrl);
  for (const problem of problems) yield faultOfOption('address', problem);
}

function isUrl(text: string): boolean {
  return URL.canParse(text) && /^https?:$/.test(new URL(text).protocol);
}

function withoutSlash(url: string): string {
  return url.replace(/\/+$/, '');
}
