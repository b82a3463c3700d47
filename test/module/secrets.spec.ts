import { afterAll, afterEach, beforeAll, describe, expect, it, jest } from '@jest/globals';
import { inspect } from 'node:util';
import type { INestApplication, LoggerService } from '@nestjs/common';
import { NestFactory, type NestContainer } from '@nestjs/core';
import type { DebateSpaceSimulator, FaultRule } from 'debate-space-simulator';
import { DebateSpaceEvents, DebateSpaceModule, DebateSpaceService } from 'nestjs-debate-space';
import type { DebateSpaceModuleOptions } from 'nestjs-debate-space';
import { filter, firstValueFrom } from 'rxjs';
import { AccessTokens } from '../../libs/debate-space/src/service/calls/access-tokens.js';
import { LogoutRoute } from '../../libs/debate-space/src/service/calls/logout-route.js';
import { withRealRandom } from 'debate-space-fixtures/real-random.js';
import { startService } from 'debate-space-fixtures/service.js';
import { errorOf } from 'debate-space-fixtures/service-clients.js';

// With characters that look different in a URL.
const apiKey = 'planted/api+key=é 7f3a';
const secretKey = 'planted/secret+key=ü 9c1e, long enough for HS256';
const storageKey = 'planted/storage+key=ö 4b2d';
const formerStorageKey = 'planted/former storage+key=ñ e83a';
const uid = 'planted-uid-of-somebody';

/** A value as it stands and as it would stand in a URL, a header or a dump. */
function forms(value: string): string[] {
  const bytes = Buffer.from(value);
  return [
    value,
    encodeURIComponent(value),
    new URLSearchParams({ '': value }).toString().slice(1),
    JSON.stringify(value).slice(1, -1),
    bytes.toString('base64').replace(/.{2}={0,2}$/, ''), // the end differs when something follows
    bytes.toString('base64url').replace(/.{2}$/, ''),
    bytes.toString('hex'),
    [...bytes].join(', '),
  ];
}

/** Everything secret that was there so far, in its forms: the keys, and each token that was fetched or signed. */
const secrets = new Map([apiKey, secretKey, storageKey, formerStorageKey].map((key) => [key, forms(key)]));
const plant = (value: string): void => void secrets.set(value, secrets.get(value) ?? forms(value));

const leaks = (text: string): string[] =>
  [...secrets].filter(([, found]) => found.some((form) => text.includes(form))).map(([value]) => value);
const shown = (value: unknown): string =>
  inspect(value, {
    depth: Infinity,
    showHidden: true,
    getters: true,
    maxStringLength: null,
    maxArrayLength: null,
  });

function errorText(error: unknown): string {
  const { message, stack, cause } = error as Error;
  return [shown(error), JSON.stringify(error), String(error), message, stack, shown(cause)].join('\n');
}

class CollectingLogger implements LoggerService {
  readonly lines: string[] = [];
  readonly #add = (...parts: unknown[]): void => void this.lines.push(parts.map(shown).join(' '));
  readonly log = this.#add;
  readonly error = this.#add;
  readonly warn = this.#add;
  readonly debug = this.#add;
  readonly verbose = this.#add;
  readonly fatal = this.#add;
}

/** A page that repeats what it was sent, as debug pages do. */
const echo = `<html>${[apiKey, secretKey].flatMap(forms).join(' ')}`;

const faults: readonly FaultRule[] = [
  ...[302, 400, 401, 403, 404, 408, 422, 425, 429, 500, 503].map(
    (status) => ({ kind: 'status', status, body: echo }) as const,
  ),
  { kind: 'redirect', location: `http://127.0.0.1:1/?api_key=${encodeURIComponent(apiKey)}` },
  { kind: 'body', body: echo, contentType: 'text/html' },
  { kind: 'body', body: { success: false, error: echo } },
  { kind: 'body', body: { access_token: 7, secretKey } },
  { kind: 'body', body: '' },
  { kind: 'outage' },
  { kind: 'reset-after-apply' },
  { kind: 'cut-body' },
  { kind: 'malformed-body' },
  { kind: 'latency', ms: 60_000 },
  { kind: 'slow-body', ms: 60_000 },
];

