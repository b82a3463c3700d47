import { afterEach, describe, expect, it, jest } from '@jest/globals';
import { Injectable, Module, type DynamicModule, type INestApplicationContext } from '@nestjs/common';
import { ConfigModule, ConfigService } from '@nestjs/config';
import { NestFactory } from '@nestjs/core';
import { Test } from '@nestjs/testing';
import session from 'express-session';
import { inspect } from 'node:util';
import {
  DebateSpaceEvents,
  DebateSpaceModule,
  DebateSpaceOptionsError,
  DebateSpaceService,
  getDebateSpaceToken,
  InjectDebateSpace,
  memoryStorage,
  type DebateSpaceModuleOptions,
  type DebateSpaceOptionsFactory,
} from 'nestjs-debate-space';
import { LogoutRoute } from 'nestjs-debate-space/internal';
import { logInTo } from '#support/browser/browser.js';
import { eventsOf } from '#support/hosts/events.js';
import { scenario } from '#support/hosts/scenario.js';
import { keys, using } from '#support/service/service.js';
import { destroySession } from '#support/hosts/session-jobs.js';

const scene = scenario();

async function boot(
  ...imports: (DynamicModule | Promise<DynamicModule>)[]
): Promise<INestApplicationContext> {
  @Module({ imports })
  class App {}
  return scene.apps.add(NestFactory.createApplicationContext(App, { logger: false, abortOnError: false }));
}

@Injectable()
class OptionsFromDatabase implements DebateSpaceOptionsFactory {
  async createDebateSpaceOptions(): Promise<DebateSpaceModuleOptions> {
    return Promise.resolve(using(scene.service));
  }
}

@Module({ providers: [OptionsFromDatabase], exports: [OptionsFromDatabase] })
class DatabaseModule {}

const registrations: { name: string; module: () => DynamicModule }[] = [
  { name: 'forRoot', module: () => DebateSpaceModule.forRoot(using(scene.service)) },
  {
    name: 'forRootAsync with useFactory, imports and inject',
    module: () =>
      DebateSpaceModule.forRootAsync({
        imports: [
          ConfigModule.forRoot({ ignoreEnvFile: true, load: [() => ({ debate: using(scene.service) })] }),
        ],
        inject: [ConfigService],
        useFactory: (config: ConfigService) => config.getOrThrow<DebateSpaceModuleOptions>('debate'),
      }),
  },
  {
    name: 'forRootAsync with useClass',
    module: () => DebateSpaceModule.forRootAsync({ useClass: OptionsFromDatabase }),
  },
  {
    name: 'forRootAsync with useExisting',
    module: () =>
      DebateSpaceModule.forRootAsync({ imports: [DatabaseModule], useExisting: OptionsFromDatabase }),
  },
];

