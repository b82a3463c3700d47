import type { AxiosAdapter } from 'axios';
import * as v from 'valibot';
import type { BeforeErase } from '../erasure/erasure.js';
import { DebateSpaceOptionsError, type OptionProblem } from '../errors.js';
import type { LogoutClaims } from '../logout/logout-options.js';
import {
  Secret,
  SecretKeyProvider,
  textProblem,
  validateSecretKey,
  type SecretSource,
} from '../secrets/secret.js';
import { isLoopback } from '../service/http/axios-sender.js';
import type { SessionCookie, SessionStore, SessionUid } from '../session-end/session-end.js';
import { defaultSessionUid } from '../session-end/session-user.js';
import { memoryStorage } from '../storage/memory-storage.js';
import type { StorageEngine } from '../storage/engine.js';
import { hasDotSegment } from '../uid-rule.js';

/** The default of `authUrl`. */
const AUTH_URL_VARIABLE = 'DEBATE_SPACE_AUTH_URL';

const DAY_MS = 24 * 60 * 60 * 1000;
/** Longer timers fire immediately. */
const MAX_TIMER_MS = 2 ** 31 - 1;

/** The options, complete and frozen, with each key in a `Secret`. */
export type ResolvedOptions = Readonly<
  Omit<CheckedOptions, 'apiKey' | 'secretKey' | 'storageKey' | 'baseUrl'>
> & {
  readonly apiKey: Secret;
  /** The first key seals and hashes, all keys open. Empty without the option. */
  readonly storageKey: readonly Secret[];
  readonly secretKey: SecretSource;
  readonly baseUrl: string;
};

type Given = Readonly<Record<string, unknown>>;

/**
 * Checks the options of the host, and fills in the defaults.
 * @throws {@link DebateSpaceOptionsError} when an option is missing, malformed or unknown; it names all of them, but only
 * the first unknown one of each group
 */
export function resolveOptions(
  given: unknown,
  environment: NodeJS.ProcessEnv = process.env,
): ResolvedOptions {
  const own = namedOptions(Object(given) as object);
  const options: Given = { ...own, authUrl: own.authUrl ?? environment[AUTH_URL_VARIABLE] };
  const result = v.safeParse(optionsSchema, options, { abortEarly: false, abortPipeEarly: true });
  const problems = [
    ...(result.issues ?? []).map(schemaProblem),
    ...secretKeyProblems(options),
    ...urlProblems(options),
    ...sessionProblems(options),
  ];
  if (!result.success || problems.length > 0) throw new DebateSpaceOptionsError(problems);
  return completed(result.output);
}

// Checks of several options together. They are not in the schema, because valibot skips the checks of a group when one of
// its options has a problem. They skip values of a wrong type, which the schema refuses.

function secretKeyProblems({ secretKey, secretKeyEncoding }: Given): OptionProblem[] {
  if (typeof secretKey !== 'string' || textProblem(secretKey) !== undefined) return [];
  const problem = validateSecretKey(secretKey, secretKeyEncoding === 'base64' ? 'base64' : 'utf8');
  return problem === undefined ? [] : [optionProblem('secretKey', problem)];
}

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
    secretKey:
      typeof secretKey === 'function'
        ? new SecretKeyProvider(secretKey, checked.secretKeyEncoding)
        : new Secret(secretKey),
    storageKey: Object.freeze([storageKey].flat().map((key) => new Secret(key))),
    authUrl,
    baseUrl: checked.baseUrl === undefined ? `${authUrl}/api/v1` : serviceUrl(checked.baseUrl),
  });
}

/** Reads each option by its name, because the configuration of many hosts is a class with getters. */
function namedOptions(given: object): Given {
  const names = [...Object.keys(given), ...Object.keys(optionEntries)];
  return Object.fromEntries(names.map((name) => [name, Reflect.get(given, name) as unknown]));
}

// Forms that several options share. Each message continues a sentence that begins with the name of the option.

const oneOf = <T extends string>(...values: readonly T[]) =>
  v.picklist(values, `must be ${values.map((value) => `'${value}'`).join(' or ')}`);

const yesOrNo = v.boolean('must be true or false');

const functionOption = <F>() => v.custom<F>((value) => typeof value === 'function', 'must be a function');

const whole = (least: number, most: number, of = '') => {
  const message = `must be a whole number${of} from ${least} to ${most}`;
  return v.pipe(v.number(message), v.integer(message), v.minValue(least, message), v.maxValue(most, message));
};

const milliseconds = (least: number, most = MAX_TIMER_MS) => whole(least, most, ' of milliseconds');

/** For ages of rows, which no timer waits for: a thousand years at most. */
const longTime = (least: number) => milliseconds(least, 1000 * 365 * DAY_MS);

