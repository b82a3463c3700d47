import { fileURLToPath } from 'node:url';
import { Module } from '@nestjs/common';
import { ConfigService } from '@nestjs/config';
import { Storage } from './storage.js';

/** Beside package.json, whichever folder the app is started from. */
const FOLDER = fileURLToPath(new URL('../..', import.meta.url));

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
