import { fileURLToPath } from 'node:url';
import { Module, RequestMethod, type MiddlewareConsumer, type NestModule } from '@nestjs/common';
import { ConfigModule, ConfigService } from '@nestjs/config';
import { APP_FILTER, APP_GUARD } from '@nestjs/core';
import { MulterModule } from '@nestjs/platform-express';
import { PassportModule } from '@nestjs/passport';
import { DebateSpaceModule, type DebateSpaceModuleOptions } from 'nestjs-debate-space';
import { AdminController } from './admin/admin.controller.js';
import { BulkErasureController } from './admin/bulk-erasure.controller.js';
import { OrphansController } from './admin/orphans.controller.js';
import { Orphans } from './admin/orphans.js';
import { OutboxController } from './admin/outbox.controller.js';
import { RunningErasureController } from './admin/running-erasure.controller.js';
import { UploadedLists } from './admin/uploaded-lists.js';
import { SingleSignOnStandIn } from './debate/single-sign-on-stand-in.js';
import { ErasureTroubles } from './erasure/erasure-troubles.js';
import { keepAdministrators } from './erasure/keep-administrators.js';
import { MeController } from './erasure/me.controller.js';
import { ReceiptController } from './erasure/receipt.controller.js';
import { Accounts } from './login/accounts.js';
import { AccountsModule } from './login/accounts.module.js';
import { LocalStrategy } from './login/local.strategy.js';
import { loginLimits } from './login/login-limits.js';
import { LoginController } from './login/login.controller.js';
import { SessionSerializer } from './login/session.serializer.js';
import { HomeController } from './pages/home.controller.js';
import { DebateSpaceErrorFilter } from './problems/debate-space-error.filter.js';
import { HttpExceptionFilter } from './problems/http-exception.filter.js';
import { CsrfGuard } from './session/csrf.guard.js';
import { Sessions } from './session/sessions.js';
import { storageFrom } from './storage.js';
import { UserListController } from './users/user-list.controller.js';

@Module({
  imports: [
    ConfigModule.forRoot({
      isGlobal: true,
      // Beside package.json, whichever folder the app is started from.
      envFilePath: fileURLToPath(new URL('../.env', import.meta.url)),
    }),
    DebateSpaceModule.forRootAsync({
      imports: [AccountsModule],
      inject: [ConfigService, Accounts],
      useFactory: (config: ConfigService, accounts: Accounts): DebateSpaceModuleOptions => ({
        apiKey: config.getOrThrow<string>('DEBATE_SPACE_API_KEY'),
        secretKey: config.getOrThrow<string>('DEBATE_SPACE_SECRET_KEY'),
        applicationName: config.getOrThrow<string>('DEBATE_SPACE_APPLICATION_NAME'),
        // What waits for delivery survives a crash; the library's own default is memory.
        storage: storageFrom(config).engine,
        erasure: { beforeErase: keepAdministrators(accounts) },
        // authUrl is left out: the library reads DEBATE_SPACE_AUTH_URL, and says so when it is missing.
      }),
    }),
    AccountsModule,
    PassportModule.register({ session: true }),
    MulterModule.registerAsync({ useClass: UploadedLists }),
  ],
  controllers: [
    HomeController,
    LoginController,
    MeController,
    ReceiptController,
    AdminController,
    UserListController,
    BulkErasureController,
    RunningErasureController,
    OrphansController,
    OutboxController,
  ],
  providers: [
    ErasureTroubles,
    LocalStrategy,
    Orphans,
    Sessions,
    SessionSerializer,
    SingleSignOnStandIn,
    { provide: APP_GUARD, useClass: CsrfGuard },
    { provide: APP_FILTER, useClass: HttpExceptionFilter },
    { provide: APP_FILTER, useClass: DebateSpaceErrorFilter },
  ],
})
export class AppModule implements NestModule {
  configure(consumer: MiddlewareConsumer): void {
    consumer.apply(...loginLimits()).forRoutes({ path: 'login', method: RequestMethod.POST });
  }
}