const frozen = <T>() => v.transform((value: T): Readonly<T> => Object.freeze(value));

/** An object with these options and no other. */
const group = <E extends v.ObjectEntries>(entries: E, message = 'must be an object') =>
  v.pipe(
    v.strictObject(entries, ({ expected }) =>
      expected === 'never' ? `is not an option; the options are ${Object.keys(entries).join(', ')}` : message,
    ),
    frozen(),
  );

/** Nothing is trimmed or replaced: a value that cannot be sent as it stands is refused. */
const text = v.pipe(
  v.string('must be a string'),
  v.check(
    (value) => textProblem(value) === undefined,
    ({ input }) => textProblem(input) ?? '',
  ),
);

const oneOrMore = (item: v.GenericSchema<string>) => {
  const message = 'must be a string, or strings in an array, at least one';
  return v.pipe(v.union([item, v.pipe(v.array(item), v.minLength(1, message))], message), frozen());
};

const EXPIRY = 'must be true, false or { sweepMs }, a whole number of milliseconds';
const RATE_LIMIT = 'must be { requests, perMs }, both whole numbers from 1, or false';
const ADAPTER = "must be 'http', 'fetch' or a function that is an axios adapter";
const COOKIE = 'must be an array of { name, uid }, one for each cookie that holds a session';

const store = v.custom<SessionStore | readonly SessionStore[]>((value) => {
  const stores: unknown[] = Array.isArray(value) ? value : [value];
  return stores.length > 0 && stores.every(isStore);
}, 'must be a session store, or several in an array: objects with get, set and destroy');

function isStore(value: unknown): boolean {
  const methods = value as Record<string, unknown> | null | undefined;
  return ['get', 'set', 'destroy'].every((method) => typeof methods?.[method] === 'function');
}

const storage = v.custom<StorageEngine>(
  (value) => typeof (value as { open?: unknown } | null | undefined)?.open === 'function',
  'must be a storage such as memoryStorage()',
);

const storageKey = v.pipe(
  text,
  v.minLength(16, 'must have at least 16 characters'),
  v.check((key) => !key.includes(','), 'must not have commas: several keys are strings in an array'),
);

const session = {
  uid: v.optional(functionOption<SessionUid>(), () => defaultSessionUid),
  store: v.optional(store),
  cookies: v.optional(
    v.pipe(
      v.array(group({ name: text, uid: functionOption<SessionCookie['uid']>() }, COOKIE), COOKIE),
      frozen(),
    ),
    [],
  ),
  expiry: v.optional(
    v.pipe(
      v.union([v.boolean(), group({ sweepMs: milliseconds(1) }, EXPIRY)], EXPIRY),
      v.transform((expiry) => Object.freeze(expiry === true ? { sweepMs: 60_000 } : expiry)),
    ),
    false,
  ),
  graceMs: v.optional(milliseconds(0), 500),
};

const logout = {
  mode: v.optional(oneOf('direct', 'oidc'), 'direct'),
  algorithm: v.optional(oneOf('HS256', 'HS384', 'HS512'), 'HS256'),
  issuer: v.optional(text),
  audience: v.optional(oneOrMore(text)),
  /** Back-Channel Logout 1.0 allows two minutes. */
  lifetimeSeconds: v.optional(whole(1, 120, ' of seconds'), 120),
  claims: v.optional(functionOption<LogoutClaims>()),
  concurrency: v.optional(whole(1, 1000), 8),
  giveUpAfterMs: v.optional(milliseconds(1), DAY_MS),
  storageTimeoutMs: v.optional(milliseconds(1), 250),
  historyRetentionMs: v.optional(milliseconds(0), 7 * DAY_MS),
};

const erasure = {
  beforeErase: v.optional(functionOption<BeforeErase>()),
  concurrency: v.optional(whole(1, 100), 4),
  overdueAfterMs: v.optional(v.pipe(v.array(longTime(1), 'must be an array of milliseconds'), frozen()), [
    7 * DAY_MS,
    21 * DAY_MS,
  ]),
  giveUpAfterMs: v.optional(longTime(1), 28 * DAY_MS),
  receiptRetentionMs: v.optional(longTime(0), 3 * 365 * DAY_MS),
};

const rateLimit = group({ requests: whole(1, MAX_TIMER_MS), perMs: milliseconds(1) }, RATE_LIMIT);

const http = {
  timeoutMs: v.optional(milliseconds(1), 10_000),
  totalTimeoutMs: v.optional(milliseconds(1), 30_000),
  maxAttempts: v.optional(whole(1, 20), 4),
  rateLimit: v.optional(v.union([v.literal(false), rateLimit], RATE_LIMIT), {
    requests: 100,
    perMs: 60_000,
  }),
  allowInsecureHttp: v.optional(yesOrNo, false),
  adapter: v.optional(v.union([v.picklist(['http', 'fetch']), functionOption<AxiosAdapter>()], ADAPTER)),
};

