import type { RequestHandler } from 'express';
import passport from 'passport';

/** How a host keeps a user in its session, or serializes one for passport. */
export interface UserShape {
  readonly user: (name: string) => unknown;
  readonly name: (user: unknown) => string | undefined;
}

export const byUid: UserShape = {
  user: (uid) => ({ uid }),
  name: (user) => (user as { uid: string } | undefined)?.uid,
};

/** passport keeps the uid alone. */
export const bareUid: UserShape = { user: (uid) => uid, name: (user) => user as string };

export function passportHandlers({ user, name }: UserShape): RequestHandler[] {
  const authenticator = new passport.Passport();
  authenticator.serializeUser((known, done) => {
    done(null, user((known as { uid: string }).uid));
  });
  authenticator.deserializeUser((stored, done) => {
    done(null, { uid: name(stored) } as Express.User);
  });
  return [authenticator.initialize() as RequestHandler, authenticator.session() as RequestHandler];
}
