import { randomBytes } from 'node:crypto';
import { Logger } from '@nestjs/common';

/** The secret that signs the session cookie; a random one, which the log says, when none is given. */
export function sessionSecret(given: string | undefined): string {
  if (given !== undefined && given !== '') return given;
  new Logger('Session').warn(
    'SESSION_SECRET is not set. A random one serves until the next start; set it to keep sessions valid.',
  );
  return randomBytes(32).toString('base64url');
}
