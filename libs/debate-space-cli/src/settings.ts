import type { DebateSpaceModuleOptions, OptionProblem } from 'nestjs-debate-space';
import { readFile } from 'node:fs/promises';
import { resolve } from 'node:path';
import { parseEnv } from 'node:util';
import { codeOf, Failure } from './failure.js';

/** What the command line is configured with, and the variable that says it. Not options: those show in process lists. */
export const variables = {
  apiKey: 'DEBATE_SPACE_API_KEY',
  secretKey: 'DEBATE_SPACE_SECRET_KEY',
  applicationName: 'DEBATE_SPACE_APPLICATION_NAME',
  authUrl: 'DEBATE_SPACE_AUTH_URL',
  baseUrl: 'DEBATE_SPACE_BASE_URL',
  secretKeyEncoding: 'DEBATE_SPACE_SECRET_KEY_ENCODING',
  storage: 'DEBATE_SPACE_STORAGE',
  storageSchema: 'DEBATE_SPACE_STORAGE_SCHEMA',
  storagePrefix: 'DEBATE_SPACE_STORAGE_PREFIX',
  storageKey: 'DEBATE_SPACE_STORAGE_KEY',
  rateLimit: 'DEBATE_SPACE_RATE_LIMIT',
  listAuth: 'DEBATE_SPACE_LIST_AUTH',
  allowInsecureHttp: 'DEBATE_SPACE_ALLOW_INSECURE_HTTP',
} as const;

/** Which storage: that of the app, or one in the memory of this command. */
export interface StorageSetting {
  readonly engine: 'memory' | 'sqlite' | 'postgres' | 'mysql';
  /** Of SQLite, the path of its file. */
  readonly url: string;
  readonly schema?: string | undefined;
  readonly prefix?: string | undefined;
}

/** What the environment says, as far as it can be understood. What a value must be like is the plugin's to judge. */
export interface Settings {
  readonly options: Omit<DebateSpaceModuleOptions, 'storage'>;
  readonly storage: StorageSetting;
  /** Of the variables that cannot be understood. */
  readonly problems: readonly OptionProblem[];
}

type Options = Settings['options'];
type Environment = Readonly<Record<string, string | undefined>>;

const BOOLEANS: Readonly<Record<string, boolean>> = { true: true, 1: true, false: false, 0: false };
const KEYLESS = 'give the option storageKey of your app: it encrypts the uids in Postgres, MySQL or MariaDB';
const STORAGES = 'memory, sqlite:<file>, or a URL postgres://…, mysql://… or mariadb://…';

/**
 * The environment, and what it lacks from a file: the named one, or `.env` of the working folder if there is one.
 * @param folder what relative paths start from
 * @throws {Failure} when the named file cannot be read
 */
export async function readSettings(env: Environment, folder: string, file?: string): Promise<Settings> {
  const path = resolve(folder, file ?? '.env');
  const text = await readFile(path, 'utf8').catch((error: unknown) => {
    if (codeOf(error) === 'ENOENT' && file === undefined) return '';
    const problem = `${path} cannot be read (${codeOf(error)})`;
    throw new Failure('configuration', problem, '--config names a file of NAME=value lines');
  });
  return settingsOf({ ...filled(parseEnv(text)), ...filled(env) }, folder);
}

/** An empty variable counts as none. */
function filled(env: Environment): Environment {
  return Object.fromEntries(Object.entries(env).filter(([, value]) => value !== ''));
}

export function settingsOf(env: Environment, folder: string): Settings {
  const problems: OptionProblem[] = [];
  const given = (name: keyof typeof variables) => env[variables[name]];
  const parsed = <T>(
    name: keyof typeof variables,
    must: string,
    parse: (text: string) => T | undefined,
  ): T | undefined => {
    const text = given(name);
    const value = text === undefined ? undefined : parse(text);
    const hint = 'fix it in the environment or in .env';
    if (text !== undefined && value === undefined)
      problems.push({ option: variables[name], problem: `must be ${must}`, hint });
    return value;
  };
  const storage = parsed('storage', STORAGES, (text) => storageOf(text, folder));
  const storageKeys = given('storageKey')?.match(/[^\s,]+/g) ?? [];
  if (storageKeys.length === 0 && storage?.url.includes('://') === true)
    problems.push({ option: variables.storageKey, problem: 'is not set', hint: KEYLESS });
  const http = {
    rateLimit: parsed('rateLimit', 'off, or requests/time such as 100/60s', rateLimitOf),
    allowInsecureHttp: parsed('allowInsecureHttp', 'true or false', (text) => BOOLEANS[text]),
  };
  const options = {
    apiKey: given('apiKey'),
    secretKey: given('secretKey'),
    secretKeyEncoding: given('secretKeyEncoding'),
    applicationName: given('applicationName'),
    authUrl: given('authUrl'),
    baseUrl: given('baseUrl'),
    storageKey: storageKeys.length > 1 ? storageKeys : storageKeys[0],
    users: { listAuth: given('listAuth') },
    http,
  } as Options; // what is missing or wrong in it is the plugin's to say
  const names = { schema: given('storageSchema'), prefix: given('storagePrefix') };
  return { options, storage: { ...(storage ?? { engine: 'memory', url: '' }), ...names }, problems };
}

function storageOf(text: string, folder: string): StorageSetting | undefined {
  if (text === 'memory') return { engine: 'memory', url: '' };
  const [, scheme = '', rest = ''] = /^(sqlite|postgres|postgresql|mysql|mariadb):(.+)$/.exec(text) ?? [];
  if (scheme === 'sqlite') return { engine: 'sqlite', url: resolve(folder, rest) };
  if (!/^\/\/./.test(rest) || !URL.canParse(text)) return undefined;
  return { engine: scheme.startsWith('postgres') ? 'postgres' : 'mysql', url: text };
}

function rateLimitOf(text: string): NonNullable<Options['http']>['rateLimit'] {
  if (text === 'off') return false;
  const [, requests, time, unit = ''] = /^(\d{1,9})\/(\d{1,9})(ms|s|m)$/.exec(text) ?? [];
  const perMs = Number(time) * ({ ms: 1, s: 1000, m: 60_000 }[unit] ?? NaN);
  return Number(requests) >= 1 && perMs >= 1 ? { requests: Number(requests), perMs } : undefined;
}

/** A problem as the plugin words it, with the variables in place of its options. */
export function inVariables({ option, problem, hint }: OptionProblem): OptionProblem {
  return { option: textInVariables(option), problem: textInVariables(problem), hint: textInVariables(hint) };
}

/** What the plugin says, for people who have no code of the app at hand: with the variables in place of its options. */
export function textInVariables(text: string): string {
  const byOption: Readonly<Record<string, string>> = {
    ...variables,
    storage: 'storage', // also a word of the sentences
    'http.allowInsecureHttp': variables.allowInsecureHttp,
    'users.listAuth': variables.listAuth,
  };
  return text.replaceAll(/(?<!')(?:http\.|users\.)?\b[a-z]\w+\b/g, (word) => byOption[word] ?? word);
}
