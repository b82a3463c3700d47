import { describe, expect, it } from '@jest/globals';
import { inspect } from 'node:util';
import { memoryStorage } from '../storage/memory-storage.js';
import { DebateSpaceOptionsError } from '../errors.js';
import { isObject } from '../api/session-end.interceptor.js';
import { resolveOptions } from './resolve-options.js';

const required = {
  apiKey: 'the-api-key-of-the-panel',
  secretKey: 'the-secret-key-of-the-panel',
  applicationName: 'demo',
  authUrl: 'https://debate.example',
};

const storageKeys = ['a key for what is kept', 'the key before it'];

/** The problems with these options added to the required ones, as the lines of the error. */
function problems(options: Record<string, unknown>, environment: NodeJS.ProcessEnv = {}): readonly string[] {
  try {
    resolveOptions({ ...required, ...options }, environment);
  } catch (error) {
    if (error instanceof DebateSpaceOptionsError)
      return error.problems.map(({ option, problem, hint }) => `${option} ${problem}; hint: ${hint}`);
    throw error;
  }
  return [];
}

const REFUSED: readonly [Record<string, unknown>, string][] = [
  [
    { apiKey: undefined },
    'apiKey must be a string (found nothing); hint: copy it from the administration panel, Configuration > General',
  ],
  [{ apiKey: '' }, 'apiKey must not be empty'],
  [{ apiKey: ' key ' }, 'apiKey must not be empty or have blanks around it'],
  [
    { secretKey: undefined },
    'secretKey must be a string (found nothing); hint: copy it from the administration panel',
  ],
  [{ secretKey: 42 }, 'secretKey must be a string'],
  [{ secretKey: 'key\n' }, 'secretKey must not be empty or have blanks around it'],
  [
    { applicationName: undefined },
    'applicationName must be a string (found nothing); hint: it is the last part of the logout route',
  ],
  [{ applicationName: '  ' }, 'applicationName must not be empty'],
  [{ applicationName: '..' }, 'applicationName must not have a dot segment'],
  [{ applicationName: 'app/../../oauth' }, 'applicationName must not have a dot segment'],
  [{ applicationName: 'app\\.\\x' }, 'applicationName must not have a dot segment'],
  [{ applicationName: '\ud83d' }, 'lone surrogates'],
  [{ authUrl: 7 }, 'authUrl must be a URL (found 7); hint: it is the host root of the service'],
  [{ authUrl: '' }, 'authUrl is not a URL; hint: write it with its scheme'],
  [{ authUrl: 'debate.example' }, 'authUrl is not a URL; hint: write it with its scheme'],
  [{ authUrl: 'ftp://debate.example' }, 'authUrl must have the scheme https:'],
  [
    { authUrl: 'http://debate.example' },
    'authUrl has the scheme http:, and only http.allowInsecureHttp permits it; hint: write it with https:',
  ],
  [
    { authUrl: 'http://127.example.org' },
    'authUrl has the scheme http:, and only http.allowInsecureHttp permits it; hint: write it with https:',
  ],
  [
    { authUrl: 'http://0.0.0.0' },
    'authUrl has the scheme http:, and only http.allowInsecureHttp permits it; hint: write it with https:',
  ],
  [{ authUrl: 'https://debate.example/?a=b' }, 'authUrl must end with its path'],
  [{ authUrl: 'https://debate.example/#a' }, 'authUrl must end with its path'],
  [{ authUrl: 'https://me:pass@debate.example' }, 'authUrl must not hold a user name or a password'],
  [{ baseUrl: 'debate' }, 'baseUrl is not a URL'],
  [{ baseUrl: null }, 'baseUrl must be a URL'],
  [{ secretKeyEncoding: 'hex' }, "secretKeyEncoding must be 'utf8' or 'base64' (found 'hex')"],
  [
    { secretKeyEncoding: 'base64', secretKey: 'no Base64' },
    "secretKey is not Base64, and secretKeyEncoding is 'base64'; hint: copy it from the administration panel",
  ],
  [
    { storageKey: 'fifteen-letters' },
    'storageKey must have at least 16 characters (found a string of 15 characters); hint: make one with: openssl rand -base64 32',
  ],
  [
    { storageKey: '' },
    'storageKey must not be empty or have blanks around it (found an empty string); hint: make one with: openssl rand -base64 32',
  ],
  [
    { storageKey: 16 },
    'storageKey must be a string, or strings in an array (found a value of type number); hint: make one with: openssl rand -base64 32',
  ],
  [
    { storageKey: `${'x'.repeat(16)},${'y'.repeat(16)}` },
    'storageKey must not have commas: several keys are strings in an array (found a string of 33 characters); hint: make one with: openssl rand -base64 32',
  ],
  [{ storageKey: required.secretKey }, 'storageKey has the value of secretKey'],
  [
    { storageKey: required.apiKey },
    'storageKey has the value of apiKey, which is the client_id of the service and stands in every token',
  ],
  [
    { storageKey: [] },
    'storageKey must have at least one key (found an array); hint: make one with: openssl rand -base64 32',
  ],
  [
    { storageKey: [storageKeys[0], 'fifteen-letters'] },
    'storageKey.1 must have at least 16 characters (found a string of 15 characters); hint: make one with: openssl rand -base64 32',
  ],
  [
    { storageKey: [storageKeys[0], ''] },
    'storageKey.1 must not be empty or have blanks around it (found an empty string); hint: make one with: openssl rand -base64 32',
  ],
  [
    { storageKey: [storageKeys[0], undefined] },
    'storageKey must be a string, or strings in an array (found an array); hint: make one',
  ],
  [{ storageKey: [...storageKeys, required.apiKey] }, 'storageKey.2 has the value of apiKey'],
  [{ storageKey: [...storageKeys, required.secretKey] }, 'storageKey.2 has the value of secretKey'],
  [
    { storageKey: [...storageKeys, storageKeys[0]] },
    'storageKey.2 has the value of storageKey.0; hint: leave out one of them',
  ],
  [{ session: 'none' }, 'session '],
  [{ session: { uid: 'user.id' } }, "session.uid must be a function (found 'user.id')"],
  [{ session: { store: {} } }, 'session.store must be a session store, or several in an array'],
  [{ session: { store: [] } }, 'session.store must be a session store'],
  [{ session: { cookies: { name: 'session' } } }, 'session.cookies must be an array of { name, uid }'],
  [{ session: { cookies: [{ name: '', uid: () => '' }] } }, 'session.cookies.0.name must not be empty'],
  [
    { session: { cookies: [{ name: 'session' }] } },
    'session.cookies.0.uid must be a function (found nothing)',
  ],
  [{ session: { expiry: 60 } }, 'session.expiry must be true, false or { sweepMs }'],
  [{ session: { expiry: true } }, 'session.expiry needs session.store'],
  [{ session: { index: {} } }, 'session.index is no such option'],
  [
    { session: { graceMs: -1 } },
    'session.graceMs must be a whole number of milliseconds from 0 to 2147483647 (found -1)',
  ],
  [{ logout: { mode: 'off' } }, "logout.mode must be 'direct' or 'oidc' (found 'off')"],
  [
    { logout: { algorithm: 'RS256' } },
    "logout.algorithm must be 'HS256', 'HS384' or 'HS512' (found 'RS256')",
  ],
  [{ logout: { algorithm: 'none' } }, "logout.algorithm must be 'HS256', 'HS384' or 'HS512'"],
  [
    { logout: { issuer: '' } },
    'logout.issuer must not be empty or have blanks around it (found an empty string); hint: leave it out for the application name',
  ],
  [{ logout: { audience: [] } }, 'logout.audience must be a string, or strings in an array'],
  [{ logout: { audience: '' } }, 'logout.audience must be a string, or strings in an array'],
  [{ logout: { audience: ['a', ''] } }, 'logout.audience.1 must be a string, or strings in an array'],
  [{ logout: { audience: 7 } }, 'logout.audience must be a string, or strings in an array'],
  [{ logout: { lifetimeSeconds: 0 } }, 'logout.lifetimeSeconds must be at least 1'],
  [
    { logout: { lifetimeSeconds: 121 } },
    'logout.lifetimeSeconds must be at most 120: Back-Channel Logout 1.0',
  ],
  [{ logout: { lifetimeSeconds: 1.5 } }, 'logout.lifetimeSeconds must be a whole number of seconds'],
  [{ logout: { claims: {} } }, 'logout.claims must be a function'],
  [{ logout: { concurrency: 0 } }, 'logout.concurrency must be a whole number from 1 to 1000 (found 0)'],
  [{ logout: { giveUpAfterMs: 0 } }, 'logout.giveUpAfterMs must be a whole number of milliseconds from 1'],
  [{ storage: 'memory' }, "storage must be a storage such as memoryStorage() (found 'memory')"],
  [
    { http: { timeoutMs: '10' } },
    "http.timeoutMs must be a whole number of milliseconds from 1 to 2147483647 (found '10')",
  ],
  [{ http: { timeoutMs: 2 ** 31 } }, 'http.timeoutMs must be a whole number of milliseconds'],
  [{ http: { totalTimeoutMs: Infinity } }, 'http.totalTimeoutMs must be a whole number of milliseconds'],
  [{ http: { maxAttempts: 0 } }, 'http.maxAttempts must be a whole number from 1 to 20 (found 0)'],
  [{ http: { rateLimit: true } }, 'http.rateLimit must be { requests, perMs }'],
  [
    { http: { rateLimit: { requests: 0, perMs: 1 } } },
    'http.rateLimit.requests must be a whole number from 1',
  ],
  [{ http: { rateLimit: { requests: 1, perSecond: 1 } } }, 'http.rateLimit'],
  [{ http: { allowInsecureHttp: 'yes' } }, "http.allowInsecureHttp must be true or false (found 'yes')"],
  [{ users: { listAuth: 'basic' } }, "users.listAuth must be 'bearer' or 'apiKey' (found 'basic')"],
  [{ apikey: 'x' }, 'apikey is no such option; hint: there are apiKey, secretKey, applicationName, authUrl'],
  [
    { logout: { audiance: 'x' } },
    'logout.audiance is no such option; hint: there are mode, algorithm, issuer, audience',
  ],
  [
    { session: { cookies: [{ name: 'a', uid: () => 'u', key: 1 }] } },
    'session.cookies.0.key is no such option',
  ],
  [{ name: 'youth' }, 'name is not for the factory to give; hint: put it beside useFactory'],
  [{ isGlobal: true }, 'isGlobal is not for the factory to give; hint: put it beside useFactory'],
  [{ session: null }, 'session must be an object (found null); hint: see docs/options.md'],
  [{ http: [] }, 'http must be an object (found an array); hint: see docs/options.md'],
  [{ http: 'fast' }, "http must be an object (found 'fast'); hint: see docs/options.md"],
  [{ applicationName: ' demo' }, 'applicationName must not be empty or have blanks around it'],
  [{ applicationName: 'a\0b' }, 'applicationName must not have control characters or lone surrogates'],
  [{ secretKey: '\ud800' }, 'secretKey must not have control characters or lone surrogates'],
  [{ authUrl: 'https://debate.example/api/v1' }, 'authUrl ends like the address of the API'],
  [{ applicationName: required.secretKey }, 'applicationName has the value of secretKey'],
  [{ apiKey: required.secretKey }, 'apiKey has the value of secretKey'],
  [{ logout: { issuer: required.secretKey } }, 'logout.issuer has the value of secretKey'],
  [{ logout: { audience: ['a', required.secretKey] } }, 'logout.audience.1 has the value of secretKey'],
  [{ [required.secretKey]: 1 }, '(a key as a name) is no such option'],
];

