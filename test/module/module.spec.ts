import { describe, expect, it } from '@jest/globals';
import { Injectable, Module, type DynamicModule, type INestApplicationContext } from '@nestjs/common';
import { ConfigModule, ConfigService } from '@nestjs/config';
import { NestFactory } from '@nestjs/core';
import { Test } from '@nestjs/testing';
import session from 'express-session';
import {
  DebateSpaceEvents,
  DebateSpaceModule,
  DebateSpaceOptionsError,
  DebateSpaceService,
  InjectDebateSpace,
  type DebateSpaceModuleOptions,
  type DebateSpaceOptionsFactory,
} from 'nestjs-debate-space';
import { scenario } from 'debate-space-fixtures/scenario.js';
import { keys, using } from 'debate-space-fixtures/service.js';
import type { Act } from 'debate-space-fixtures/session-host.js';

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
    const options = {
      apiKey: '',
      secretKey: 7,
      authUrl: 'http://debate.example.org',
      logout: { lifetimeSeconds: 600 },
    };
    const booting = boot(DebateSpaceModule.forRoot(options as unknown as DebateSpaceModuleOptions));
    await expect(booting).rejects.toThrow(DebateSpaceOptionsError);
    const { problems } = (await booting.catch(
      (error: unknown) => error as DebateSpaceOptionsError,
    )) as DebateSpaceOptionsError;
    for (const option of ['apiKey', 'secretKey', 'applicationName', 'authUrl', 'logout.lifetimeSeconds']) {
      expect(problems.filter((problem) => problem.option === option)).toHaveLength(1);
    }
  });

  it.each([
    ['without a name', {}],
    ["of the name 'youth'", { name: 'youth' }],
  ])('stops the boot when it is imported twice %s', async (which, extras) => {
    const twice = () => DebateSpaceModule.forRoot({ ...using(scene.service), ...extras });
    await expect(boot(twice(), twice())).rejects.toThrow(which);
  });

  it('is one module beside a host module that has a token of its name', async () => {
    @Module({ providers: [{ provide: 'DebateSpace', useValue: 1 }] })
    class HostModule {}
    const context = await boot(DebateSpaceModule.forRoot(using(scene.service)), { module: HostModule });
    expect(context.get(DebateSpaceService).backchannelLogoutUrl).toContain(scene.service.url);
  });

  it('may be imported by several modules, as one', async () => {
    const once = DebateSpaceModule.forRoot(using(scene.service));
    @Module({ imports: [once] })
    class Other {}
    const context = await boot(once, { module: Other });
    expect(context.get(DebateSpaceService)).toBeInstanceOf(DebateSpaceService);
  });

  it('reads authUrl from the environment, and names the variable when authUrl is missing', async () => {
    const options = { ...using(scene.service), authUrl: undefined };
    await expect(boot(DebateSpaceModule.forRoot(options))).rejects.toThrow('DEBATE_SPACE_AUTH_URL');
    process.env.DEBATE_SPACE_AUTH_URL = scene.service.url;
    try {
      const context = await boot(DebateSpaceModule.forRoot(options));
      expect(context.get(DebateSpaceService).backchannelLogoutUrl).toContain(scene.service.url);
    } finally {
      delete process.env.DEBATE_SPACE_AUTH_URL;
    }
  });
});

describe('the boot log', () => {
  const sessions = [
    {
      name: 'Express, without a store',
      session: {},
      text: 'the store is taken from the first request that has one',
    },
    {
      name: 'a store in the options',
      session: { store: new session.MemoryStore() },
      text: 'session store: MemoryStore',
    },
  ];
  it.each(sessions)(
    'names the storage and the session store in one line: $name',
    async ({ session: options, text }) => {
      const lines: string[] = [];
      const note = (line: unknown): unknown => lines.push(String(line));
      const logger = { log: note, warn: note, error: note };
      await scene.start({ logger }, { session: options });
      await scene.stop();
      const [line, ...others] = lines.filter((each) => each.includes('; storage: '));
      expect(others).toEqual([]);
      for (const part of [
        '"demo"',
        new URL(scene.service.url).host,
        'memory',
        'is lost when this process ends',
        text,
      ]) {
        expect(line).toContain(part);
      }
      expect(lines.join('\n')).not.toContain(keys.secretKey);
    },
  );

  const store = new session.MemoryStore();
  it.each([
    {
      name: 'a secret that is shorter than the hash',
      options: { secretKey: 'too short' },
      warning: 'has 9 bytes; HS256 wants at least 32',
    },
    {
      name: 'expiry with a storage in memory',
      options: { session: { store, expiry: true } },
      warning: 'session.expiry with a storage in memory',
    },
  ])('warns of $name', async ({ options, warning }) => {
    const warnings: string[] = [];
    const logger = {
      log: () => undefined,
      error: () => undefined,
      warn: (line: unknown) => warnings.push(String(line)),
    };
    await scene.start({ store, logger }, options);
    await scene.stop();
    expect(warnings.join('\n')).toContain(warning);
  });

  it('says that nothing is sent in OpenID Connect mode, and nothing is', async () => {
    const lines: string[] = [];
    const logger = {
      log: (line: unknown) => lines.push(String(line)),
      error: () => undefined,
      warn: () => undefined,
    };
    const act: Act = (request) => new Promise((resolve) => request.session.destroy(resolve));
    const host = await scene.start({ act, logger }, { logout: { mode: 'oidc' } });
    await fetch(`${host.url}/login`, { method: 'POST', body: new URLSearchParams({ uid: 'alice' }) });
    await fetch(`${host.url}/act`, { method: 'POST' });
    await scene.stop();
    const logoutUrl = `${scene.service.url}/auth/logout/${scene.service.applicationName}`;
    expect(lines.join('\n')).toContain(`the identity provider notifies the service at ${logoutUrl};`);
    expect(scene.service.received.of('logout')).toEqual([]);
  });
});
