import type { ServiceClock } from './state/users.js';
import type { SimulatorSettings } from './simulator-options.js';
import { createHmac, timingSafeEqual } from 'node:crypto';

/** A JSON object whose members are not known yet. */
export type JsonObject = Readonly<Record<string, unknown>>;

export function isJsonObject(value: unknown): value is JsonObject {
  return typeof value === 'object' && value !== null && !Array.isArray(value);
}

/** A logout token that is refused. The message names the broken rule and holds no part of the token. */
export class InvalidLogoutToken extends Error {
  override readonly name = 'InvalidLogoutToken';
}

type VerifierSettings = Pick<
  SimulatorSettings,
  'secretKey' | 'secretKeyEncoding' | 'algorithms' | 'applicationName' | 'apiKey'
>;

/**
 * Verifies the logout tokens that the client application signs with its secret key (section 5; OpenID Connect Back-Channel
 * Logout 1.0, section 2.6). Written on node:crypto alone, so that a sender built on a JWT library does not share its mistakes.
 */
export class LogoutTokenVerifier {
  readonly #settings: VerifierSettings;
  readonly #key: Buffer;
  readonly #clock: ServiceClock;
  /** jti to exp: a token is remembered for as long as it could be retried. */
  readonly #seen = new Map<string, number>();

  constructor(settings: VerifierSettings, clock: ServiceClock) {
    this.#settings = settings;
    this.#key = Buffer.from(settings.secretKey, settings.secretKeyEncoding);
    this.#clock = clock;
  }

