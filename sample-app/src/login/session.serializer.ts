import { Injectable } from '@nestjs/common';
import { PassportSerializer } from '@nestjs/passport';
import { demoUser, type DemoUser } from './demo-users.js';

/** Keeps the uid alone in the session, where nestjs-debate-space finds it: `session.passport.user`. */
@Injectable()
export class SessionSerializer extends PassportSerializer {
  serializeUser(user: DemoUser, done: (error: Error | null, uid: string) => void): void {
    done(null, user.uid);
  }

  deserializeUser(uid: string, done: (error: Error | null, user: DemoUser | false) => void): void {
    done(null, demoUser(uid) ?? false);
  }
}
