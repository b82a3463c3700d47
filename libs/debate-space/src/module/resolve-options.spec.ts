import { describe, expect, it } from '@jest/globals';
import { inspect } from 'node:util';
import type { InferInput } from 'valibot';
import { DebateSpaceOptionsError } from '../errors.js';
import { memoryStorage } from '../storage/memory-storage.js';
import type { DebateSpaceModuleOptions } from './module-options.js';
import type { optionsSchema } from './resolve-options.js';
import { resolveOptions } from './resolve-options.js';

const required = {
  apiKey: 'the-api-key-of-the-panel',
  secretKey: 'the-secret-key-of-the-panel',
  applicationName: 'demo',
  authUrl: 'https://debate.example',
};
const storageKeys = ['a key for what is kept', 'the key before it'];
const store = { get: () => 0, set: () => 0, destroy: () => 0 };

/** The problems with these options added to the required ones, as the lines of the error. */
function problems(options: Record<string, unknown>): readonly string[] {
  try {
    resolveOptions({ ...required, ...options }, {});
  } catch (error) {
    if (error instanceof DebateSpaceOptionsError)
      return error.problems.map(({ option, problem, hint }) => `${option} ${problem}; hint: ${hint}`);
    throw error;
  }
  return [];
}

const PANEL = 'hint: copy it from the administration panel, Configuration > General';
const OPENSSL = 'hint: make one with: openssl rand -base64 32';
const INSECURE =
  'has the scheme http:, and only http.allowInsecureHttp permits it; hint: write it with https:';

