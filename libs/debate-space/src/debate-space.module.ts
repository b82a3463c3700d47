import { Module } from '@nestjs/common';
import { ConfigurableModuleClass } from './debate-space.module-definition.js';

/**
 * Logs users out of the debate space whenever their session ends here, and provides `DebateSpaceService`.
 *
 * `forRoot(options)` and `forRootAsync({ imports, inject, useFactory | useClass | useExisting })` check the options at
 * boot and throw a `DebateSpaceOptionsError` that names every problem. Both take `isGlobal` (default true) and `name`
 * (for several applications in one host).
 */
@Module({})
export class DebateSpaceModule extends ConfigurableModuleClass {}
