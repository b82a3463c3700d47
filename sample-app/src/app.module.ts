import { fileURLToPath } from 'node:url';
import { Module, StandardSchemaValidationPipe } from '@nestjs/common';
import { ConfigModule, ConfigService } from '@nestjs/config';
import { APP_FILTER, APP_PIPE } from '@nestjs/core';
import { DebateSpaceModule, type DebateSpaceModuleOptions } from 'nestjs-debate-space';
import { sqliteStorage } from 'nestjs-debate-space/sqlite';
import { AdminController } from './admin/admin.controller.js';
import { Accounts } from './auth/accounts.js';
import { AuthModule } from './auth/auth.module.js';
import { ENVIRONMENT, type Environment } from './environment.js';
import { MyDataController } from './my-data/my-data.controller.js';
import { ReceiptController } from './my-data/receipt.controller.js';
import { ProblemFilter } from './problem.filter.js';

const PACKAGE = new URL('../', import.meta.url);

@Module({
  imports: [
    ConfigModule.forRoot({
      isGlobal: true,
      envFilePath: fileURLToPath(new URL('.env', PACKAGE)),
      validationSchema: ENVIRONMENT,
    }),
    DebateSpaceModule.forRootAsync({
      imports: [AuthModule],
      inject: [ConfigService, Accounts],
      // `authUrl` is left out: the plugin reads DEBATE_SPACE_AUTH_URL itself.
      useFactory: (
        config: ConfigService<Environment, true>,
        accounts: Accounts,
      ): DebateSpaceModuleOptions => ({
        apiKey: config.get('DEBATE_SPACE_API_KEY'),
        secretKey: config.get('DEBATE_SPACE_SECRET_KEY'),
        applicationName: config.get('DEBATE_SPACE_APPLICATION_NAME'),
        // Logouts and erasures that wait survive a crash. The default storage is memory.
        storage: sqliteStorage({
          path:
            config.get<string | undefined>('STORAGE_PATH') ??
            fileURLToPath(new URL('.storage/debate-space.db', PACKAGE)),
        }),
        erasure: {
          // Runs immediately before each erasure. A real app looks for a legal hold here, for example.
          beforeErase: ({ uid }) =>
            accounts.find(uid)?.role === 'administrator'
              ? { veto: 'administrators are not erased' }
              : undefined,
        },
      }),
    }),
    AuthModule,
  ],
  controllers: [MyDataController, ReceiptController, AdminController],
  providers: [
    { provide: APP_PIPE, useClass: StandardSchemaValidationPipe },
    { provide: APP_FILTER, useClass: ProblemFilter },
  ],
})
export class AppModule {}
