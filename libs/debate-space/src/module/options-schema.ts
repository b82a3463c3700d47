import type { AxiosAdapter } from 'axios';
import { z } from 'zod';
import type { LogoutClaims } from '../logout/logout-options.js';
import type { SessionCookie, SessionStore, SessionUid } from '../session-end/session-options.js';
import type { BeforeErase } from '../erasure/erasure.js';
import { defaultSessionUid } from '../session-end/default-session-uid.js';
import { memoryStorage } from '../storage/memory-storage.js';
import type { StorageEngine } from '../storage/storage.js';

/** The environment variable that stands in for `authUrl`. */
export const AUTH_URL_VARIABLE = 'DEBATE_SPACE_AUTH_URL';

const STORAGE_KEYS = 'must be a string, or strings in an array';
const AUDIENCE = 'must be a string, or strings in an array, and none empty';

const oneOf = <T extends string>(...values: readonly [T, ...T[]]) => {
  const named = values.map((value) => `'${value}'`).join(', ');
  return z.enum(values, `must be ${named.replace(/, ([^,]*)$/, ' or $1')}`);
};
const functionOption = <F>() => z.custom<F>((value) => typeof value === 'function', 'must be a function');
// Longer timers fire immediately.
const MAX_MS = 2 ** 31 - 1;
const whole = (least: number, most: number, of = '') => {
  const message = `must be a whole number${of} from ${least} to ${most}`;
  return z.int(message).min(least, message).max(most, message);
};
const milliseconds = (least: number) => whole(least, MAX_MS, ' of milliseconds');
const DAY_MS = 24 * 60 * 60 * 1000;
/** For what is no timer but a difference of moments. */
const long = (least: number) => whole(least, 1000 * 365 * DAY_MS, ' of milliseconds');
const EXPIRY = 'must be true, false or { sweepMs }, a whole number of milliseconds';
const ADAPTER = "must be 'http', 'fetch' or a function that is an axios adapter";
const COOKIE = 'must be an array of { name, uid }, one for each cookie that holds a session';
const group = <S extends z.core.$ZodLooseShape>(shape: S) =>
  z.strictObject(shape, 'must be an object').readonly();
/** Nothing is trimmed or replaced: what cannot be sent as it stands is refused. */
const text = z
  .string('must be a string')
  .refine((value) => value.trim() === value && value !== '', {
    error: 'must not be empty or have blanks around it',
    abort: true,
  })
  .refine(
    (value) => value.isWellFormed() && !/\p{Cc}/u.test(value),
    'must not have control characters or lone surrogates',
  );

const store = z.custom<SessionStore | readonly SessionStore[]>((value) => {
  const stores: unknown[] = Array.isArray(value) ? value : [value];
  return stores.length > 0 && stores.every(isStore);
}, 'must be a session store, or several in an array: objects with get, set and destroy');

const storage = z.custom<StorageEngine>(
  (value) => typeof (value as { open?: unknown } | null | undefined)?.open === 'function',
  'must be a storage such as memoryStorage()',
);

const storageKey = text
  .min(16, 'must have at least 16 characters')
  .refine((key) => !key.includes(','), 'must not have commas: several keys are strings in an array');

/**
 * What each option must be, and its default. What it is for stands in the types of the options, and the hints of what is
 * refused in options/option-problem.ts.
 */
