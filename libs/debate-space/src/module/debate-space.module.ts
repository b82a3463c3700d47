import { Module, type ConfigurableModuleAsyncOptions, type DynamicModule } from '@nestjs/common';
import type { SessionRecord } from 'nestjs-session-end';
import { DebateSpaceOptionsError } from '../errors.js';
import { optionProblem } from '../options/option-problem.js';
import type { DebateSpaceModuleOptions } from './module-options.js';
import { ConfigurableModuleClass, type DebateSpaceModuleExtras } from './debate-space.module-definition.js';

type AsyncOptions<Session extends object> = ConfigurableModuleAsyncOptions<
  DebateSpaceModuleOptions<Session>,
  'createDebateSpaceOptions'
> &
  DebateSpaceModuleExtras;

/**
 * Logs users out of the debate space whenever their session ends here, and provides `DebateSpaceService`.
 *
 * `forRoot(options)` and `forRootAsync({ imports, inject, useFactory | useClass | useExisting })` check the options at
 * boot and throw a `DebateSpaceOptionsError` that names every problem. Both take `isGlobal` (default true) and `name`
 * (for several applications in one host).
 */
@Module({})
export class DebateSpaceModule extends ConfigurableModuleClass {
  /** Imports the plugin with options that are known when the module is defined. */
  static override forRoot<Session extends object = SessionRecord>(
    options: DebateSpaceModuleOptions<Session> & DebateSpaceModuleExtras,
  ): DynamicModule {
    // Nothing at all, from JavaScript: the error that names what is missing, not one from inside Nest.
    return super.forRoot(Object(options) as DebateSpaceModuleOptions);
  }

  /** Imports the plugin with options that other providers know, such as a `ConfigService`. */
  static override forRootAsync<Session extends object = SessionRecord>(
    options: AsyncOptions<Session>,
  ): DynamicModule {
    const given = Object(options) as AsyncOptions<SessionRecord>;
    const { useFactory, useClass, useExisting } = given;
    const hasSource = [useFactory, useClass, useExisting].some((source) => source !== undefined);
    // Otherwise Nest says that it cannot resolve a dependency called `undefined`.
    return super.forRootAsync(hasSource ? given : { ...given, inject: [], useFactory: refuseWithoutFactory });
  }
}

function refuseWithoutFactory(): never {
  throw new DebateSpaceOptionsError([
    optionProblem(
      'useFactory',
      'must be given to forRootAsync, or useClass or useExisting',
      'forRootAsync({ inject: [ConfigService], useFactory: (config: ConfigService) => ({ … }) })',
    ),
  ]);
}