const namedFaults = faults.map(
  (fault) => [`${fault.kind} ${'status' in fault ? String(fault.status) : ''}`, fault] as const,
);

describe('nothing secret leaves', () => {
  const logger = new CollectingLogger();
  const events: unknown[] = [];
  let service: DebateSpaceSimulator;
  const apps: INestApplication[] = [];
  const tokens = jest.spyOn(AccessTokens.prototype, 'get');
  const logouts = jest.spyOn(LogoutRoute.prototype, 'send');

  /** Adds the access tokens and logout tokens that came up since. */
  async function plantTokens(): Promise<void> {
    for (const { value } of tokens.mock.results.splice(0)) {
      const token = await Promise.resolve(value as Promise<string>).catch(() => undefined);
      if (token !== undefined) plant(token);
    }
    for (const [token] of logouts.mock.calls.splice(0)) {
      for (const part of [token, ...token.split('.').slice(1)]) plant(part);
    }
  }

  async function startApp(options: Partial<DebateSpaceModuleOptions> = {}): Promise<INestApplication> {
    const module = DebateSpaceModule.forRoot({
      apiKey,
      storageKey: [storageKey, formerStorageKey],
      secretKey,
      applicationName: 'demo',
      authUrl: service.url,
      http: { timeoutMs: 500, maxAttempts: 2, rateLimit: false },
      ...options,
    });
    const app = await withRealRandom(() => NestFactory.create(module, { logger, abortOnError: false }));
    app.get(DebateSpaceEvents).events$.subscribe((event) => events.push(event));
    await app.init();
    apps.push(app);
    return app;
  }

  beforeAll(async () => {
    jest.spyOn(Math, 'random').mockReturnValue(0); // no backoff
    service = await startService({ apiKey, secretKey, users: [{ uid }], rateLimit: false });
    await startApp();
    await startApp({ users: { listAuth: 'apiKey' } });
  });

  afterEach(async () => {
    service.faults.clear();
    service.received.clear();
    await service.comeBack();
  });

  afterAll(async () => {
    for (const app of apps) await app.close();
    await service.stop();
    jest.restoreAllMocks();
  });

  /** Makes every call on every app, and looks at what comes of it. */
  async function callEverything(): Promise<unknown[]> {
    const calls = apps.flatMap((app) => {
      const debate = app.get(DebateSpaceService);
      return [
        debate.listUsers(),
        debate.users()[Symbol.asyncIterator]().next(),
        debate.anonymizeUser(uid),
        debate.deleteUser(uid),
      ];
    });
    const errors = await Promise.all(calls.map(errorOf));
    await plantTokens();
    for (const error of errors) expect(leaks(errorText(error))).toEqual([]);
    return errors;
  }

  it.each(namedFaults)('with an error: %s', async (_name, fault) => {
    for (const operation of ['list', 'anonymize', 'delete', 'logout'] as const)
      service.faults.add({ ...fault, operation });
    const before = events.length;
    await apps[0]?.get(DebateSpaceService).logoutUser(uid);
    const errors = await callEverything();
    expect(errors.some((error) => 'operation' in (error as object))).toBe(true);
    await service.received.waitFor('logout');
    expect(events.length).toBeGreaterThan(before);
  });

  it.each(namedFaults)('with an error of the token route: %s', async (_name, fault) => {
    service.faults.add({ ...fault, operation: 'token' });
    service.revokeTokens();
    const errors = await callEverything();
    // Where there is still a token, the call itself is answered 401 and a new one requested.
    expect(errors.some((error) => 'operation' in (error as object))).toBe(true);
  });

  it('with wrong keys', async () => {
    const wrong = 'planted wrong key, that the service does not know';
    plant(wrong);
    const app = await startApp({
      apiKey: `${wrong} either`,
      secretKey: wrong,
      users: { listAuth: 'apiKey' },
      http: { timeoutMs: 60_000, maxAttempts: 2, rateLimit: false }, // on a busy machine, too, the service refuses
    });
    const { events$ } = app.get(DebateSpaceEvents);
    const parked = firstValueFrom(events$.pipe(filter(({ type }) => type === 'logout-parked')));
    await app.get(DebateSpaceService).logoutUser(uid);
    await parked;
    const errors = await callEverything();
    expect(
      errors.filter((error) => (error as { code?: string }).code === 'ERR_DEBATE_SPACE_AUTHENTICATION'),
    ).not.toEqual([]);
  });

  it('with a service that is gone', async () => {
    await service.goDown();
    await callEverything();
  });

  it('with a call that is aborted', async () => {
    service.faults.add({ kind: 'latency', ms: 60_000, operation: 'list' });
    const controller = new AbortController();
    const listing = apps.map((app) => errorOf(app.get(DebateSpaceService).listUsers({}, controller)));
    controller.abort(new Error(secretKey));
    for (const error of await Promise.all(listing)) {
      expect(error).toMatchObject({ name: 'AbortError' });
      expect(leaks(errorText(error))).toEqual([]);
    }
  });

  it.each<[string, Partial<DebateSpaceModuleOptions>]>([
    ['a key with blanks', { secretKey: `${secretKey} ` }],
    ['a key that is no Base64', { secretKeyEncoding: 'base64' }],
    [
      'keys in a URL',
      { authUrl: `https://${encodeURIComponent(apiKey)}:${encodeURIComponent(secretKey)}@x.example` },
    ],
    ['a storage key that is the API key', { storageKey: [storageKey, apiKey] }],
    ['a storage key that is the secret key', { storageKey: [storageKey, secretKey] }],
    ['a storage key that the function for the secret key returns', { secretKey: () => storageKey }],
    ['a storage key that is there twice', { storageKey: [storageKey, storageKey] }],
    ['storage keys in one string', { storageKey: `${storageKey},${formerStorageKey}` }],
    ['a key as an algorithm', { logout: { algorithm: secretKey as 'HS256' } }],
  ])('with options that are refused: %s', async (_what, options) => {
    const error = await errorOf(startApp(options));
    expect(error).toMatchObject({ code: 'ERR_DEBATE_SPACE_OPTIONS' });
    expect(leaks(errorText(error))).toEqual([]);
  });

  it('through any provider of the module, the options included', () => {
    let providers = 0;
    for (const app of apps) {
      const { container } = app as unknown as { container: NestContainer };
      for (const module of container.getModules().values()) {
        if (module.metatype !== DebateSpaceModule) continue;
        for (const [token, { instance }] of module.providers) {
          providers += 1;
          expect([token, ...leaks(shown(instance))]).toEqual([token]);
        }
        const options: unknown = module.providers.get('DEBATE_SPACE_MODULE_OPTIONS')?.instance;
        expect(shown(options)).toContain('apiKey: [secret]');
        expect(shown(options)).toMatch(/storageKey: \[ \[secret\], \[secret\]/);
      }
    }
    expect(providers).toBeGreaterThan(5 * apps.length);
  });

  it('in the log or in an event, and no uid in the log', () => {
    expect(logger.lines.length).toBeGreaterThan(10);
    expect(leaks(logger.lines.join('\n'))).toEqual([]);
    expect(logger.lines.join('\n')).not.toContain(uid);
    expect(new Set(events.map((event) => (event as { type: string }).type)).size).toBeGreaterThan(3);
    expect(leaks(shown(events))).toEqual([]);
  });

  it('undetected: the search finds each secret in every form', () => {
    expect(secrets.size).toBeGreaterThan(10); // keys, access tokens, logout tokens
    for (const value of secrets.keys()) {
      expect(leaks(`x${encodeURIComponent(value)}x`)).toContain(value);
      expect(leaks(shown({ header: `Bearer ${value}` }))).toContain(value);
      expect(leaks(Buffer.from(`${value}:more`).toString('base64'))).toContain(value);
    }
  });
});