const users = { listAuth: v.optional(oneOf('bearer', 'apiKey'), 'bearer') };

/** The form and the default of each option. The types of the options describe them, and `HINTS` has the fixes. */
const optionEntries = {
  apiKey: text,
  secretKey: v.union([text, functionOption<() => string | Promise<string>>()], 'must be a string'),
  applicationName: v.pipe(
    text,
    v.check((name) => !hasDotSegment(name), 'must not have a dot segment: it is a part of a path'),
  ),
  authUrl: v.string(({ input }) =>
    input === undefined ? `must be set, here or as the environment's ${AUTH_URL_VARIABLE}` : 'must be a URL',
  ),
  baseUrl: v.optional(v.string('must be a URL')),
  secretKeyEncoding: v.optional(oneOf('utf8', 'base64'), 'utf8'),
  storageKey: v.optional(oneOrMore(storageKey)),
  session: v.optional(group(session), {}),
  logout: v.optional(group(logout), {}),
  storage: v.optional(storage, () => memoryStorage()),
  worker: v.optional(yesOrNo, true),
  erasure: v.optional(group(erasure), {}),
  http: v.optional(group(http), {}),
  users: v.optional(group(users), {}),
};

export const optionsSchema = group(optionEntries);

type CheckedOptions = v.InferOutput<typeof optionsSchema>;

/** Never shows a value, which may be a key in the wrong place. */
function schemaProblem(issue: v.BaseIssue<unknown>): OptionProblem {
  const option = v.getDotPath(issue) ?? 'options';
  if (issue.expected === 'never') return optionProblem(option, issue.message);
  return optionProblem(option, `${issue.message} (found ${kindOf(issue.input)})`);
}

function kindOf(value: unknown): string {
  if (value === undefined) return 'nothing';
  if (value === null) return 'null';
  if (typeof value === 'string') return `a string of ${value.length} characters`;
  return Array.isArray(value) ? 'an array' : `a value of type ${typeof value}`;
}

/** How to fix an option that is refused. */
const HINTS: Readonly<Record<string, string>> = {
  apiKey: 'copy it from the administration panel, Configuration > General',
  secretKey: 'copy it from the administration panel, Configuration > General',
  applicationName: 'it is the last part of the logout route, {auth_url}/auth/logout/{application_name}',
  authUrl: 'it is the host root of the service, such as https://debate.example.org',
  storageKey: 'make one with: openssl rand -base64 32',
  'logout.issuer': 'leave it out for the application name',
  'http.adapter': "leave it out for the plugin's own",
};

/** @param option its path; that of one value, such as `storageKey.1`, has the hint of the option */
export function optionProblem(option: string, problem: string, hint?: string): OptionProblem {
  const [name = ''] = option.split(/\.\d/, 1);
  return { option, problem, hint: hint ?? HINTS[name] ?? 'see docs/options.md' };
}

/** What is wrong with an address of the service; `undefined` when nothing is. */
function validateServiceUrl(
  option: 'authUrl' | 'baseUrl',
  value: string,
  allowInsecureHttp: boolean,
): OptionProblem | undefined {
  const refused = (problem: string, hint?: string) => optionProblem(option, problem, hint);
  const url = URL.canParse(value) ? new URL(value) : undefined;
  if (url === undefined)
    return refused('is not a URL', 'write it with its scheme, such as https://debate.example.org');
  // Checked first, and the message does not repeat the scheme: in `key:secret@host`, it is the key.
  if (url.protocol !== 'https:' && url.protocol !== 'http:') return refused('must have the scheme https:');
  if (url.username !== '' || url.password !== '') return refused('must not hold a user name or a password');
  if (url.search !== '' || url.hash !== '') return refused('must end with its path, without ? and #');
  if (url.protocol === 'http:' && !allowInsecureHttp && !isLoopback(url.hostname)) {
    const hint = 'write it with https:, because keys and tokens travel there';
    return refused('has the scheme http:, and only http.allowInsecureHttp permits it', hint);
  }
  if (option === 'authUrl' && /\/api\/v\d+\/?$/.test(url.pathname)) {
    const hint = 'leave out /api/v1, or give that address as baseUrl';
    return refused('ends like the address of the API; it is the host root', hint);
  }
  return undefined;
}

/** The address without blanks, `?`, `#` and slashes at its end, so that paths can be appended. */
function serviceUrl(value: string): string {
  const { origin, pathname } = new URL(value);
  return origin + pathname.replace(/\/+$/, '');
}
