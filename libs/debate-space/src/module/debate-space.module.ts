import {
  Module,
  type ConfigurableModuleAsyncOptions,
  type DynamicModule,
  ConfigurableModuleBuilder,
  Logger,
  type Abstract,
  type Provider,
} from '@nestjs/common';
import type { SessionRecord } from '../session-end/session-end.js';
import type { DebateSpaceModuleOptions } from './module-options.js';
import { ModulesContainer } from '@nestjs/core';
import { EXPORTED, getDebateSpaceToken } from '../api/debate-space.tokens.js';
import { DebateSpaceOptionsError } from '../errors.js';
import { Application } from './application.js';
import { providersOf } from './providers.js';
import { optionProblem, resolveOptions, type ResolvedOptions } from './resolve-options.js';

/** Arguments of `forRoot` and `forRootAsync` in addition to the options. */
export interface DebateSpaceModuleExtras {
  /** Whether all modules of the host can inject the providers. @defaultValue `true` */
  isGlobal?: boolean | undefined;
  /** For several applications in one host: `@InjectDebateSpace(name)` injects its providers. @defaultValue none: by class */
  name?: string | undefined;
}

type AsyncOptions<Session extends object> = ConfigurableModuleAsyncOptions<
  DebateSpaceModuleOptions<Session>,
  'createDebateSpaceOptions'
> &
  DebateSpaceModuleExtras;

const { ConfigurableModuleClass, MODULE_OPTIONS_TOKEN } =
  new ConfigurableModuleBuilder<DebateSpaceModuleOptions>({
    moduleName: 'DebateSpace',
    alwaysTransient: true,
  })
    .setClassMethodName('forRoot')
    .setFactoryMethodName('createDebateSpaceOptions')
    .setExtras<DebateSpaceModuleExtras>(
      { isGlobal: true, name: undefined },
      (definition, { isGlobal, name }) => ({
        ...definition,
        global: isGlobal ?? true,
        providers: [...(definition.providers ?? []).map(sealed), ...applicationOf(name)],
        exports: Object.values<Abstract<unknown>>(EXPORTED).map((each) => getDebateSpaceToken(name, each)),
      }),
    )
    .build();

/**
 * Logs users out of the debate space when their session in the host ends, and provides `DebateSpaceService`,
 * `DebateSpaceErasures`, `DebateSpaceEvents`, `DebateSpaceOutbox` and `DebateSpaceHealth`.
 *
 * @throws {@link DebateSpaceOptionsError} at boot, with every problem of the options
 * @throws `StorageError` at boot, when the storage cannot be used
 *
 * @example
 * ```ts
 * @Module({
 *   imports: [
 *     DebateSpaceModule.forRootAsync({
 *       inject: [ConfigService],
 *       useFactory: (config: ConfigService): DebateSpaceModuleOptions => ({
 *         apiKey: config.getOrThrow('DEBATE_SPACE_API_KEY'),
 *         secretKey: config.getOrThrow('DEBATE_SPACE_SECRET_KEY'),
 *         applicationName: 'my-app',
 *         authUrl: 'https://debate.example.org',
 *       }),
 *     }),
 *   ],
 * })
 * export class AppModule {}
 * ```
 */
@Module({})
export class DebateSpaceModule extends ConfigurableModuleClass {
  /** Imports the plugin with options that are known when the module is defined. */
  static override forRoot<Session extends object = SessionRecord>(
    options: DebateSpaceModuleOptions<Session> & DebateSpaceModuleExtras,
  ): DynamicModule {
    return super.forRoot(options as DebateSpaceModuleOptions);
  }

  /** Imports the plugin with options from other providers, such as a `ConfigService`. */
  static override forRootAsync<Session extends object = SessionRecord>(
    options: AsyncOptions<Session>,
  ): DynamicModule {
    return super.forRootAsync(options as AsyncOptions<SessionRecord>);
  }
}

/**
 * Checks the options before Nest stores them: the provider of the options token has the resolved options, without a readable
 * key.
 */
function sealed(provider: Provider): Provider {
  if (typeof provider === 'function' || provider.provide !== MODULE_OPTIONS_TOKEN) return provider;
  if ('useValue' in provider) {
    return { provide: provider.provide, useFactory: () => resolveOptions(provider.useValue) };
  }
  if (!('useFactory' in provider)) return provider;
  const { useFactory } = provider;
  return { ...provider, useFactory: async (...args: unknown[]) => resolveOptions(await useFactory(...args)) };
}

/** Each `forRoot` makes its own Nest module, so that classes can be the tokens in all applications. */
function applicationOf(name: string | undefined): Provider[] {
  const label = name === undefined ? 'DebateSpace' : `DebateSpace(${name})`;
  const token = Symbol.for(`nestjs-debate-space: ${label}`);
  return [
    { provide: token, useValue: new Logger(label) },
    {
      provide: Application,
      useFactory: (options: ResolvedOptions, modules: ModulesContainer, logger: Logger) => {
        assertOnlyOne(modules, token, name);
        return Application.open(options, logger);
      },
      inject: [MODULE_OPTIONS_TOKEN, ModulesContainer, token],
    },
    ...providersOf(name),
  ];
}

/** Two applications of one name would both report every logout, and only one of them could be injected. */
function assertOnlyOne(modules: ModulesContainer, token: symbol, name: string | undefined): void {
  const labeled = [...modules.values()].filter((module) => module.providers.has(token));
  if (labeled.length < 2) return;
  const which = name === undefined ? 'without a name' : `of the name '${name}'`;
  throw new DebateSpaceOptionsError([
    optionProblem(
      'name',
      `is given twice: DebateSpaceModule is imported twice ${which}`,
      'give each application its own, or import one module',
    ),
  ]);
}
