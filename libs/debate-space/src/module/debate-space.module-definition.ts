import { ConfigurableModuleBuilder, Logger, type Provider } from '@nestjs/common';
import { HttpAdapterHost, ModulesContainer } from '@nestjs/core';
import { DebateSpaceOutbox } from '../api/debate-space-outbox.js';
import { getDebateSpaceToken, INJECTABLES } from '../api/debate-space.tokens.js';
import { ErasureStorage } from '../erasure/erasure-storage.js';
import { DebateSpaceOptionsError } from '../errors.js';
import { JobRunner } from '../jobs/job-runner.js';
import { FallbackQueue } from '../logout/fallback-queue.js';
import { LogoutTokenSigner } from '../logout/logout-token-signer.js';
import { Transport } from '../service/transport.js';
import { SessionRegistry } from '../session-end/expiry/session-registry.js';
import { SessionEndDetector } from '../session-end/session-end-detector.js';
import { EndRecorder } from '../session-end/verdict/end-recorder.js';
import { Application } from './application.js';
import { bootWarnings } from './boot-warnings.js';
import { DebateSpaceLifecycle } from './debate-space.lifecycle.js';
import type { DebateSpaceModuleOptions } from './module-options.js';
import { providers } from './providers.js';
import { resolveOptions, type ResolvedOptions } from './resolve-options.js';

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
        exports: INJECTABLES.map((provided) => getDebateSpaceToken(name, provided)),
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

/** All providers of one application. Each DebateSpaceModule is a module of its own, so that classes can be the tokens. */
function providersOf(name: string | undefined): Provider[] {
  const marker = `DebateSpaceModule(${name ?? ''})`;
  return [
    { provide: marker, useValue: marker },
    {
      provide: Application,
      useFactory: (options: ResolvedOptions, modules: ModulesContainer) => {
        assertOnlyOne(modules, marker, name);
        return Application.open(options);
      },
      inject: [MODULE_OPTIONS_TOKEN, ModulesContainer],
    },
    ...providers,
    lifecycleOf(name),
    ...(name === undefined
      ? []
      : INJECTABLES.map((provided) => ({
          provide: getDebateSpaceToken(name, provided),
          useExisting: provided,
        }))),
  ];
}

function lifecycleOf(name: string | undefined): Provider {
  const inject = [
    ...[Application, SessionEndDetector, EndRecorder, SessionRegistry, JobRunner, FallbackQueue],
    ...[DebateSpaceOutbox, ErasureStorage, Transport, LogoutTokenSigner, ModulesContainer],
    { token: HttpAdapterHost, optional: true },
  ];
  const logger = new Logger(name === undefined ? 'DebateSpace' : `DebateSpace(${name})`);
  return {
    provide: DebateSpaceLifecycle,
    inject,
    useFactory: (
      application: Application,
      detector: SessionEndDetector,
      recorder: EndRecorder,
      registry: SessionRegistry,
      runner: JobRunner,
      logouts: FallbackQueue,
      outbox: DebateSpaceOutbox,
      erasures: ErasureStorage,
      transport: Transport,
      signer: LogoutTokenSigner,
      modules: ModulesContainer,
      adapterHost?: HttpAdapterHost,
    ) => {
      const warnings = () => bootWarnings(application, signer, optionsOfAll(modules));
      const parts = {
        application,
        detector,
        recorder,
        registry,
        runner,
        logouts,
        outbox,
        erasures,
        transport,
      };
      return new DebateSpaceLifecycle(parts, adapterHost, logger, warnings);
    },
  };
}

/** Two of one name would both report every end, and only one of them would be injected. */
function assertOnlyOne(modules: ModulesContainer, marker: string, name: string | undefined): void {
  const marked = [...modules.values()].filter((module) => module.providers.has(marker));
  if (marked.length < 2) return;
  const which = name === undefined ? 'without a name' : `of the name '${name}'`;
  throw new DebateSpaceOptionsError([
    `name: DebateSpaceModule is imported twice ${which}; give each application its own, or import one module`,
  ]);
}

/** Of every DebateSpaceModule of this Nest app, whatever its name. */
function optionsOfAll(modules: ModulesContainer): ResolvedOptions[] {
  return [...modules.values()].flatMap((module) => {
    const options = module.providers.get(MODULE_OPTIONS_TOKEN)?.instance as
      ResolvedOptions | null | undefined;
    return options ? [options] : [];
  });
}
