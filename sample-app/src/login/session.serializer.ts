import { Injectable } from '@nestjs/common';
import { PassportSerializer } from '@nestjs/passport';
import { Accounts } from './accounts.js';
import type { User } from './user.js';

declare module 'express-session' {
  interface SessionData {
    /** Passport keeps here what `serializeUser` returns. */
    passport?: { user?: string };
  }
}

/** Keeps the uid alone in the session, where nestjs-debate-space finds it: `session.passport.user`. */
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