describe('DebateSpaceModule', () => {
  it.each(registrations)('$name provides a service that works', async ({ module }) => {
    const context = await boot(module());
    await context.get(DebateSpaceService).deleteUser('alice');
    expect(scene.service.users.has('alice')).toBe(false);
  });

  it('is global unless isGlobal is false', async () => {
    @Injectable()
    class Erasure {
      constructor(readonly debateSpace: DebateSpaceService) {}
    }
    @Module({ providers: [Erasure] })
    class Feature {}
    const feature = { module: Feature };

    const context = await boot(DebateSpaceModule.forRoot(using(scene.service)), feature);
    expect(context.get(Erasure, { strict: false }).debateSpace).toBeInstanceOf(DebateSpaceService);

    const local = DebateSpaceModule.forRoot({ ...using(scene.service), isGlobal: false });
    await expect(boot(local, feature)).rejects.toThrow('DebateSpaceService');
  });

  it('gives each named application its own service', async () => {
    const youth = await scene.startService({ applicationName: 'youth' });
    @Injectable()
    class Both {
      constructor(
        @InjectDebateSpace('city') readonly city: DebateSpaceService,
        @InjectDebateSpace('youth') readonly youth: DebateSpaceService,
        @InjectDebateSpace('youth', DebateSpaceEvents) readonly youthEvents: DebateSpaceEvents,
      ) {}
    }
    @Module({ providers: [Both] })
    class Feature {}
    const context = await boot(
      DebateSpaceModule.forRoot({ ...using(scene.service), name: 'city' }),
      DebateSpaceModule.forRootAsync({ name: 'youth', useFactory: () => using(youth) }),
      { module: Feature },
    );
    const both = context.get(Both, { strict: false });
    expect(both.city.backchannelLogoutUrl).toBe(`${scene.service.url}/auth/logout/demo`);
    expect(both.youth.backchannelLogoutUrl).toBe(`${youth.url}/auth/logout/youth`);
    expect(both.youthEvents).toBeInstanceOf(DebateSpaceEvents);
  });

  it('lets a test put another service in its place', async () => {
    const testing = await Test.createTestingModule({
      imports: [DebateSpaceModule.forRoot(using(scene.service))],
    })
      .overrideProvider(DebateSpaceService)
      .useValue({ deleteUser: () => 'deleted' })
      .compile();
    expect(testing.get(DebateSpaceService).deleteUser('alice')).toBe('deleted');
    await testing.close();
  });

  it('stops the boot with one error that names every problem and no secret', async () => {
    const logout = { lifetimeSeconds: 600, audiance: 'the service' };
    const options = { apiKey: '', secretKey: 7, authUrl: 'http://debate.example.org', logout };
    const booting = boot(DebateSpaceModule.forRoot(options as unknown as DebateSpaceModuleOptions));
    const error = await booting.catch((reason: unknown) => reason);
    expect(error).toBeInstanceOf(DebateSpaceOptionsError);
    const named = (error as DebateSpaceOptionsError).problems.map(({ option }) => option);
    expect(named.toSorted()).toEqual([
      ...['apiKey', 'applicationName', 'authUrl', 'logout.audiance', 'logout.lifetimeSeconds', 'secretKey'],
    ]);
  });

  const apiKey = 'an API key of a test';
  const secretKey = 'a secret key of a test without a comma';
  it('stops the boot when another option has the value of a key, and shows neither', async () => {
    const twice: readonly (readonly [string, string, Partial<DebateSpaceModuleOptions>])[] = [
      ['apiKey', 'secretKey', { apiKey: secretKey }],
      ['applicationName', 'secretKey', { applicationName: secretKey }],
      ['logout.issuer', 'secretKey', { logout: { issuer: secretKey } }],
      ['logout.audience', 'secretKey', { logout: { audience: ['a', secretKey] } }],
      ['storageKey', 'secretKey', { storageKey: secretKey }],
      ['storageKey', 'secretKey', { storageKey: ['a storage key of a test', secretKey] }],
      ['storageKey', 'secretKey', { storageKey: secretKey, secretKey: () => secretKey }],
      ['storageKey', 'apiKey', { storageKey: apiKey }],
    ];
    for (const [option, key, options] of twice) {
      const given = { ...using(scene.service), apiKey, secretKey, ...options };
      const booting = boot(DebateSpaceModule.forRoot(given));
      const error = (await booting.catch((reason: unknown) => reason)) as DebateSpaceOptionsError;
      const problem = `has the value of ${key}`;
      expect(error.problems).toEqual([{ option, problem, hint: 'give it its own' }]);
      for (const value of [apiKey, secretKey]) expect(inspect(error)).not.toContain(value);
    }
  });

  it.each<[string, Partial<DebateSpaceModuleOptions>]>([
    ['storageKey is missing', { storage: { ...memoryStorage(), durable: true } }],
    ['worker is false', { worker: false }],
  ])('stops the boot when %s for the storage', async (problem, options) => {
    const booting = boot(DebateSpaceModule.forRoot({ ...using(scene.service), ...options }));
    await expect(booting).rejects.toThrow(problem);
  });

  it('takes a session of the host in session.uid, whatever its type', () => {
    interface SessionData {
      readonly user?: { readonly id: string };
    }
    const uid = ({ user }: SessionData): string | undefined => user?.id;
    class OptionsFactory implements DebateSpaceOptionsFactory<SessionData> {
      createDebateSpaceOptions(): DebateSpaceModuleOptions<SessionData> {
        return { ...using(scene.service), session: { uid } };
      }
    }
    const required = { ...keys, applicationName: 'demo' };
    // `npm run typecheck` is the test.
    const modules = (): DynamicModule[] => [
      DebateSpaceModule.forRoot({ ...required, session: { uid } }),
      DebateSpaceModule.forRoot({
        ...required,
        session: { uid: (session: SessionData) => session.user?.id },
      }),
      DebateSpaceModule.forRoot({ ...required, session: { uid: (session) => String(session.userId) } }),
      DebateSpaceModule.forRootAsync({ useFactory: () => ({ ...required, session: { uid } }) }),
      DebateSpaceModule.forRootAsync({ useClass: OptionsFactory }),
      DebateSpaceModule.forRootAsync({
        useFactory: (): DebateSpaceModuleOptions => ({
          ...required,
          // @ts-expect-error -- no such option: only the return type of a factory tells TypeScript
          logout: { audiance: 'the service', concurrency: 2 },
        }),
      }),
    ];
    expect(modules()).toHaveLength(6);
  });

  it.each([
    ['without a name', {}],
    ["of the name 'youth'", { name: 'youth' }],
  ])('stops the boot when it is imported twice %s', async (which, extras) => {
    const twice = () => DebateSpaceModule.forRoot({ ...using(scene.service), ...extras });
    await expect(boot(twice(), twice())).rejects.toThrow(which);
  });

  it('may be imported by several modules, as one', async () => {
    const once = DebateSpaceModule.forRoot(using(scene.service));
    @Module({ imports: [once] })
    class Other {}
    const context = await boot(once, { module: Other });
    expect(context.get(DebateSpaceService)).toBeInstanceOf(DebateSpaceService);
  });
});