const REFUSED: readonly [Record<string, unknown>, string][] = [
  [{ apiKey: undefined }, `apiKey must be a string (found nothing); ${PANEL}`],
  [{ apiKey: '' }, 'apiKey must not be empty or have blanks around it'],
  [{ apiKey: ' key ' }, 'apiKey must not be empty or have blanks around it'],
  [{ secretKey: undefined }, `secretKey must be a string (found nothing); ${PANEL}`],
  [{ secretKey: 42 }, 'secretKey must be a string (found a value of type number)'],
  [{ secretKey: 'key\n' }, 'secretKey must not be empty or have blanks around it'],
  [{ secretKey: '\ud800' }, 'secretKey must not have control characters or lone surrogates'],
  [{ secretKey: ' ', secretKeyEncoding: 'base64' }, 'secretKey must not be empty'],
  [
    { secretKey: 'planted!', secretKeyEncoding: 'base64' },
    `secretKey is not Base64, and secretKeyEncoding is 'base64'; ${PANEL}`,
  ],
  [{ secretKeyEncoding: 'hex' }, "secretKeyEncoding must be 'utf8' or 'base64'"],
  [{ applicationName: undefined }, 'hint: it is the last part of the logout route'],
  [{ applicationName: 'app/../../oauth' }, 'applicationName must not have a dot segment'],
  [{ applicationName: 'a\0b' }, 'applicationName must not have control characters or lone surrogates'],
  [{ authUrl: 7 }, 'authUrl must be a URL'],
  [{ authUrl: '' }, 'authUrl is not a URL; hint: write it with its scheme'],
  [{ authUrl: 'ftp://debate.example' }, 'authUrl must have the scheme https:'],
  [{ authUrl: 'http://debate.example' }, `authUrl ${INSECURE}`],
  [{ authUrl: 'http://127.example.org' }, `authUrl ${INSECURE}`],
  [{ authUrl: 'https://debate.example/?a=b' }, 'authUrl must end with its path'],
  [{ authUrl: 'https://debate.example/#a' }, 'authUrl must end with its path'],
  [{ authUrl: 'https://me:pass@debate.example' }, 'authUrl must not hold a user name or a password'],
  [{ authUrl: 'https://debate.example/api/v1' }, 'authUrl ends like the address of the API'],
  [{ baseUrl: 'debate' }, 'baseUrl is not a URL'],
  [{ baseUrl: null }, 'baseUrl must be a URL (found null)'],
  [{ storageKey: 'fifteen-letters' }, `must have at least 16 characters (found a string of 15 characters)`],
  [{ storageKey: '' }, `storageKey must not be empty or have blanks around it`],
  [{ storageKey: 16 }, `storageKey must be a string, or strings in an array`],
  [{ storageKey: [] }, `at least one (found an array); ${OPENSSL}`],
  [{ storageKey: storageKeys.join() }, 'storageKey must not have commas: several keys are strings in'],
  [{ storageKey: [storageKeys[0], ''] }, `storageKey.1 must not be empty or have blanks around it`],
  [{ session: null }, 'session must be an object (found null); hint: see docs/options.md'],
  [{ session: { uid: 'user.id' } }, 'session.uid must be a function'],
  [{ session: { store: {} } }, 'session.store must be a session store, or several in an array'],
  [{ session: { store: [] } }, 'session.store must be a session store'],
  [{ session: { cookies: {} } }, 'session.cookies must be an array of { name, uid }'],
  [{ session: { cookies: [{ name: '', uid: () => '' }] } }, 'session.cookies.0.name must not be empty'],
  [
    { session: { cookies: [{ name: 'session' }] } },
    'session.cookies.0.uid must be an array of { name, uid }',
  ],
  [
    { session: { cookies: [{ name: 'a', uid: () => 'u', key: 1 }] } },
    'session.cookies.0.key is not an option',
  ],
  [{ session: { expiry: 60 } }, 'session.expiry must be true, false or { sweepMs }'],
  [{ session: { expiry: true } }, 'session.expiry needs session.store'],
  [{ session: { graceMs: -1 } }, 'graceMs must be a whole number of milliseconds from 0 to 2147483647'],
  [{ session: { graceMs: 5 }, logout: { mode: 'oidc' } }, "session has no effect with logout.mode 'oidc'"],
  [{ logout: { mode: 'off' } }, "logout.mode must be 'direct' or 'oidc'"],
  [{ logout: { algorithm: 'none' } }, "logout.algorithm must be 'HS256' or 'HS384' or 'HS512'"],
  [{ logout: { issuer: '' } }, 'logout.issuer must not be empty or have blanks around it'],
  [{ logout: { audience: [] } }, 'logout.audience must be a string, or strings in an array'],
  [{ logout: { audience: ['a', ''] } }, 'logout.audience.1 must not be empty'],
  [{ logout: { lifetimeSeconds: 121 } }, 'lifetimeSeconds must be a whole number of seconds from 1 to 120'],
  [{ logout: { claims: {} } }, 'logout.claims must be a function'],
  [{ logout: { concurrency: 0 } }, 'logout.concurrency must be a whole number from 1 to 1000'],
  [{ storage: 'memory' }, 'storage must be a storage such as memoryStorage()'],
  [{ worker: 'yes' }, 'worker must be true or false'],
  [{ erasure: { overdueAfterMs: 1 } }, 'erasure.overdueAfterMs must be an array of milliseconds'],
  [{ http: { timeoutMs: 2 ** 31 } }, 'http.timeoutMs must be a whole number of milliseconds'],
  [
    { http: { rateLimit: { requests: 0, perMs: 1 } } },
    'http.rateLimit must be { requests, perMs }, both whole',
  ],
  [{ http: { adapter: 'undici' } }, "http.adapter must be 'http', 'fetch' or a function"],
  [{ users: { listAuth: 'basic' } }, "users.listAuth must be 'bearer' or 'apiKey'"],
  [{ apikey: 'x' }, 'apikey is not an option; the options are apiKey, secretKey, applicationName, authUrl'],
  [
    { logout: { audiance: 'x' } },
    'logout.audiance is not an option; the options are mode, algorithm, issuer',
  ],
  [{ name: 'youth' }, 'name is not an option'],
];

