import { InvalidLogoutToken } from './invalid-logout-token.js';
import { isJsonObject, type JsonObject } from './json-object.js';

/** The event a logout token must carry (OpenID Connect Back-Channel Logout 1.0, section 2.4). */
export const LOGOUT_EVENT = 'http://schemas.openid.net/event/backchannel-logout';

/** The same section: a logout token should expire at most two minutes after it was issued. */
const MAX_LIFETIME_SECONDS = 120;

/** The claims of an accepted logout token. `iat` and `exp` in seconds since the epoch. */
export interface LogoutClaims extends JsonObject {
  readonly iss: string;
  readonly aud: string | readonly string[];
  readonly sub: string;
  readonly jti: string;
  readonly iat: number;
  readonly exp: number;
}

/** Who signs the token, and what its claims must say of that. */
export interface Sender {
  readonly issuer: string;
  readonly audience: string;
  /** What these are, in a message. */
  readonly issuerName: string;
  readonly audienceName: string;
}

/** What the claims are held against. */
export interface LogoutClaimRules extends Sender {
  readonly toleranceSeconds: number;
  readonly nowSeconds: number;
}

/** @throws InvalidLogoutToken naming the first rule that is broken (section 5; specification, section 2.6) */
export function checkLogoutClaims(claims: JsonObject, rules: LogoutClaimRules): LogoutClaims {
  const { iss, aud, sub, jti, iat, exp, nbf, events } = claims;
  if (iss !== rules.issuer) refuse(`iss is not ${rules.issuerName}`);
  if (!isAudience(aud) || ![aud].flat().includes(rules.audience))
    refuse(`aud does not name ${rules.audienceName}`);
  if (!isText(sub)) refuse('sub is not a non-empty string');
  if (!isText(jti)) refuse('jti is not a non-empty string');
  if (!isTime(iat)) refuse('iat is not a number');
  if (!isTime(exp)) refuse('exp is not a number');
  if (iat > rules.nowSeconds + rules.toleranceSeconds) refuse('iat lies in the future');
  if (nbf !== undefined && (!isTime(nbf) || nbf > rules.nowSeconds + rules.toleranceSeconds))
    refuse('nbf is not reached'); // RFC 7519, section 4.1.5
  if (exp <= rules.nowSeconds - rules.toleranceSeconds) refuse('exp has passed');
  if (exp <= iat) refuse('exp is not after iat');
  if (exp - iat > MAX_LIFETIME_SECONDS) refuse(`exp is more than ${MAX_LIFETIME_SECONDS} s after iat`);
  if (!isJsonObject(events) || !isJsonObject(events[LOGOUT_EVENT])) refuse('events lacks the logout event');
  if (Object.hasOwn(claims, 'nonce')) refuse('nonce is forbidden in a logout token');
  return { ...claims, iss: rules.issuer, aud, sub, jti, iat, exp };
}

function refuse(reason: string): never {
  throw new InvalidLogoutToken(reason);
}

function isText(value: unknown): value is string {
  return typeof value === 'string' && value !== '';
}

function isAudience(value: unknown): value is string | string[] {
  return isText(value) || (Array.isArray(value) && value.every(isText));
}

/** JSON knows no infinity, yet `1e999` parses as one. */
function isTime(value: unknown): value is number {
  return typeof value === 'number' && Number.isFinite(value);
}