/** The lines that a boot of these options logs. */
async function linesOf(options: Partial<DebateSpaceModuleOptions>): Promise<string[]> {
  const lines: string[] = [];
  const note = (line: unknown): unknown => lines.push(String(line));
  const module = DebateSpaceModule.forRoot({ ...using(scene.service), ...options });
  const logger = { log: note, warn: note, error: note };
  await (await NestFactory.createApplicationContext(module, { logger })).close();
  return lines;
}

describe('the boot log', () => {
  const store = new session.MemoryStore();

  it.each([
    ['the first request that has one', {}, 'the store is taken from the first request that has one'],
    ['the options', { session: { store } }, 'session store: MemoryStore'],
  ])('names the storage and the session store of %s in one line', async (_where, options, text) => {
    const lines: string[] = [];
    const note = (line: unknown): unknown => lines.push(String(line));
    await scene.start({ logger: { log: note, warn: note, error: note } }, options);
    await scene.stop();
    const [line, ...others] = lines.filter((each) => each.includes('; storage: '));
    expect(others).toEqual([]);
    const { host } = new URL(scene.service.url);
    for (const part of ['"demo"', host, 'memory', 'is lost when this process ends', text])
      expect(line).toContain(part);
    expect(lines.join('\n')).not.toContain(keys.secretKey);
  });

  it.each([
    ['a secret shorter than the hash', { secretKey: 'too short' }, '9 bytes; HS256 wants at least 32'],
    ['expiry in memory', { session: { store, expiry: true } }, 'session.expiry with a storage in memory'],
  ])('warns of %s', async (_what, options, warning) => {
    expect((await linesOf(options)).join('\n')).toContain(warning);
  });

  it('says that nothing is sent in OpenID Connect mode, and nothing is', async () => {
    const lines: string[] = [];
    const note = (line: unknown): unknown => lines.push(String(line));
    const logger = { log: note, error: note, warn: note };
    const host = await scene.start({ act: destroySession, logger }, { logout: { mode: 'oidc' } });
    await fetch(`${host.url}/login`, { method: 'POST', body: new URLSearchParams({ uid: 'alice' }) });
    await fetch(`${host.url}/act`, { method: 'POST' });
    await scene.stop();
    const logoutUrl = `${scene.service.url}/auth/logout/${scene.service.applicationName}`;
    expect(lines.join('\n')).toContain(`the identity provider notifies the service at ${logoutUrl};`);
    expect(scene.service.received.of('logout')).toEqual([]);
  });
});

describe('a serverless platform', () => {
  const PLATFORMS = ['AWS_LAMBDA_FUNCTION_NAME', 'VERCEL', 'K_SERVICE'];
  afterEach(() => {
    for (const name of PLATFORMS) Reflect.deleteProperty(process.env, name);
  });
  /** As `postgresStorage()` looks from here, without a server. */
  const shared = { ...memoryStorage(), name: 'postgres', durable: true };
  const storageKey = 'a storage key of a test';

  it.each<[string, string, boolean, Partial<DebateSpaceModuleOptions>]>([
    ...PLATFORMS.map((name) => [name, 'my-function', true, {}] as [string, string, boolean, object]),
    ['VERCEL', '1', true, { storage: shared, storageKey }],
    ['VERCEL', '1', false, { storage: shared, storageKey, worker: false }],
    ['K_SERVICE', '', false, {}],
  ])('with %s=%j is a warning: %p, with %j', async (name, value, isWarning, options) => {
    process.env[name] = value;
    const found = (await linesOf(options)).filter((line) => line.includes(`${name} is set`));
    expect(found).toHaveLength(isWarning ? 1 : 0);
    for (const line of found) {
      expect(line).toContain('hint: use postgresStorage() or mysqlStorage() with worker: false');
      expect(line).not.toContain('my-function');
    }
  });
});

