import type { AxiosAdapter } from 'axios';
import { defaultSessionUid } from '../session-end/session-user.js';
import { hasDotSegment } from '../uid-rule.js';
import type { SessionCookie, SessionStore, SessionUid } from '../session-end/session-end.js';
import * as v from 'valibot';
import { getDotPath, type BaseIssue } from 'valibot';
import { memoryStorage } from '../storage/memory-storage.js';
import type { StorageEngine } from '../storage/storage.js';
import type { LogoutClaims } from '../logout/logout-options.js';
import type { BeforeErase } from '../erasure/erasure.js';
import {
  DAY_MS,
  frozen,
  functionOption,
  group,
  long,
  MAX_MS,
  milliseconds,
  oneOf,
  onlyWith,
  text,
  whole,
  yesOrNo,
} from '../options/option-schemas.js';
import type { OptionProblem } from '../errors.js';
import { optionProblem } from '../options/option-problem.js';

/** The environment variable that stands in for `authUrl`. */
export const AUTH_URL_VARIABLE = 'DEBATE_SPACE_AUTH_URL';

const STORAGE_KEYS = 'must be a string, or strings in an array';
const AUDIENCE = 'must be a string, or strings in an array, and none empty';
const EXPIRY = 'must be true, false or { sweepMs }, a whole number of milliseconds';
const RATE_LIMIT = 'must be { requests, perMs }, both whole numbers from 1, or false';
const ADAPTER = "must be 'http', 'fetch' or a function that is an axios adapter";
const COOKIE = 'must be an array of { name, uid }, one for each cookie that holds a session';

const store = v.custom<SessionStore | readonly SessionStore[]>((value) => {
  const stores: unknown[] = Array.isArray(value) ? value : [value];
  return stores.length > 0 && stores.every(isStore);
}, 'must be a session store, or several in an array: objects with get, set and destroy');

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
      v.union([v.boolean(), onlyWith({ sweepMs: milliseconds(1) }, EXPIRY)], EXPIRY),
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
  audience: v.optional(
    v.pipe(
      v.union(
        [
          v.pipe(v.string(), v.minLength(1, AUDIENCE)),
          v.pipe(
            v.array(v.pipe(v.string(AUDIENCE), v.minLength(1, AUDIENCE)), AUDIENCE),
            v.minLength(1, AUDIENCE),
          ),
        ],
        AUDIENCE,
      ),
      frozen(),
    ),
  ),
  lifetimeSeconds: v.optional(
    v.pipe(
      v.number('must be a whole number of seconds'),
      v.integer('must be a whole number of seconds'),
      v.minValue(1, 'must be at least 1'),
      v.maxValue(120, 'must be at most 120: Back-Channel Logout 1.0 allows two minutes'),
    ),
    120,
  ),
  claims: v.optional(functionOption<LogoutClaims>()),
  concurrency: v.optional(whole(1, 1000), 8),
  giveUpAfterMs: v.optional(milliseconds(1), DAY_MS),
  storageTimeoutMs: v.optional(milliseconds(1), 250),
  historyRetentionMs: v.optional(milliseconds(0), 7 * DAY_MS),
};

const erasure = {
  beforeErase: v.optional(functionOption<BeforeErase>()),
  concurrency: v.optional(whole(1, 100), 4),
  overdueAfterMs: v.optional(v.pipe(v.array(long(1), 'must be an array of milliseconds'), frozen()), [
    7 * DAY_MS,
    21 * DAY_MS,
  ]),
  giveUpAfterMs: v.optional(long(1), 28 * DAY_MS),
  receiptRetentionMs: v.optional(long(0), 3 * 365 * DAY_MS),
};

const http = {
  timeoutMs: v.optional(milliseconds(1), 10_000),
  totalTimeoutMs: v.optional(milliseconds(1), 30_000),
  maxAttempts: v.optional(whole(1, 20), 4),
  rateLimit: v.optional(
    v.pipe(
      v.union(
        [v.literal(false), onlyWith({ requests: whole(1, MAX_MS), perMs: milliseconds(1) }, RATE_LIMIT)],
        RATE_LIMIT,
      ),
      frozen(),
    ),
    { requests: 100, perMs: 60_000 },
  ),
  allowInsecureHttp: v.optional(yesOrNo, false),
  adapter: v.optional(v.union([v.picklist(['http', 'fetch']), functionOption<AxiosAdapter>()], ADAPTER)),
};

const users = { listAuth: v.optional(oneOf('bearer', 'apiKey'), 'bearer') };

export const optionGroups = { session, logout, erasure, http, users };

/**
 * What each option must be, and its default. What it is for stands in the types of the options, and the hints of what is
 * refused in options/option-problem.ts.
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
  storageKey: v.optional(
    v.pipe(
      v.union(
        [storageKey, v.pipe(v.array(storageKey), v.minLength(1, 'must have at least one key'))],
        STORAGE_KEYS,
      ),
      frozen(),
    ),
  ),
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

function isStore(value: unknown): boolean {
  const methods = value as Record<string, unknown> | null | undefined;
  return ['get', 'set', 'destroy'].every((method) => typeof methods?.[method] === 'function');
}

const MAX_SHOWN = 12;

/** What the schema found, without a key that was given: a key may also stand in the place of another value or of a name. */
export function schemaProblems(
  issues: readonly BaseIssue<unknown>[],
  { apiKey, secretKey, storageKey }: Readonly<Record<string, unknown>>,
): OptionProblem[] {
  const keys: readonly unknown[] = [apiKey, secretKey, storageKey].flat();
  return issues.map((issue) => {
    const path = getDotPath(issue) ?? 'options';
    if (issue.type === 'never') return unknownOption(path, keys);
    return optionProblem(path, `${issue.message} (found ${found(issue.input, keys.includes(issue.input))})`);
  });
}

function unknownOption(path: string, keys: readonly unknown[]): OptionProblem {
  const isKey = keys.some((key) => typeof key === 'string' && key !== '' && path.includes(key));
  const option = isKey ? '(a key as a name)' : path;
  if (option !== 'name' && option !== 'isGlobal') {
    return optionProblem(option, 'is no such option', isKey ? undefined : knownOptions(option));
  }
  const hint = 'put it beside useFactory, useClass or useExisting';
  return optionProblem(option, 'is not for the factory to give', hint);
}

/** The options that stand where the unknown one stands: next to it in its group, or at the top. */
function knownOptions(unknown: string): string | undefined {
  const [group = '', ...rest] = unknown.split('.').slice(0, -1);
  if (rest.length > 0) return undefined;
  const groups: Readonly<Record<string, object>> = { '': optionEntries, ...optionGroups };
  const known = Object.keys(groups[group] ?? {});
  return known.length > 0 ? `there are ${known.join(', ')}` : undefined;
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
