import type { AxiosAdapter } from 'axios';
import * as v from 'valibot';
import type { BeforeErase } from '../erasure/erasure.js';
import type { OptionProblem } from '../errors.js';
import type { LogoutClaims } from '../logout/logout-options.js';
import { optionProblem } from '../options/option-problem.js';
import { textProblem } from '../secrets/secret.js';
import type { SessionCookie, SessionStore, SessionUid } from '../session-end/session-end.js';
import { defaultSessionUid } from '../session-end/session-user.js';
import { memoryStorage } from '../storage/memory-storage.js';
import type { StorageEngine } from '../storage/storage.js';
import { hasDotSegment } from '../uid-rule.js';

/** The environment variable that stands in for `authUrl`. */
export const AUTH_URL_VARIABLE = 'DEBATE_SPACE_AUTH_URL';

const DAY_MS = 24 * 60 * 60 * 1000;
/** Longer timers fire immediately. */
const MAX_TIMER_MS = 2 ** 31 - 1;

// Forms that several options have. A message continues the sentence that begins with the option's name.

const oneOf = <T extends string>(...values: readonly T[]) =>
  v.picklist(values, `must be ${values.map((value) => `'${value}'`).join(' or ')}`);

const yesOrNo = v.boolean('must be true or false');

const functionOption = <F>() => v.custom<F>((value) => typeof value === 'function', 'must be a function');

const whole = (least: number, most: number, of = '') => {
  const message = `must be a whole number${of} from ${least} to ${most}`;
  return v.pipe(v.number(message), v.integer(message), v.minValue(least, message), v.maxValue(most, message));
};

const milliseconds = (least: number, most = MAX_TIMER_MS) => whole(least, most, ' of milliseconds');

/** For a difference of moments, which no timer waits for. */
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

/**
 * The form of each option, and its default. The types of the options describe them, and options/option-problem.ts has the
 * hints for a refused one.
 */
export const optionEntries = {
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

export type CheckedOptions = v.InferOutput<typeof optionsSchema>;

/** Shows no value: it may be a key in the wrong place. */
export function schemaProblem(issue: v.BaseIssue<unknown>): OptionProblem {
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
