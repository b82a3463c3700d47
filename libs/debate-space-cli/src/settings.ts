import type { DebateSpaceModuleOptions } from 'nestjs-debate-space';
import type { Environment } from './environment.js';
import { needsKey, storageSetting, type StorageSetting } from './storage-setting.js';
import { variables } from './variables.js';

/** What the environment says, as far as it can be understood. What a value must be like is the plugin's to judge. */
export interface Settings {
  readonly apiKey: string | undefined;
  readonly secretKey: string | undefined;
  readonly applicationName: string | undefined;
  readonly authUrl: string | undefined;
  readonly baseUrl: string | undefined;
  readonly secretKeyEncoding: DebateSpaceModuleOptions['secretKeyEncoding'];
  readonly storage: StorageSetting;
  readonly storageKey: DebateSpaceModuleOptions['storageKey'];
  readonly rateLimit: NonNullable<DebateSpaceModuleOptions['http']>['rateLimit'];
  readonly listAuth: NonNullable<DebateSpaceModuleOptions['users']>['listAuth'];
  readonly allowInsecureHttp: boolean;
  /** One sentence for each variable that is missing or cannot be understood. */
  readonly problems: readonly string[];
}

const PANEL = 'copy it from the administration panel, Configuration > General';
const REQUIRED = [
  ['apiKey', PANEL],
  ['secretKey', PANEL],
  ['applicationName', 'it is the last part of the logout route, {auth_url}/auth/logout/{application_name}'],
  ['authUrl', 'it is the host root of the service, such as https://debate.example.org'],
] as const;
const KEYLESS = `${variables.storageKey} is not set; give the option storageKey of your app: it encrypts what is in Redis or Postgres`;
const UNITS: Readonly<Record<string, number>> = { ms: 1, s: 1000, m: 60_000 };

/** @param folder what relative paths start from */
export function readSettings(environment: Environment, folder: string): Settings {
  const problems: string[] = [];
  const told = <T>(
    setting: keyof typeof variables,
    understood: (text: string) => T | undefined,
    must: string,
  ) => {
    const text = environment[variables[setting]];
    const value = text === undefined ? undefined : understood(text);
    if (text !== undefined && value === undefined) problems.push(`${variables[setting]} must be ${must}`);
    return value;
  };
  for (const [setting, hint] of REQUIRED) {
    if (environment[variables[setting]] === undefined)
      problems.push(`${variables[setting]} is not set; ${hint}`);
  }
  const names = {
    prefix: environment[variables.storagePrefix],
    table: environment[variables.storageTable],
  };
  const storage: StorageSetting = told(
    'storage',
    (text) => storageSetting(text, folder, names),
    'memory, lmdb:<folder>, or a URL redis://…, rediss://… or postgres://…',
  ) ?? { engine: 'memory' };
  const storageKey = severalKeys(environment[variables.storageKey]);
  if (needsKey(storage) && storageKey === undefined) problems.push(KEYLESS);
  return {
    apiKey: environment[variables.apiKey],
    secretKey: environment[variables.secretKey],
    applicationName: environment[variables.applicationName],
    authUrl: environment[variables.authUrl],
    baseUrl: environment[variables.baseUrl],
    secretKeyEncoding: told('secretKeyEncoding', oneOf('utf8', 'base64'), 'utf8 or base64'),
    storage,
    storageKey,
    rateLimit: told('rateLimit', rateLimit, 'off, or requests/time such as 100/60s'),
    listAuth: told('listAuth', oneOf('bearer', 'apiKey'), 'bearer or apiKey'),
    allowInsecureHttp: told('allowInsecureHttp', yesOrNo, 'true or false') ?? false,
    problems,
  };
}

/** The options of the plugin, but for its storage. */
export function pluginOptions(settings: Settings): Omit<DebateSpaceModuleOptions, 'storage'> {
  const { apiKey = '', secretKey = '', applicationName = '', ...others } = settings;
  const { authUrl, baseUrl, secretKeyEncoding, storageKey, rateLimit, listAuth, allowInsecureHttp } = others;
  const http = { rateLimit, allowInsecureHttp };
  const keys = { apiKey, secretKey, secretKeyEncoding, storageKey };
  return { ...keys, applicationName, authUrl, baseUrl, http, users: { listAuth } };
}

function oneOf<T extends string>(...values: readonly T[]): (text: string) => T | undefined {
  return (text) => values.find((value) => value === text);
}

/** Separated by commas or blanks, the first one in front. */
function severalKeys(text = ''): Settings['storageKey'] {
  const keys = text.split(/[\s,]+/).filter((key) => key !== '');
  return keys.length > 1 ? keys : keys[0];
}

function yesOrNo(text: string): boolean | undefined {
  return { true: true, 1: true, false: false, 0: false }[text];
}

function rateLimit(text: string): Settings['rateLimit'] {
  if (text === 'off') return false;
  const [, requests, time, unit = ''] = /^(\d{1,9})\/(\d{1,9})(ms|s|m)$/.exec(text) ?? [];
  const perMs = Number(time) * (UNITS[unit] ?? NaN);
  return Number(requests) >= 1 && perMs >= 1 ? { requests: Number(requests), perMs } : undefined;
}
