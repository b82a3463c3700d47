import { createHmac, randomUUID } from 'node:crypto';
import { LOGOUT_EVENT } from '../logout-token/logout-claims.js';
import { DEMO_CREDENTIALS } from '../simulator-options.js';

type Members = Record<string, unknown>;

const digests: Partial<Record<string, string>> = { HS256: 'sha256', HS384: 'sha384', HS512: 'sha512' };

export const encoded = (value: unknown): string => Buffer.from(JSON.stringify(value)).toString('base64url');

/** Seconds since the epoch, a number of seconds from now. */
export const secondsFromNow = (seconds: number): number => Math.floor(Date.now() / 1000) + seconds;

/** The claims of a valid logout token for `u-1`; a member set to undefined is left out. */
export function logoutClaims(changes: Members = {}): Members {
  return {
    iss: DEMO_CREDENTIALS.applicationName,
    aud: DEMO_CREDENTIALS.apiKey,
    sub: 'u-1',
    jti: randomUUID(),
    iat: secondsFromNow(0),
    exp: secondsFromNow(120),
    events: { [LOGOUT_EVENT]: {} },
    ...changes,
  };
}

/** A JWS over any claims, signed by hand so that no library smooths out what a test breaks. */
export function signedToken(
  claims: unknown = logoutClaims(),
  header: Members = {},
  key: string | Buffer = DEMO_CREDENTIALS.secretKey,
): string {
  const whole = { alg: 'HS256', typ: 'logout+jwt', ...header };
  const input = `${encoded(whole)}.${encoded(claims)}`;
  const digest = digests[whole.alg] ?? 'sha256';
  return `${input}.${createHmac(digest, key).update(input).digest('base64url')}`;
}