describe('the options', () => {
  it('have their defaults', async () => {
    const { apiKey, secretKey, ...rest } = resolveOptions(required, {});
    expect([apiKey.reveal(), (await secretKey.current()).reveal()]).toEqual([
      required.apiKey,
      required.secretKey,
    ]);
    const { algorithm, lifetimeSeconds, concurrency, giveUpAfterMs } = rest.logout;
    expect([algorithm, lifetimeSeconds, concurrency, giveUpAfterMs]).toEqual(['HS256', 120, 8, 86_400_000]);
    expect(rest).toMatchObject({
      applicationName: 'demo',
      baseUrl: 'https://debate.example/api/v1',
      secretKeyEncoding: 'utf8',
      storageKey: [],
      session: { graceMs: 500, expiry: false },
      http: { timeoutMs: 10_000, totalTimeoutMs: 30_000, maxAttempts: 4, allowInsecureHttp: false },
      users: { listAuth: 'bearer' },
    });
  });

  it('have the type that their schema takes, and no option is known to one of them only', () => {
    type Groups = 'session' | 'logout' | 'erasure' | 'http' | 'users';
    /** Of any depth: an array that the schema takes may be one that cannot be changed. */
    type Frozen<T> = T extends (...args: never) => unknown ? T : { readonly [K in keyof T]: Frozen<T[K]> };
    type Input = Frozen<InferInput<typeof optionsSchema>>;
    type Given = Frozen<DebateSpaceModuleOptions & { authUrl: string }>;
    type Names<T> = {
      [K in keyof T & string]-?: K extends Groups ? `${K}.${keyof NonNullable<T[K]> & string}` : K;
    }[keyof T & string];
    // `npm run typecheck` fails otherwise, and names the option.
    const none = <Name extends never>(): Name[] => [];
    const onlyInTypes = none<Exclude<Names<Given>, Names<Input>>>();
    const onlyInSchema = none<Exclude<Names<Input>, Names<Given>>>();
    const isSame: [Given, Input] extends [Input, Given] ? true : never = true;
    expect([onlyInTypes, onlyInSchema, isSame]).toEqual([[], [], true]);
  });

  it('show no key', () => {
    const options = resolveOptions({ ...required, storageKey: storageKeys }, {});
    expect(options.storageKey.map((key) => key.reveal())).toEqual(storageKeys);
    const shown = inspect(options, { depth: Infinity, showHidden: true, getters: true });
    for (const key of [required.apiKey, required.secretKey, ...storageKeys])
      expect(shown + JSON.stringify(options)).not.toContain(key);
  });

  it('are frozen, and leave the host’s own alone', () => {
    const audience = ['a', 'b'];
    const given = { ...required, logout: { audience }, http: { rateLimit: { requests: 1, perMs: 1 } } };
    const options = resolveOptions(given, {});
    const { session, logout, http, users, storageKey } = options;
    for (const part of [options, session, logout, logout.audience, http, http.rateLimit, users, storageKey])
      expect(Object.isFrozen(part)).toBe(true);
    expect([given, given.logout, audience, given.http].some(Object.isFrozen)).toBe(false);
  });

  it.each([
    ['https://debate.example///', 'https://debate.example'],
    ['https://debate.example/space/', 'https://debate.example/space'],
    [' https://debate.example\n', 'https://debate.example'],
    ['HTTPS://Debate.Example:443', 'https://debate.example'],
    ['https://debate.example/?#', 'https://debate.example'],
    ['http://localhost:4010', 'http://localhost:4010'],
    ['http://app.localhost:4010', 'http://app.localhost:4010'],
    ['http://127.1.2.3', 'http://127.1.2.3'],
    ['http://[::1]:4010', 'http://[::1]:4010'],
  ])('take authUrl %j as %s', (authUrl, expected) => {
    expect(resolveOptions({ ...required, authUrl }, {})).toMatchObject({
      authUrl: expected,
      baseUrl: `${expected}/api/v1`,
    });
    expect(resolveOptions({ ...required, baseUrl: authUrl }, {}).baseUrl).toBe(expected);
  });

  it('take authUrl from the environment, and rather from the options', () => {
    const environment = { DEBATE_SPACE_AUTH_URL: 'https://env.example/' };
    expect(resolveOptions({ ...required, authUrl: undefined }, environment)).toMatchObject({
      authUrl: 'https://env.example',
    });
    expect(resolveOptions(required, environment).authUrl).toBe('https://debate.example');
    expect(problems({ authUrl: undefined })).toEqual([expect.stringContaining('DEBATE_SPACE_AUTH_URL')]);
  });

  it.each<[string, Record<string, unknown>]>([
    ['several stores', { session: { store: [store, store] } }],
    ['a session cookie', { session: { cookies: [{ name: 'session', uid: () => 'alice' }] } }],
    ['expiry, with a store', { session: { store, expiry: true } }],
    ['expiry as often as told', { session: { store, expiry: { sweepMs: 1000 } } }],
    ['a storage', { storage: memoryStorage() }],
    ['no rate limit', { http: { rateLimit: false } }],
    ['plain HTTP that is permitted', { authUrl: 'http://a.internal', http: { allowInsecureHttp: true } }],
    ['groups that are undefined', { session: undefined, logout: undefined, http: undefined }],
    ['an application name of any kind', { applicationName: 'Bürger / 1' }],
    ['OpenID Connect mode', { session: {}, logout: { mode: 'oidc', issuer: 'demo', concurrency: 2 } }],
  ])('may have %s', (_what, options) => {
    expect(problems(options)).toEqual([]);
  });

  it.each(REFUSED)('are refused as %j', (options, problem) => {
    expect(problems(options)).toEqual([expect.stringContaining(problem)]);
  });

  it('are read from a class with getters as well', () => {
    class Configuration {
      get apiKey() {
        return required.apiKey;
      }
      readonly secretKey = required.secretKey;
      readonly applicationName = 'demo';
      readonly authUrl = required.authUrl;
    }
    expect(resolveOptions(new Configuration(), {}).apiKey.reveal()).toBe(required.apiKey);
  });

  it('are refused with all problems together', () => {
    const found = problems({
      ...{ apiKey: undefined, secretKey: ' ' },
      ...{ authUrl: 'http://debate.example', baseUrl: 'nowhere', http: { maxAttempts: -1 } },
      ...{ logout: { claims: 1, algorithm: 'x' }, session: { expiry: true, graceMs: '1' }, more: 1 },
    });
    expect(found.map((line) => line.split(' ')[0]).toSorted()).toEqual([
      ...['apiKey', 'authUrl', 'baseUrl', 'http.maxAttempts', 'logout.algorithm', 'logout.claims', 'more'],
      ...['secretKey', 'session.expiry', 'session.graceMs'],
    ]);
  });

  it.each([undefined, null, 'options', 42, []])('name what is required when they are %j', (given) => {
    const attempt = () => resolveOptions(given, {});
    for (const name of ['apiKey', 'secretKey', 'applicationName', 'authUrl'])
      expect(attempt).toThrow(`- ${name} `);
  });

  const planted = 'pLanted-Secret-3f9c1e';
  it.each<[string, Record<string, unknown>]>([
    ['with blanks', { secretKey: ` ${planted}` }],
    ['that is not Base64', { secretKey: `${planted}!`, secretKeyEncoding: 'base64' }],
    ['in an array', { secretKey: [planted] }],
    ['in place of an application name', { applicationName: { name: planted } }],
    ['in place of an algorithm', { logout: { algorithm: 'pLanted-' } }],
    ['in place of a number', { http: { timeoutMs: planted } }],
    ['in place of a store', { session: { store: planted } }],
    ['that is too short to store with', { storageKey: [storageKeys[0], 'pLanted-'] }],
    ['to store with, with a comma', { storageKey: `${planted},${planted}` }],
    ['as authUrl', { authUrl: planted }],
    ['as a scheme', { authUrl: `${planted}:x@debate.example` }],
    ['as a password', { authUrl: `https://me:${planted}@debate.example` }],
    ['in a query', { baseUrl: `https://debate.example/?api_key=${planted}` }],
    ['in an insecure address', { authUrl: `http://${planted}.example/${planted}` }],
  ])('never show a secret %s', (_what, options) => {
    const found = problems(options).join('\n');
    expect(found).not.toBe('');
    expect(found.toLowerCase()).not.toContain('planted-');
  });
});
