import {
  ConfigurableModuleBuilder,
  Logger,
  type Abstract,
  type InjectionToken,
  type Provider,
} from '@nestjs/common';
import { HttpAdapterHost, ModulesContainer } from '@nestjs/core';
import { DebateSpaceErasures } from '../api/debate-space-erasures.js';
import { DebateSpaceEvents } from '../api/debate-space-events.js';
import { DebateSpaceHealth } from '../api/debate-space-health.js';
import { DebateSpaceOutbox } from '../api/debate-space-outbox.js';
import { DebateSpaceRuntime } from './debate-space-runtime.js';
import { DebateSpaceLifecycle } from './debate-space.lifecycle.js';
import type { DebateSpaceModuleOptions } from './module-options.js';
import { DebateSpaceService } from '../api/debate-space.service.js';
import { getDebateSpaceToken } from '../api/debate-space.tokens.js';
import { DebateSpaceOptionsError } from '../errors.js';
import { resolveOptions, type ResolvedOptions } from './resolve-options.js';
import { sharedApiKeyWarning } from './shared-api-key.js';
import { EndRecorder } from '../session-end/verdict/end-recorder.js';

export interface DebateSpaceModuleExtras {
  /** Whether the providers are there for every module. Default: true. */
  isGlobal?: boolean | undefined;
  /** For several applications in one host: injected by `@InjectDebateSpace(name)`. Default: none, injected by class. */
  name?: string | undefined;
}

export const { ConfigurableModuleClass, MODULE_OPTIONS_TOKEN } =
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
        providers: [...(definition.providers ?? []).map(sealed), ...providersOf(name)],
        exports: [
          DebateSpaceService,
          DebateSpaceErasures,
          DebateSpaceEvents,
          DebateSpaceOutbox,
          DebateSpaceHealth,
          EndRecorder,
        ].map((provided) => getDebateSpaceToken<unknown>(name, provided)),
      }),
    )
    .build();

/**
 * Has the options checked and locked away before Nest stores them: what stands under the options token is the resolved
 * options, without a readable key.
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

/** Two of one name would both report every end, and only one of them would be injected. */
function assertOnlyOne(modules: ModulesContainer, runtime: InjectionToken, name: string | undefined): void {
  const providing = [...modules.values()].filter(({ providers }) => providers.has(runtime));
  if (providing.length < 2) return;
  const which = name === undefined ? 'without a name' : `of the name '${name}'`;
  throw new DebateSpaceOptionsError([
    `name: DebateSpaceModule is imported twice ${which}; give each application its own, or import one module`,
  ]);
}

/** Of every DebateSpaceModule of this Nest app, whatever its name. */
function optionsOfAll(modules: ModulesContainer): ResolvedOptions[] {
  return [...modules.values()].flatMap(({ providers }) => {
    const options = providers.get(MODULE_OPTIONS_TOKEN)?.instance as ResolvedOptions | null | undefined;
    return options ? [options] : [];
  });
}

/** All providers of one application. They stand under tokens of its name, so that no other application finds them. */
function providersOf(name: string | undefined): Provider[] {
  const runtime = getDebateSpaceToken<unknown>(name, DebateSpaceRuntime);
  const part = (provided: Abstract<unknown>, of: (runtime: DebateSpaceRuntime) => unknown): Provider => ({
    provide: getDebateSpaceToken(name, provided),
    useFactory: of,
    inject: [runtime],
  });
  return [
    {
      provide: runtime,
      useFactory: (options: ResolvedOptions, modules: ModulesContainer) => {
        assertOnlyOne(modules, runtime, name);
        return DebateSpaceRuntime.open(options);
      },
      inject: [MODULE_OPTIONS_TOKEN, ModulesContainer],
    },
    part(DebateSpaceService, ({ service }) => service),
    part(DebateSpaceErasures, ({ erasures }) => erasures),
    part(DebateSpaceEvents, ({ events }) => events),
    part(DebateSpaceOutbox, ({ operators }) => operators),
    part(DebateSpaceHealth, ({ health }) => health),
    part(EndRecorder, ({ recorder }) => recorder),
    {
      provide: getDebateSpaceToken<unknown>(name, DebateSpaceLifecycle),
      useFactory: (
        ready: DebateSpaceRuntime,
        options: ResolvedOptions,
        modules: ModulesContainer,
        adapterHost?: HttpAdapterHost,
      ) =>
        new DebateSpaceLifecycle(
          ready,
          options,
          adapterHost,
          new Logger(name === undefined ? 'DebateSpace' : `DebateSpace(${name})`),
          () => sharedApiKeyWarning(options, optionsOfAll(modules)),
        ),
      inject: [runtime, MODULE_OPTIONS_TOKEN, ModulesContainer, { token: HttpAdapterHost, optional: true }],
    },
  ];
}
