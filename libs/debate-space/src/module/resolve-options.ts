import { safeParse } from 'valibot';
import { DebateSpaceOptionsError, type OptionProblem } from '../errors.js';
import { optionProblem, serviceUrl, validateServiceUrl } from '../options/option-problem.js';
import { Secret, SecretKeyProvider, type SecretSource } from '../secrets/secret.js';
import {
  AUTH_URL_VARIABLE,
  optionEntries,
  optionsSchema,
  schemaProblem,
  type CheckedOptions,
} from './options-schema.js';

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

type Given = Readonly<Record<string, unknown>>;

/**
 * Checks and completes what the host gave.
 * @throws {@link DebateSpaceOptionsError} when an option is missing, malformed or unknown; it names all of them, and of
 * the unknown ones the first of each group
 */
export function resolveOptions(
  given: unknown,
  environment: NodeJS.ProcessEnv = process.env,
): ResolvedOptions {
  const own = namedOptions(Object(given) as object);
  const options: Given = { ...own, authUrl: own.authUrl ?? environment[AUTH_URL_VARIABLE] };
  const result = safeParse(optionsSchema, options, { abortEarly: false, abortPipeEarly: true });
  const problems = [
    ...(result.issues ?? []).map(schemaProblem),
    ...urlProblems(options),
    ...sessionProblems(options),
  ];
  if (!result.success || problems.length > 0) throw new DebateSpaceOptionsError(problems);
  return completed(result.output);
}

// Checks that concern several options. They are not in the schema: valibot leaves out the checks of a group when one of
// its options has a problem. Values of a wrong type are passed over, because the schema names them.

function urlProblems({ authUrl, baseUrl, http }: Given): OptionProblem[] {
  const insecure = (http as { allowInsecureHttp?: unknown } | undefined)?.allowInsecureHttp === true;
  const check = (option: 'authUrl' | 'baseUrl', url: unknown) =>
    typeof url === 'string' ? (validateServiceUrl(option, url, insecure) ?? []) : [];
  return [check('authUrl', authUrl), check('baseUrl', baseUrl)].flat();
}

function sessionProblems({ session, logout }: Given): OptionProblem[] {
  const given = Object(session) as Given;
  const { mode } = Object(logout) as { mode?: unknown };
  if (mode === 'oidc' && Object.values(given).some((option) => option !== undefined)) {
    const problem = "has no effect with logout.mode 'oidc', which watches no session";
    return [optionProblem('session', problem, 'leave it out, or leave out logout.mode')];
  }
  const isOn = given.expiry === true || typeof given.expiry === 'object';
  if (!isOn || given.store !== undefined) return [];
  const problem = 'needs session.store: an instance that has just started must know where to look';
  return [optionProblem('session.expiry', problem, 'give the store of the app as session.store')];
}

function completed({ apiKey, secretKey, storageKey = [], ...checked }: CheckedOptions): ResolvedOptions {
  const authUrl = serviceUrl(checked.authUrl);
  return Object.freeze({
    ...checked,
    apiKey: new Secret(apiKey),
    secretKey: new SecretKeyProvider(
      typeof secretKey === 'function' ? secretKey : () => secretKey,
      checked.secretKeyEncoding,
    ),
    storageKey: Object.freeze([storageKey].flat().map((key) => new Secret(key))),
    authUrl,
    baseUrl: checked.baseUrl === undefined ? `${authUrl}/api/v1` : serviceUrl(checked.baseUrl),
  });
}

/** Reads each option by its name: in many hosts the configuration is a class whose options are getters. */
function namedOptions(given: object): Given {
  const names = [...Object.keys(given), ...Object.keys(optionEntries)];
  return Object.fromEntries(names.map((name) => [name, Reflect.get(given, name) as unknown]));
}
