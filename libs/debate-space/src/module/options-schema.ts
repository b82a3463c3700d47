import type { AxiosAdapter } from 'axios';
import { z } from 'zod';
import type { DebateSpaceModuleOptions } from './module-options.js';
import type { LogoutClaims } from '../logout/logout-options.js';
import type { SessionCookie } from '../session-end/session-options.js';
import type { BeforeErase } from '../erasure/erasure.js';
import { defaultSessionUid } from '../session-end/default-session-uid.js';
import { memoryStorage } from '../storage/memory-storage.js';
import type { StorageEngine } from '../storage/storage.js';

/** The environment variable that stands in for `authUrl`. */
export const AUTH_URL_VARIABLE = 'DEBATE_SPACE_AUTH_URL';

const PANEL = 'copy it from the administration panel, Configuration > General';

const STORAGE_KEY = 'make one with: openssl rand -base64 32';
const STORAGE_KEYS = `must be a string, or strings in an array; ${STORAGE_KEY}`;

const AUDIENCE = 'must be a string, or strings in an array, and none empty';

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
const ADAPTER = "must be 'http', 'fetch' or a function that is an axios adapter; leave it out for ours";
const COOKIE = 'must be an array of { name, uid }, one for each cookie that holds a session';
const GROUP = 'must be an object; see docs/options.md';
/** Nothing is trimmed or replaced: what cannot be sent as it stands is refused. */
const text = (hint: string) =>
  z
    .string(`must be a string; ${hint}`)
    .refine((value) => value.trim() === value && value !== '', {
      error: `must not be empty or have blanks around it; ${hint}`,
      abort: true,
    })
    .refine(
      (value) => value.isWellFormed() && !/\p{Cc}/u.test(value),
      `must not have control characters or lone surrogates; ${hint}`,
    );

const store = z.custom<NonNullable<DebateSpaceModuleOptions['session']>['store']>((value) => {
  const stores: unknown[] = Array.isArray(value) ? value : [value];
  return stores.length > 0 && stores.every(isStore);
}, 'must be a session store, or several in an array: objects with get, set and destroy');

const storage = z.custom<StorageEngine>(
  (value) => typeof (value as { open?: unknown } | null | undefined)?.open === 'function',
  'must be a storage such as memoryStorage()',
);

const storageKey = text(STORAGE_KEY)
  .min(16, `must have at least 16 characters; ${STORAGE_KEY}`)
  .refine((key) => !key.includes(','), 'must not have commas; several keys are strings in an array');

