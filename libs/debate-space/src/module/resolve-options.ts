import { safeParse } from 'valibot';
import { SecretKeyProvider, Secret, type SecretSource, validateSecretKey } from '../secrets/secret.js';
import { DebateSpaceOptionsError, type OptionProblem } from '../errors.js';
import {
  AUTH_URL_VARIABLE,
  optionEntries,
  optionsSchema,
  type CheckedOptions,
  schemaProblems,
} from './options-schema.js';
import {
  optionProblem,
  storageKeyProblems,
  serviceUrl,
  validateServiceUrl,
} from '../options/option-problem.js';

/** The options of `logout.mode: 'direct'` alone. */
const DIRECT_ONLY = [
  'uid',
  'store',
  'cookies',
  'expiry',
  'graceMs',
] as const satisfies readonly (keyof CheckedOptions['session'])[];

const GROUPS = new Set(['session', 'logout', 'audience', 'storageKey']);

/** The options, complete and frozen, with the keys locked away. */
export type ResolvedOptions = Readonly<
  Omit<CheckedOptions, 'apiKey' | 'secretKey' | 'storageKey' | 'baseUrl'>
> & {
  readonly apiKey: Secret;
  /** The first one seals and hashes, all of them open. Empty: none was given. */
  readonly storageKey: readonly Secret[];
  readonly secretKey: SecretSource;
  readonly baseUrl: string;
};

/**
 * Checks and completes what the host gave.
 * @throws {@link DebateSpaceOptionsError} when an option is missing, malformed or unknown; it names all of them
 */
export function resolveOptions(
  given: unknown,
  environment: NodeJS.ProcessEnv = process.env,
): ResolvedOptions {
  const own = withGetters(typeof given === 'object' && given !== null ? given : {});
  const options: Record<string, unknown> = { ...own, authUrl: own.authUrl ?? environment[AUTH_URL_VARIABLE] };
  const result = safeParse(optionsSchema, options, { abortEarly: false, abortPipeEarly: true });
  const problems = [
    ...schemaProblems(result.issues ?? [], options),
    ...urlProblems(options),
    ...expiryProblems(options),
    ...oidcProblems(options),
    ...secretKeyProblems(options),
    ...storageKeyProblems(options.storageKey, options.apiKey),
  ];
  if (!result.success || problems.length > 0) throw new DebateSpaceOptionsError(problems);
  return completed(result.output);
}

// The rest is not in the schema: valibot leaves out what concerns a whole group when an option of the group has a problem of
// its own.

function urlProblems({ authUrl, baseUrl, http }: Readonly<Record<string, unknown>>): OptionProblem[] {
  const insecure = (http as { allowInsecureHttp?: unknown } | undefined)?.allowInsecureHttp === true;
  const check = (option: 'authUrl' | 'baseUrl', url: unknown) =>
    // Anything else is absent, or named by the schema.
    typeof url === 'string' ? (validateServiceUrl(option, url, insecure) ?? []) : [];
  return [check('authUrl', authUrl), check('baseUrl', baseUrl)].flat();
}

function expiryProblems({ session }: Readonly<Record<string, unknown>>): OptionProblem[] {
  const { expiry, store } = Object(session) as { expiry?: unknown; store?: unknown };
  const isOn = expiry === true || (typeof expiry === 'object' && expiry !== null);
  if (!isOn || store !== undefined) return [];
  const problem = 'needs session.store: an instance that has just started must know where to look';
  return [optionProblem('session.expiry', problem, 'give the store of the app as session.store')];
}

/** Options that would do nothing in this mode, though the host counts on them. The `logout` options are for `logoutUser`. */
function oidcProblems(options: Readonly<Record<string, unknown>>): OptionProblem[] {
  if ((Object(options.logout) as { mode?: unknown }).mode !== 'oidc') return [];
  const problem = "has no effect with logout.mode 'oidc', which watches no session";
  const given = Object(options.session) as Readonly<Record<string, unknown>>;
  return DIRECT_ONLY.filter((option) => given[option] !== undefined && given[option] !== false).map(
    (option) => optionProblem(`session.${option}`, problem, 'leave it out, or leave out logout.mode'),
  );
}

function secretKeyProblems(options: Readonly<Record<string, unknown>>): OptionProblem[] {
  const { secretKey: key, secretKeyEncoding } = options;
  if (typeof key !== 'string' || key.trim() === '') return []; // named by the schema
  const problem = secretKeyEncoding === 'base64' ? validateSecretKey(key, 'base64') : undefined;
  const shared = 'has the value of secretKey, and would be sent, logged or left behind by a rotation';
  const places = placesOf(key, { ...options, secretKey: undefined });
  return [
    ...(problem === undefined ? [] : [optionProblem('secretKey', problem)]),
    ...places.map((option) => optionProblem(option, shared, 'give it its own')),
  ];
}

function completed({ apiKey, secretKey, storageKey = [], ...checked }: CheckedOptions): ResolvedOptions {
  const authUrl = serviceUrl(checked.authUrl);
  return Object.freeze({
    ...checked,
    apiKey: new Secret(apiKey),
    secretKey:
      typeof secretKey === 'string'
        ? new Secret(secretKey)
        : new SecretKeyProvider(secretKey, checked.secretKeyEncoding),
    storageKey: Object.freeze([storageKey].flat().map((key) => new Secret(key))),
    authUrl,
    baseUrl: checked.baseUrl === undefined ? `${authUrl}/api/v1` : serviceUrl(checked.baseUrl),
  });
}

/** The paths at which a value stands in the options and in their groups. */
function placesOf(value: unknown, options: object, path = ''): string[] {
  return Object.entries(options).flatMap(([name, option]: [string, unknown]) => {
    if (option === value) return [path + name];
    const isGroup = GROUPS.has(name) && typeof option === 'object' && option !== null;
    return isGroup ? placesOf(value, option, `${path}${name}.`) : [];
  });
}

/** Also of a class with getters, as many hosts keep their configuration. Each option is named, also one that is absent. */
function withGetters(given: object): Record<string, unknown> {
  const names = Object.keys(optionEntries);
  return {
    ...given,
    ...Object.fromEntries(names.map((name) => [name, Reflect.get(given, name) as unknown])),
  };
}
