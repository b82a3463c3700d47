import { fileURLToPath } from 'node:url';
import { Global, Module } from '@nestjs/common';
import { ConfigService } from '@nestjs/config';
import { Storage } from './storage.js';

/** Beside package.json, whichever folder the app is started from. */
const FOLDER = fileURLToPath(new URL('../..', import.meta.url));

/**
 * DebateSpaceModule is global, and Nest closes global modules last: the later ones in the list of imports first. As a
 * global module that stands before it, this one is closed after it.
 */
@Global()
@Module({
  providers: [
    {
      provide: Storage,
      inject: [ConfigService],
      useFactory: (config: ConfigService) => {
        const setting = config.get<string>('DEBATE_SPACE_STORAGE') ?? '';
        return Storage.open(setting === '' ? 'lmdb:.storage' : setting, FOLDER);
      },
    },
  ],
  exports: [Storage],
})
export class StorageModule {}