describe('the options', () => {
  it('have their defaults', async () => {
    const { apiKey, secretKey, ...rest } = resolveOptions(required, {});
    expect([apiKey.reveal(), (await secretKey.current()).reveal()]).toEqual([
      required.apiKey,
      required.secretKey,
    ]);
    expect(rest).toMatchObject({
      applicationName: 'demo',
      authUrl: 'https://debate.example',
      baseUrl: 'https://debate.example/api/v1',
      secretKeyEncoding: 'utf8',
      session: { graceMs: 500 },
      logout: {
        mode: 'direct',
        algorithm: 'HS256',
        lifetimeSeconds: 120,
        concurrency: 8,
        giveUpAfterMs: 86_400_000,
      },
      http: {
        timeoutMs: 10_000,
        totalTimeoutMs: 30_000,
        maxAttempts: 4,
        rateLimit: { requests: 100, perMs: 60_000 },
        allowInsecureHttp: false,
      },
      users: { listAuth: 'bearer' },
    });
  });

  it('keep uids under a key of their own, never under the API key', () => {
    const revealed = (storageKey?: string | readonly string[]): readonly string[] =>
      resolveOptions({ ...required, storageKey }, {}).storageKey.map((key) => key.reveal());
    expect(revealed()).toEqual([]);
    expect(revealed(storageKeys[0])).toEqual([storageKeys[0]]);
    expect(revealed(storageKeys)).toEqual(storageKeys);
  });

  it('show no key', () => {
    const options = resolveOptions({ ...required, storageKey: storageKeys }, {});
    const shown = inspect(options, { depth: Infinity, showHidden: true, getters: true });
    for (const key of [required.apiKey, required.secretKey, ...storageKeys])
      expect(shown + JSON.stringify(options)).not.toContain(key);
  });

  it('are frozen, and leave the host’s own alone', () => {
    const audience = ['a', 'b'];
    const given = { ...required, logout: { audience }, http: { rateLimit: { requests: 1, perMs: 1 } } };
    const options = resolveOptions(given, {});
    const { session, logout, http, users } = options;
    for (const part of [
      options,
      session,
      logout,
      logout.audience,
      http,
      http.rateLimit,
      users,
      options.storageKey,
    ]) {
      expect(Object.isFrozen(part)).toBe(true);
    }
    expect([given, given.logout, audience, given.http].some(Object.isFrozen)).toBe(false);
  });

  it('share nothing between two applications', () => {
    expect(resolveOptions(required, {}).http).not.toBe(resolveOptions(required, {}).http);
  });

  it.each([
    ['https://debate.example', 'https://debate.example'],
    ['https://debate.example/', 'https://debate.example'],
    ['https://debate.example///', 'https://debate.example'],
    ['https://debate.example/space/', 'https://debate.example/space'],
    [' https://debate.example\n', 'https://debate.example'],
    ['HTTPS://Debate.Example:443', 'https://debate.example'],
    ['https://debate.example/?', 'https://debate.example'],
    ['https://debate.example/#', 'https://debate.example'],
    ['http://localhost:4010', 'http://localhost:4010'],
    ['http://app.localhost:4010', 'http://app.localhost:4010'],
    ['http://127.0.0.1:4010', 'http://127.0.0.1:4010'],
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
    expect(resolveOptions({ ...required, authUrl: undefined }, environment).authUrl).toBe(
      'https://env.example',
    );
    expect(resolveOptions(required, environment).authUrl).toBe('https://debate.example');
    expect(problems({ authUrl: undefined })).toEqual([expect.stringContaining('DEBATE_SPACE_AUTH_URL')]);
  });

  it('may have an authUrl in plain HTTP when http.allowInsecureHttp is true', () => {
    const http = { allowInsecureHttp: true };
    expect(resolveOptions({ ...required, authUrl: 'http://debate.internal', http }, {}).authUrl).toBe(
      'http://debate.internal',
    );
  });

  const store = { get: () => 0, set: () => 0, destroy: () => 0 };
  it.each<[string, Record<string, unknown>]>([
    ['one store', { session: { store } }],
    ['several stores', { session: { store: [store, store] } }],
    ['a session cookie', { session: { cookies: [{ name: 'session', uid: () => 'alice' }] } }],
    ['expiry, with a store', { session: { store, expiry: true } }],
    ['expiry as often as told', { session: { store, expiry: { sweepMs: 1000 } } }],
    ['a storage', { storage: memoryStorage() }],
    ['no rate limit', { http: { rateLimit: false } }],
    ['a function for the claims', { logout: { claims: () => ({}) } }],
    ['a Base64 key', { secretKeyEncoding: 'base64', secretKey: 'c2VjcmV0' }],
    ['a Base64 key for URLs, unpadded', { secretKeyEncoding: 'base64', secretKey: 'c2Vj_-V0cw' }],
    [
      'groups that are undefined',
      { session: undefined, logout: undefined, http: undefined, users: undefined },
    ],
    ['an application name of any kind', { applicationName: 'Bürger / 1' }],
  ])('may have %s', (_what, options) => {
    expect(problems(options)).toEqual([]);
  });

  it.each(REFUSED)('are refused as %j', (options, problem) => {
    const found = problems(options);
    expect(found).toHaveLength(1);
    expect(found[0]).toContain(problem);
  });

  it.each<[string, { session: Record<string, unknown> }]>([
    ['session.uid', { session: { uid: () => 'alice' } }],
    ['session.store', { session: { store } }],
    ['session.cookies', { session: { cookies: [] } }],
    ['session.expiry', { session: { expiry: { sweepMs: 1000 } } }],
    ['session.graceMs', { session: { graceMs: 500 } }],
  ])('are refused when OpenID Connect mode ignores %s', (option, { session }) => {
    const found = problems({ session, logout: { mode: 'oidc' } });
    expect(found.filter((line) => !line.includes('needs session.store'))).toEqual([
      `${option} has no effect with logout.mode 'oidc', which watches no session; hint: leave it out, or leave out logout.mode`,
    ]);
  });

  it('may say what OpenID Connect mode does anyway, and how logouts are sent that the host requests', () => {
    const session = { expiry: false, store: undefined };
    const requested = { issuer: 'demo', claims: () => ({}), concurrency: 2, storageTimeoutMs: 1000 };
    const logout = { mode: 'oidc', ...requested };
    expect(problems({ session, logout })).toEqual([]);
  });

  it('are refused with both problems when a group has two', () => {
    const groups = ['session', 'logout', 'http', 'users'];
    const inGroup = REFUSED.flatMap(([options, problem]) => {
      const [group = ''] = Object.keys(options);
      const given = options[group];
      const isGroup = groups.includes(group) && isObject(given) && !Array.isArray(given);
      return isGroup ? [{ group, given, problem }] : [];
    });
    let pairs = 0;
    for (const one of inGroup) {
      for (const other of inGroup) {
        const names = Object.keys(one.given);
        if (one.group !== other.group || Object.keys(other.given).some((name) => names.includes(name)))
          continue;
        pairs += 1;
        const found = problems({ [one.group]: { ...one.given, ...other.given } });
        // An index or a store that is none is named; what needs one, then waits for it.
        for (const { problem } of [one, other]) {
          if (problem.includes('needs session.store') && 'store' in { ...one.given, ...other.given })
            continue;
          expect(found.join('\n')).toContain(problem);
        }
      }
    }
    expect(pairs).toBeGreaterThan(300);
  });

  it('are read from a class with getters as well', () => {
    class Configuration {
      get apiKey() {
        return required.apiKey;
      }
      get secretKey() {
        return required.secretKey;
      }
      readonly applicationName = 'demo';
      readonly authUrl = required.authUrl;
    }
    expect(resolveOptions(new Configuration(), {}).apiKey.reveal()).toBe(required.apiKey);
  });

  it('are refused with all problems together', () => {
    const found = problems({
      apiKey: undefined,
      secretKey: 'no Base64',
      secretKeyEncoding: 'base64',
      authUrl: 'http://debate.example',
      baseUrl: 'nowhere',
      http: { maxAttempts: -1 },
      logout: { claims: 1, algorithm: 'x' },
      more: 1,
    });
    const starts = [
      'apiKey',
      'secretKey',
      'authUrl',
      'baseUrl',
      'http.maxAttempts',
      'logout.claims',
      'logout.algorithm',
      'more',
    ];
    for (const start of starts) expect(found.filter((problem) => problem.startsWith(start))).toHaveLength(1);
    expect(found).toHaveLength(starts.length);
  });

  it('are refused with one problem for each unknown option', () => {
    const found = problems({ name: 'youth', more: 1, http: { timeout: 5, retries: 2 } });
    expect(found.map((line) => line.split(' ')[0])).toEqual(['http.timeout', 'http.retries', 'name', 'more']);
  });

  it('are refused with problems that name the option, what is wrong with it, and the hint', () => {
    expect(() => resolveOptions({ ...required, apiKey: undefined }, {})).toThrow(
      expect.objectContaining({
        problems: [
          {
            option: 'apiKey',
            problem: 'must be a string (found nothing)',
            hint: 'copy it from the administration panel, Configuration > General',
          },
        ],
      }),
    );
  });

  it.each([undefined, null, 'options', 42, []])('name what is required when they are %j', (given) => {
    const attempt = () => resolveOptions(given, {});
    for (const name of ['apiKey', 'secretKey', 'applicationName', 'authUrl'])
      expect(attempt).toThrow(`- ${name} `);
  });

  const planted = 'pLanted-Secret-3f9c1e';
  it.each<[string, Record<string, unknown>]>([
    ['with blanks', { secretKey: ` ${planted}` }],
    ['that is no Base64', { secretKey: `${planted}!`, secretKeyEncoding: 'base64' }],
    ['in an array', { secretKey: [planted] }],
    ['in place of an application name', { applicationName: { name: planted } }],
    ['in place of an algorithm', { logout: { algorithm: planted } }],
    ['in place of an encoding', { secretKeyEncoding: planted }],
    ['in place of a number', { http: { timeoutMs: planted } }],
    ['in place of a store', { session: { store: planted } }],
    ['that is too short to store with', { storageKey: 'pLanted-' }],
    ['that is to store with, as a name', { storageKey: planted, [`x${planted}`]: 1 }],
    ['of several to store with that is too short', { storageKey: [storageKeys[0], 'pLanted-'] }],
    ['of several to store with, as a name', { storageKey: [storageKeys[0], planted], [`x${planted}`]: 1 }],
    ['to store with that is given twice', { storageKey: [planted, planted] }],
    ['to store with that is the API key', { apiKey: planted, storageKey: [storageKeys[0], planted] }],
    ['to store with that is the secret key', { secretKey: planted, storageKey: [storageKeys[0], planted] }],
    ['to store with, with a comma', { storageKey: `${planted},${planted}` }],
    ['as authUrl', { authUrl: planted }],
    ['as a scheme', { authUrl: `${planted}:x@debate.example` }],
    ['as a password', { authUrl: `https://me:${planted}@debate.example` }],
    ['as a user', { authUrl: `https://${planted}@debate.example` }],
    ['in a query', { baseUrl: `https://debate.example/?api_key=${planted}` }],
    ['in a fragment', { baseUrl: `https://debate.example/#${planted}` }],
    ['in an insecure address', { authUrl: `http://${planted}.example/${planted}` }],
    [
      'of few characters, which is given as a key as well',
      { secretKey: 'pLanted-', users: { listAuth: 'pLanted-' } },
    ],
  ])('never show a secret %s', (_what, options) => {
    const found = problems(options).join('\n');
    expect(found).not.toBe('');
    expect(found.toLowerCase()).not.toContain('planted-');
  });
});