export const optionsSchema = z.strictObject({
  apiKey: text,
  secretKey: z.union([text, functionOption<() => string | Promise<string>>()], {
    error: ({ errors }) => errors[0]?.[0]?.message,
  }),
  applicationName: text.refine(
    (name) => name !== '.' && name !== '..',
    'must not be a dot segment: it is a part of a path',
  ),
  authUrl: z.string({
    error: ({ input }) =>
      input === undefined
        ? `must be set, here or as the environment's ${AUTH_URL_VARIABLE}`
        : 'must be a URL',
  }),
  baseUrl: z.string('must be a URL').optional(),
  secretKeyEncoding: oneOf('utf8', 'base64').default('utf8'),
  storageKey: z
    .union([storageKey, z.array(storageKey).min(1, 'must have at least one key').readonly()], {
      error: ({ input, errors }) => {
        const [first] = errors[Array.isArray(input) ? 1 : 0] ?? [];
        return first?.code === 'invalid_type' ? STORAGE_KEYS : first?.message;
      },
    })
    .optional(),
  session: group({
    uid: functionOption<SessionUid>().default(() => defaultSessionUid),
    store: store.optional(),
    cookies: z
      .array(z.strictObject({ name: text, uid: functionOption<SessionCookie['uid']>() }, COOKIE), COOKIE)
      .readonly()
      .default([]),
    policy: oneOf('any', 'last').default('any'),
    expiry: z
      .union([z.boolean(), z.strictObject({ sweepMs: milliseconds(1) })], EXPIRY)
      .default(false)
      .transform((expiry) => (expiry === true ? { sweepMs: 60_000 } : expiry)),
    graceMs: milliseconds(0).default(500),
  }).prefault({}),
  logout: group({
    mode: oneOf('direct', 'oidc').default('direct'),
    algorithm: oneOf('HS256', 'HS384', 'HS512').default('HS256'),
    issuer: text.optional(),
    audience: z
      .union(
        [z.string().min(1, AUDIENCE), z.array(z.string().min(1, AUDIENCE), AUDIENCE).min(1, AUDIENCE)],
        AUDIENCE,
      )
      .readonly()
      .optional(),
    lifetimeSeconds: z
      .int('must be a whole number of seconds')
      .min(1, 'must be at least 1')
      .max(120, 'must be at most 120: Back-Channel Logout 1.0 allows two minutes')
      .default(120),
    claims: functionOption<LogoutClaims>().optional(),
    concurrency: whole(1, 1000).default(8),
    giveUpAfterMs: milliseconds(1).default(DAY_MS),
    onRelogin: oneOf('deliver', 'drop').default('deliver'),
    storageTimeoutMs: milliseconds(1).default(250),
    historyRetentionMs: milliseconds(0).default(7 * DAY_MS),
  }).prefault({}),
  storage: storage.default(() => memoryStorage()),
  worker: z.boolean('must be true or false').default(true),
  erasure: group({
    beforeErase: functionOption<BeforeErase>().optional(),
    concurrency: whole(1, 100).default(4),
    overdueAfterMs: z
      .array(long(1), 'must be an array of milliseconds')
      .default(() => [7 * DAY_MS, 21 * DAY_MS])
      .readonly(),
    giveUpAfterMs: long(1).default(28 * DAY_MS),
    receiptRetentionMs: long(0).default(3 * 365 * DAY_MS),
  }).prefault({}),
  http: group({
    timeoutMs: milliseconds(1).default(10_000),
    totalTimeoutMs: milliseconds(1).default(30_000),
    maxAttempts: whole(1, 20).default(4),
    rateLimit: z
      .union(
        [z.literal(false), z.strictObject({ requests: whole(1, MAX_MS), perMs: milliseconds(1) })],
        'must be { requests, perMs }, both whole numbers from 1, or false',
      )
      .default({ requests: 100, perMs: 60_000 })
      .readonly(),
    allowInsecureHttp: z.boolean('must be true or false').default(false),
    adapter: z.union([z.enum(['http', 'fetch']), functionOption<AxiosAdapter>()], ADAPTER).optional(),
  }).prefault({}),
  users: group({
    listAuth: oneOf('bearer', 'apiKey').default('bearer'),
  }).prefault({}),
});

export type CheckedOptions = z.output<typeof optionsSchema>;

function isStore(value: unknown): boolean {
  const methods = value as Record<string, unknown> | null | undefined;
  return ['get', 'set', 'destroy'].every((method) => typeof methods?.[method] === 'function');
}
