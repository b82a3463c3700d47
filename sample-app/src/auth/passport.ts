import {
  createParamDecorator,
  Injectable,
  UnauthorizedException,
  type ExecutionContext,
} from '@nestjs/common';
import { AuthGuard, PassportSerializer, PassportStrategy } from '@nestjs/passport';
import type { Request } from 'express';
import { Strategy } from 'passport-local';
import { Accounts, type User } from './accounts.js';

@Injectable()
export class LocalStrategy extends PassportStrategy(Strategy) {
  constructor(private readonly accounts: Accounts) {
    super();
  }

  async validate(uid: string, password: string): Promise<User | false> {
    return (await this.accounts.authenticate(uid, password)) ?? false;
  }
}

/** Keeps only the uid in the session. nestjs-debate-space finds it there: `session.passport.user`. */
@Injectable()
export class SessionSerializer extends PassportSerializer {
  constructor(private readonly accounts: Accounts) {
    super();
  }

  serializeUser(user: User, done: (error: Error | null, uid: string) => void): void {
    done(null, user.uid);
  }

  deserializeUser(uid: string, done: (error: Error | null, user: User | false) => void): void {
    done(null, this.accounts.find(uid) ?? false);
  }
}

/** Checks the password, and replaces the session with one of the user. */
@Injectable()
export class LoginGuard extends AuthGuard('local') {
  override async canActivate(context: ExecutionContext): Promise<boolean> {
    await super.canActivate(context);
    await this.logIn(context.switchToHttp().getRequest<Request>());
    return true;
  }
}

/** The user of the session. */
export const CurrentUser = createParamDecorator((_data: unknown, context: ExecutionContext): User => {
  const { user } = context.switchToHttp().getRequest<Request>();
  if (user) return user;
  throw new UnauthorizedException();
});
