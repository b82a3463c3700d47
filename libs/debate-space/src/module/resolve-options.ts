import type { z } from 'zod';
import { AskedKey } from '../secrets/asked-key.js';
import { DebateSpaceOptionsError } from '../errors.js';
import { AUTH_URL_VARIABLE, optionsSchema, type CheckedOptions } from './options-schema.js';
import { Secret, type KeySource } from '../secrets/secret.js';
import { secretKeyProblem } from '../secrets/secret-key-problem.js';
import { storageKeyProblems } from '../options/storage-key-problems.js';
import { apiPathProblem, serviceUrl, serviceUrlProblem } from '../options/service-url.js';

const MAX_SHOWN = 12;
const GROUPS = new Set(['session', 'logout', 'audience', 'storageKey']);

/** The options, complete and frozen, with the keys locked away. */
export type ResolvedOptions = Readonly<
  Omit<CheckedOptions, 'apiKey' | 'secretKey' | 'storageKey' | 'baseUrl'>
> & {
  readonly apiKey: Secret;
  /** The first one seals and hashes, all of them open. Empty: none was given. */
  readonly storageKey: readonly Secret[];
  readonly secretKey: KeySource;
  readonly baseUrl: string;
};

/**
 * Checks and completes what the host gave.
 * @throws {DebateSpaceOptionsError} naming every option that is missing, malformed or unknown
 */
export function resolveOptions(
  given: unknown,
  environment: NodeJS.ProcessEnv = process.env,
): ResolvedOptions {
  const options = typeof given === 'object' && given !== null ? withGetters(given) : {};
  const authUrl = options.authUrl ?? environment[AUTH_URL_VARIABLE];
  const result = optionsSchema.safeParse({ ...options, authUrl }, { reportInput: true });
  const problems = result.success ? [] : result.error.issues.map((issue) => sentence(issue, options));
  const insecure = (options.http as { allowInsecureHttp?: unknown } | undefined)?.allowInsecureHttp === true;
  for (const [option, url] of Object.entries({ authUrl, baseUrl: options.baseUrl })) {
    if (typeof url !== 'string') continue; // absent, or named by the schema already
    const problem =
      serviceUrlProblem(url, insecure) ?? (option === 'authUrl' ? apiPathProblem(url) : undefined);
    if (problem !== undefined) problems.push(`${option} ${problem}`);
  }
  // Not in the schema: zod leaves out what concerns a whole group when an option of the group has a problem of its own.
  if (isExpiryWithoutStore(options.session)) {
    problems.push(
      'session.expiry needs session.store: an instance that has just started must know where to look',
    );
  }
  const { secretKeyEncoding, secretKey: key } = options;
  const isEmpty = typeof key !== 'string' || key.trim() === ''; // named by the schema already
  const keyProblem = isEmpty || secretKeyEncoding !== 'base64' ? undefined : secretKeyProblem(key, 'base64');
  if (keyProblem !== undefined) problems.push(`secretKey ${keyProblem}`);
  problems.push(...storageKeyProblems(options.storageKey, options.apiKey));
  for (const place of placesOf(key, { ...options, secretKey: undefined })) {
    problems.push(
      `${place} has the value of secretKey, and would be sent, logged or left behind by a rotation; give it its own`,
    );
  }
  if (!result.success || problems.length > 0) throw new DebateSpaceOptionsError(problems);
  return completed(result.data);
}

function isExpiryWithoutStore(session: unknown): boolean {
  const { expiry, store } = Object(session) as { expiry?: unknown; store?: unknown };
  return store === undefined && (expiry === true || (typeof expiry === 'object' && expiry !== null));
}

function completed({ apiKey, secretKey, storageKey = [], ...checked }: CheckedOptions): ResolvedOptions {
  const { session, logout, http, users, erasure } = checked;
  for (const part of [
    session,
    logout,
    logout.audience,
    http,
    http.rateLimit,
    users,
    erasure,
    erasure.overdueAfterMs,
  ])
    Object.freeze(part);
  const authUrl = serviceUrl(checked.authUrl);
  return Object.freeze({
    ...checked,
    apiKey: new Secret(apiKey),
    secretKey:
      typeof secretKey === 'string'
        ? new Secret(secretKey)
        : new AskedKey(secretKey, checked.secretKeyEncoding),
    storageKey: Object.freeze([storageKey].flat().map((key) => new Secret(key))),
    authUrl,
    baseUrl: checked.baseUrl === undefined ? `${authUrl}/api/v1` : serviceUrl(checked.baseUrl),
  });
}

/** One problem as a sentence: the option, the hint, and what was found. */
function sentence(issue: z.core.$ZodIssue, options: Readonly<Record<string, unknown>>): string {
  if (issue.code === 'unrecognized_keys') {
    const names = issue.keys.map((key) => [...issue.path, shown(key, options)].join('.'));
    if (names.every((name) => ['name', 'isGlobal'].includes(name)))
      return `${names.join(', ')}: not for the factory to give; put it beside useFactory, useClass or useExisting`;
    return `${names.join(', ')}: no such option; see docs/options.md`;
  }
  const hidden = keysOf(options).includes(issue.input);
  return `${issue.path.join('.') || 'options'} ${issue.message} (found ${found(issue.input, hidden)})`;
}

/** The name of an unknown option – which may be a key that stands in the wrong place. */
function shown(name: string, options: Readonly<Record<string, unknown>>): string {
  const isKey = keysOf(options).some((key) => typeof key === 'string' && key !== '' && name.includes(key));
  return isKey ? '(a key as a name)' : name;
}

function keysOf({ apiKey, secretKey, storageKey }: Readonly<Record<string, unknown>>): readonly unknown[] {
  return [apiKey, secretKey, storageKey].flat();
}

/** The paths at which a value stands in the options and in their groups. */
function placesOf(value: unknown, options: object, path = ''): string[] {
  if (typeof value !== 'string' || value === '') return [];
  return Object.entries(options).flatMap(([name, option]: [string, unknown]) => {
    if (option === value) return [path + name];
    const isGroup = GROUPS.has(name) && typeof option === 'object' && option !== null;
    return isGroup ? placesOf(value, option, `${path}${name}.`) : [];
  });
}

/** Also of a class with getters, as many hosts keep their configuration. */
function withGetters(given: object): Record<string, unknown> {
  const known = Object.keys(optionsSchema.shape).map(
    (name) => [name, Reflect.get(given, name) as unknown] as const,
  );
  const options: Record<string, unknown> = { ...given };
  for (const [name, value] of known) if (value !== undefined) options[name] = value;
  return options;
}

/** Never a text that could be a key standing in the wrong place. */
function found(value: unknown, hidden: boolean): string {
  if (value === undefined) return 'nothing';
  if (value === '') return 'an empty string';
  if (typeof value === 'string')
    return hidden || value.length > MAX_SHOWN ? `a string of ${value.length} characters` : `'${value}'`;
  if (value === null || typeof value === 'boolean' || (typeof value === 'number' && !hidden))
    return String(value);
  return Array.isArray(value) ? 'an array' : `a value of type ${typeof value}`;
}
