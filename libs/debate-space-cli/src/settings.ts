import { variables } from './variables.js';
import type { OptionProblem, DebateSpaceModuleOptions } from 'nestjs-debate-space';
import { readFile } from 'node:fs/promises';
import { resolve } from 'node:path';
import { parseEnv } from 'node:util';
import { codeOf, Failure } from './failure.js';
import type { CliIo } from './cli-context.js';
import { optionHints } from 'nestjs-debate-space/internal';
import { needsKey, storageSetting, type StorageSetting } from './storage.js';

/** The variables that are set; an empty one counts as none. */
export type Environment = Readonly<Record<string, string | undefined>>;

/**
 * The environment, and what it lacks from an env file: the named one, or `.env` of the working folder if there is one.
 * @throws {Failure} when the named file cannot be read
 */
export async function readEnvironment(
  { env, folder }: Pick<CliIo, 'env' | 'folder'>,
  envFile: string | undefined,
): Promise<Environment> {
  const text = await readEnvFile(resolve(folder, envFile ?? '.env'), envFile !== undefined);
  return { ...filled(parseEnv(text)), ...filled(env) };
}

async function readEnvFile(path: string, isNamed: boolean): Promise<string> {
  try {
    return await readFile(path, 'utf8');
  } catch (error) {
    if (codeOf(error) === 'ENOENT' && !isNamed) return '';
    throw new Failure(
      'configuration',
      `${path} cannot be read (${codeOf(error)}); --config names a file of NAME=value lines`,
    );
  }
}

function filled(variables: NodeJS.Dict<string>): Environment {
  return Object.fromEntries(Object.entries(variables).filter(([, value]) => value !== ''));
}

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
  /** Of the variables that are missing or cannot be understood. */
  readonly problems: readonly OptionProblem[];
}

const REQUIRED = ['apiKey', 'secretKey', 'applicationName', 'authUrl'] as const;
const FIX = 'fix it in the environment or in .env';
const KEYLESS = 'give the option storageKey of your app: it encrypts the uids in Postgres, MySQL or MariaDB';
const UNITS: Readonly<Record<string, number>> = { ms: 1, s: 1000, m: 60_000 };

/** @param folder what relative paths start from */
export function readSettings(environment: Environment, folder: string): Settings {
  const problems: OptionProblem[] = [];
  const parsed = <T>(
    setting: keyof typeof variables,
    understood: (text: string) => T | undefined,
    must: string,
  ) => {
    const text = environment[variables[setting]];
    const value = text === undefined ? undefined : understood(text);
    if (text !== undefined && value === undefined)
      problems.push({ option: variables[setting], problem: `must be ${must}`, hint: FIX });
    return value;
  };
  const missing = (setting: keyof typeof variables, hint: string) => {
    problems.push({ option: variables[setting], problem: 'is not set', hint });
  };
  for (const setting of REQUIRED) {
    if (environment[variables[setting]] === undefined) missing(setting, optionHints[setting]);
  }
  const names = {
    schema: environment[variables.storageSchema],
    prefix: environment[variables.storagePrefix],
  };
  const storage: StorageSetting = parsed(
    'storage',
    (text) => storageSetting(text, folder, names),
    'memory, sqlite:<file>, or a URL postgres://…, mysql://… or mariadb://…',
  ) ?? { engine: 'memory' };
  const storageKey = severalKeys(environment[variables.storageKey]);
  if (needsKey(storage) && storageKey === undefined) missing('storageKey', KEYLESS);
  return {
    apiKey: environment[variables.apiKey],
    secretKey: environment[variables.secretKey],
    applicationName: environment[variables.applicationName],
    authUrl: environment[variables.authUrl],
    baseUrl: environment[variables.baseUrl],
    secretKeyEncoding: parsed('secretKeyEncoding', oneOf('utf8', 'base64'), 'utf8 or base64'),
    storage,
    storageKey,
    rateLimit: parsed('rateLimit', rateLimit, 'off, or requests/time such as 100/60s'),
    listAuth: parsed('listAuth', oneOf('bearer', 'apiKey'), 'bearer or apiKey'),
    allowInsecureHttp: parsed('allowInsecureHttp', yesOrNo, 'true or false') ?? false,
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
