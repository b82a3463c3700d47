import { Module, type DynamicModule } from '@nestjs/common';
import type { DebateSpaceModuleOptions } from './module-options.js';
import { ConfigurableModuleClass, type DebateSpaceModuleExtras } from './debate-space.module-definition.js';

/**
 * Logs users out of the debate space whenever their session ends here, and provides `DebateSpaceService`.
 *
 * `forRoot(options)` and `forRootAsync({ imports, inject, useFactory | useClass | useExisting })` check the options at
 * boot and throw a `DebateSpaceOptionsError` that names every problem. Both take `isGlobal` (default true) and `name`
 * (for several applications in one host).
 */
@Module({})
export class DebateSpaceModule extends ConfigurableModuleClass {
  static override forRoot(options: DebateSpaceModuleOptions & DebateSpaceModuleExtras): DynamicModule {
    // Nothing at all, from JavaScript: the error that names what is missing, not one from inside Nest.
    return super.forRoot(Object(options) as typeof options);
  }
}