const moduleOf = (applicationName: string, name?: string): DynamicModule =>
  DebateSpaceModule.forRoot({ ...keys, applicationName, authUrl: 'http://127.0.0.1:9', name });

/** The classes that are tokens. */
const classesOf = ({ providers = [] }: DynamicModule) =>
  providers.flatMap((provider) => {
    const token = 'provide' in provider ? provider.provide : provider;
    return typeof token === 'function' ? [token] : [];
  });

describe('a test of a host', () => {
  it('sends logouts to a route of its own, also those of named applications', async () => {
    const send = jest.fn(() => Promise.resolve({ status: 200 }));
    const testing = await Test.createTestingModule({
      imports: [moduleOf('demo'), moduleOf('youth', 'youth')],
    })
      .overrideProvider(LogoutRoute)
      .useValue({ url: 'of a test', send })
      .compile();
    await testing.init();
    for (const name of [undefined, 'youth'])
      await testing.get(getDebateSpaceToken(name, DebateSpaceService)).logoutUser('alice');
    await testing.close(); // delivers what waits
    expect(send).toHaveBeenCalledTimes(2);
  });
});

describe('named applications side by side', () => {
  const names = [undefined, 'city', 'youth'];
  const modules = () => [moduleOf('demo'), moduleOf('city', 'city'), moduleOf('youth', 'youth')];
  const urlsIn = (app: INestApplicationContext) =>
    names.map((name) => app.get(getDebateSpaceToken(name, DebateSpaceService)).backchannelLogoutUrl);
  const urls = ['demo', 'city', 'youth'].map((name) => `http://127.0.0.1:9/auth/logout/${name}`);

  it('are distinguished in any order of imports, also when a bundler gives all classes one name', async () => {
    const classes = [...new Set(modules().flatMap(classesOf))];
    const before = classes.map((token) => [token, token.name] as const);
    const tokens = () => classes.map((token) => getDebateSpaceToken('city', token));
    const tokensBefore = tokens();
    for (const token of classes) Object.defineProperty(token, 'name', { value: 'a', configurable: true });
    try {
      expect(tokens()).toEqual(tokensBefore);
      for (const imports of [modules(), modules().toReversed()])
        expect(urlsIn(await boot(...imports))).toEqual(urls);
    } finally {
      for (const [token, value] of before)
        Object.defineProperty(token, 'name', { value, configurable: true });
    }
  });
});

describe('several applications in one process', () => {
  const city = scenario({ applicationName: 'city' });
  const youth = scenario({ applicationName: 'youth' });

  it('two apps on one store object each report to their own service, and leave the store as it was', async () => {
    const store = new session.MemoryStore();
    const before = Object.getOwnPropertyNames(store).toSorted();
    const one = await city.start({ store, act: destroySession });
    await logInTo(await youth.start({ store, act: destroySession }), 'bob');
    await logInTo(one, 'bob'); // both have met the store
    const browser = await logInTo(one, 'alice');
    await browser.post('/act');

    expect([await city.logouts(), await youth.logouts()]).toEqual([['alice'], ['alice']]);
    const own = Object.getOwnPropertyNames(store).filter((name) => name !== 'generate'); // express-session's
    expect(own.toSorted()).toEqual(before.filter((name) => name !== 'generate'));
  });

  it('two named instances in one app, each with its own store, do not see each other’s endings', async () => {
    const [cityStore, youthStore] = [new session.MemoryStore(), new session.MemoryStore()];
    const host = await city.start({
      store: cityStore,
      stores: { '/youth': youthStore },
      act: destroySession,
      debateSpace: [
        { ...using(city.service, { session: { store: cityStore } }), name: 'city' },
        { ...using(youth.service, { session: { store: youthStore } }), name: 'youth' },
      ],
    });
    const [cityEvents, youthEvents] = ['city', 'youth'].map((name) =>
      eventsOf({ get: () => host.app.get(getDebateSpaceToken(name, DebateSpaceEvents)) }),
    );
    const browser = await logInTo(host, 'bob', '/youth/');
    await browser.post('/youth/act');
    await host.app.get(getDebateSpaceToken('city', DebateSpaceService)).logoutUser('alice');

    expect(await city.logouts()).toEqual(['alice']);
    expect(youth.service.received.logouts).toEqual(['bob']);
    for (const events of [cityEvents, youthEvents])
      expect(events?.map(({ type }) => type)).toEqual(['session-ended', 'logout-delivered']);
  });

  it('a named instance is not found by class', async () => {
    const host = await city.start({ debateSpace: [{ ...using(city.service), name: 'city' }] });
    expect(() => host.app.get(DebateSpaceService)).toThrow('could not find');
  });
});