  /** @throws InvalidLogoutToken naming the broken rule */
  verify(token: string): LogoutClaims {
    const { header, claims: unchecked, signingInput, signature } = parseCompactJws(token);
    const algorithm = this.#settings.algorithms.find((accepted) => accepted === header.alg);
    if (algorithm === undefined) refuse('alg is not accepted');
    if (Object.hasOwn(header, 'crit')) refuse('crit names extensions nobody knows here');
    const { typ = 'logout+jwt' } = header;
    if (typeof typ !== 'string' || typ.toLowerCase() !== 'logout+jwt') refuse('typ is not logout+jwt');
    if (!isSignedWith(this.#key, algorithm, signingInput, signature)) refuse('the signature does not match');
    const nowSeconds = this.#clock.nowSeconds();
    const claims = checkLogoutClaims(unchecked, { ...this.#settings, nowSeconds });
    for (const [jti, exp] of this.#seen) if (exp <= nowSeconds - TOLERANCE_SECONDS) this.#seen.delete(jti);
    if (this.#seen.has(claims.jti)) refuse('jti was seen before');
    this.#seen.set(claims.jti, claims.exp);
    return claims;
  }
}

/** A JWS in compact serialization (RFC 7515, section 7.1), decoded and not yet verified. */
export interface CompactJws {
  readonly header: JsonObject;
  readonly claims: JsonObject;
  readonly signingInput: string;
  readonly signature: Buffer;
}

/** @throws InvalidLogoutToken when the token is not three strictly encoded parts of the right kind */
export function parseCompactJws(token: string): CompactJws {
  const parts = token.split('.');
  const [header, claims, signature] = parts;
  if (parts.length !== 3 || header === undefined || claims === undefined || signature === undefined) {
    throw new InvalidLogoutToken('the token does not have three parts');
  }
  return {
    header: jsonObjectFrom(header, 'header'),
    claims: jsonObjectFrom(claims, 'claims set'),
    signingInput: `${header}.${claims}`,
    signature: bytesFrom(signature, 'signature'),
  };
}

function jsonObjectFrom(encoded: string, name: string): JsonObject {
  const bytes = bytesFrom(encoded, name);
  let value: unknown;
  try {
    value = JSON.parse(new TextDecoder('utf-8', { fatal: true }).decode(bytes));
  } catch {
    throw new InvalidLogoutToken(`the ${name} is not JSON in UTF-8`);
  }
  if (!isJsonObject(value)) throw new InvalidLogoutToken(`the ${name} is not a JSON object`);
  return value;
}

/** Node's decoder skips what it does not know; only what it would write itself is base64url. */
function bytesFrom(encoded: string, name: string): Buffer {
  const bytes = Buffer.from(encoded, 'base64url');
  if (encoded === '' || bytes.toString('base64url') !== encoded) {
    throw new InvalidLogoutToken(`the ${name} is not base64url`);
  }
  return bytes;
}

/** JWS algorithms over a shared secret (RFC 7518, section 3.2). */
export type HmacAlgorithm = 'HS256' | 'HS384' | 'HS512';

const digests: Readonly<Record<HmacAlgorithm, string>> = {
  HS256: 'sha256',
  HS384: 'sha384',
  HS512: 'sha512',
};

/** Whether `signature` is the HMAC of `signingInput`; compared in constant time. */
export function isSignedWith(
  key: Buffer,
  algorithm: HmacAlgorithm,
  signingInput: string,
  signature: Buffer,
): boolean {
  const expected = createHmac(digests[algorithm], key).update(signingInput).digest();
  return expected.length === signature.length && timingSafeEqual(expected, signature);
}

/** The event a logout token must carry (OpenID Connect Back-Channel Logout 1.0, section 2.4). */
export const LOGOUT_EVENT = 'http://schemas.openid.net/event/backchannel-logout';

/** The same section: a logout token should expire at most two minutes after it was issued. */
const MAX_LIFETIME_SECONDS = 120;
/** For clocks that differ. */
export const TOLERANCE_SECONDS = 30;

/** The claims of an accepted logout token. `iat` and `exp` in seconds since the epoch. */
export interface LogoutClaims extends JsonObject {
  readonly iss: string;
  readonly aud: string | readonly string[];
  readonly sub: string;
  readonly jti: string;
  readonly iat: number;
  readonly exp: number;
}

/** What the claims are held against. */
export interface LogoutClaimRules {
  readonly applicationName: string;
  readonly apiKey: string;
  readonly nowSeconds: number;
}

/** @throws InvalidLogoutToken naming the first rule that is broken (section 5; specification, section 2.6) */
export function checkLogoutClaims(claims: JsonObject, rules: LogoutClaimRules): LogoutClaims {
  const { iss, aud, sub, jti, iat, exp, nbf, events } = claims;
  if (iss !== rules.applicationName) refuse('iss is not the application name');
  if (!isAudience(aud) || ![aud].flat().includes(rules.apiKey)) refuse('aud does not name the API key');
  if (!isText(sub)) refuse('sub is not a non-empty string');
  if (!isText(jti)) refuse('jti is not a non-empty string');
  if (!isTime(iat)) refuse('iat is not a number');
  if (!isTime(exp)) refuse('exp is not a number');
  if (iat > rules.nowSeconds + TOLERANCE_SECONDS) refuse('iat lies in the future');
  if (nbf !== undefined && (!isTime(nbf) || nbf > rules.nowSeconds + TOLERANCE_SECONDS))
    refuse('nbf is not reached'); // RFC 7519, section 4.1.5
  if (exp <= rules.nowSeconds - TOLERANCE_SECONDS) refuse('exp has passed');
  if (exp <= iat) refuse('exp is not after iat');
  if (exp - iat > MAX_LIFETIME_SECONDS) refuse(`exp is more than ${MAX_LIFETIME_SECONDS} s after iat`);
  if (!isJsonObject(events) || !isJsonObject(events[LOGOUT_EVENT])) refuse('events lacks the logout event');
  if (Object.hasOwn(claims, 'nonce')) refuse('nonce is forbidden in a logout token');
  return { ...claims, iss: rules.applicationName, aud, sub, jti, iat, exp };
}

export function refuse(reason: string): never {
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
