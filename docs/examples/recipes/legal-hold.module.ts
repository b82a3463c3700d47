import { Injectable, Module } from '@nestjs/common';
import { DebateSpaceModule, type DebateSpaceModuleOptions } from 'nestjs-debate-space';
import { sqliteStorage } from 'nestjs-debate-space/sqlite';

@Injectable()
export class LegalHolds {
  /** From a table of its own, which outlives the account. */
  includes(uid: string): Promise<boolean> {
    return Promise.resolve(uid === '');
  }
}

@Module({ providers: [LegalHolds], exports: [LegalHolds] })
export class LegalModule {}

@Module({
  imports: [
    DebateSpaceModule.forRootAsync({
      imports: [LegalModule],
      inject: [LegalHolds],
      useFactory: (holds: LegalHolds): DebateSpaceModuleOptions => ({
        apiKey: process.env.DEBATE_SPACE_API_KEY ?? '',
        secretKey: process.env.DEBATE_SPACE_SECRET_KEY ?? '',
        storageKey: process.env.DEBATE_SPACE_STORAGE_KEY,
        applicationName: process.env.DEBATE_SPACE_APPLICATION_NAME ?? '',
        storage: sqliteStorage({ path: '/var/lib/my-app/debate-space.db' }),
        erasure: {
          // If the table cannot be read, this throws, and nobody is erased.
          beforeErase: async ({ uid }) => ((await holds.includes(uid)) ? { veto: 'legal hold' } : undefined),
        },
      }),
    }),
  ],
})
export class AppModule {}
