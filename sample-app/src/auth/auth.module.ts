import { Module } from '@nestjs/common';
import { APP_GUARD } from '@nestjs/core';
import { PassportModule } from '@nestjs/passport';
import { AccessGuard } from './access.guard.js';
import { Accounts } from './accounts.js';
import { AuthController } from './auth.controller.js';
import { CsrfGuard } from './csrf.guard.js';
import { LocalStrategy, SessionSerializer } from './passport.js';
import { Sessions } from './sessions.js';
import { SimulatedSignIn } from './simulated-sign-in.js';

@Module({
  imports: [PassportModule.register({ session: true })],
  controllers: [AuthController],
  providers: [
    Accounts,
    LocalStrategy,
    Sessions,
    SessionSerializer,
    SimulatedSignIn,
    { provide: APP_GUARD, useClass: AccessGuard },
    { provide: APP_GUARD, useClass: CsrfGuard },
  ],
  exports: [Accounts, Sessions],
})
export class AuthModule {}