/** What each option must be, its default, and the hint when it is not so. */
export const optionsSchema = z.strictObject({
  apiKey: text(PANEL),
  secretKey: z.union(
    [text(`${PANEL}, or give a function that knows it`), functionOption<() => string | Promise<string>>()],
    {
      error: ({ errors }) => errors[0]?.[0]?.message,
    },
  ),
  applicationName: text(
    'it is the last part of the logout route, {auth_url}/auth/logout/{application_name}',
  ).refine((name) => name !== '.' && name !== '..', 'must not be a dot segment: it is a part of a path'),
  authUrl: z.string(
    `must be a URL; set it, or the environment's ${AUTH_URL_VARIABLE}, to the host root of the service`,
  ),
  baseUrl: z.string('must be a URL').optional(),
  secretKeyEncoding: z.enum(['utf8', 'base64'], "must be 'utf8' or 'base64'").default('utf8'),
  storageKey: z
    .union([storageKey, z.array(storageKey).min(1, `must have at least one key; ${STORAGE_KEY}`)], {
      error: ({ input, errors }) => {
        const [first] = errors[Array.isArray(input) ? 1 : 0] ?? [];
        return first?.code === 'invalid_type' ? STORAGE_KEYS : first?.message;
      },
    })
    .optional(),
  session: z
    .strictObject(
      {
        uid: functionOption<typeof defaultSessionUid>().default(() => defaultSessionUid),
        store: store.optional(),
        cookies: z
          .array(
            z.strictObject(
              { name: text('it is the name of a cookie'), uid: functionOption<SessionCookie['uid']>() },
              COOKIE,
            ),
            COOKIE,
          )
          .default([]),
        policy: z.enum(['any', 'last'], "must be 'any' or 'last'").default('any'),
        expiry: z
          .union([z.boolean(), z.strictObject({ sweepMs: milliseconds(1) })], EXPIRY)
          .default(false)
          .transform((expiry) => (expiry === true ? { sweepMs: 60_000 } : expiry)),
        graceMs: milliseconds(0).default(500),
      },
      GROUP,
    )
    .prefault({}),
  logout: z
    .strictObject(
      {
        mode: z.enum(['direct', 'oidc'], "must be 'direct' or 'oidc'").default('direct'),
        algorithm: z
          .enum(['HS256', 'HS384', 'HS512'], "must be 'HS256', 'HS384' or 'HS512'")
          .default('HS256'),
        issuer: text('leave it out for the application name').optional(),
        audience: z
          .union(
            [z.string().min(1, AUDIENCE), z.array(z.string().min(1, AUDIENCE), AUDIENCE).min(1, AUDIENCE)],
            AUDIENCE,
          )
          .optional(),
        lifetimeSeconds: z
          .int('must be a whole number of seconds')
          .min(1, 'must be at least 1')
          .max(120, 'must be at most 120: Back-Channel Logout 1.0 allows two minutes')
          .default(120),
        claims: functionOption<LogoutClaims>().optional(),
        concurrency: whole(1, 1000).default(8),
        giveUpAfterMs: milliseconds(1).default(24 * 60 * 60 * 1000),
        onRelogin: z.enum(['deliver', 'drop'], "must be 'deliver' or 'drop'").default('deliver'),
        storageTimeoutMs: milliseconds(1).default(250),
        historyRetentionMs: milliseconds(0).default(7 * 24 * 60 * 60 * 1000),
      },
      GROUP,
    )
    .prefault({}),
  storage: storage.default(() => memoryStorage()),
  worker: z.boolean('must be true or false').default(true),
  erasure: z
    .strictObject(
      {
        beforeErase: functionOption<BeforeErase>().optional(),
        concurrency: whole(1, 100).default(4),
        overdueAfterMs: z
          .array(long(1), 'must be an array of milliseconds')
          .default(() => [7 * DAY_MS, 21 * DAY_MS]),
        giveUpAfterMs: long(1).default(28 * DAY_MS),
        receiptRetentionMs: long(0).default(3 * 365 * DAY_MS),
      },
      GROUP,
    )
    .prefault({}),
  http: z
    .strictObject(
      {
        timeoutMs: milliseconds(1).default(10_000),
        totalTimeoutMs: milliseconds(1).default(30_000),
        maxAttempts: whole(1, 20).default(4),
        rateLimit: z
          .union(
            [z.literal(false), z.strictObject({ requests: whole(1, MAX_MS), perMs: milliseconds(1) })],
            'must be { requests, perMs }, both whole numbers from 1, or false',
          )
          .default({ requests: 100, perMs: 60_000 }),
        allowInsecureHttp: z.boolean('must be true or false').default(false),
        adapter: z.union([z.enum(['http', 'fetch']), functionOption<AxiosAdapter>()], ADAPTER).optional(),
      },
      GROUP,
    )
    .prefault({}),
  users: z
    .strictObject(
      {
        listAuth: z.enum(['bearer', 'apiKey'], "must be 'bearer' or 'apiKey'").default('bearer'),
      },
      GROUP,
    )
    .prefault({}),
});

export type CheckedOptions = z.output<typeof optionsSchema>;

function isStore(value: unknown): boolean {
  const methods = value as Record<string, unknown> | null | undefined;
  return ['get', 'set', 'destroy'].every((method) => typeof methods?.[method] === 'function');
}
