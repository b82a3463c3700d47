import type { ServiceClock } from '../service-clock.js';
import type { SimulatorSettings } from '../simulator-options.js';
import { parseCompactJws, type CompactJws } from './compact-jws.js';
import { isSignedWith } from './hmac-algorithm.js';
import { InvalidLogoutToken } from './invalid-logout-token.js';
import { checkLogoutClaims, type LogoutClaims } from './logout-claims.js';

type VerifierSettings = Pick<
  SimulatorSettings,
  'secretKey' | 'secretKeyEncoding' | 'algorithms' | 'applicationName' | 'apiKey' | 'clockToleranceSeconds'
>;

/**
 * Verifies logout tokens (section 5; OpenID Connect Back-Channel Logout 1.0, section 2.6).
 * Written on node:crypto alone, so that a sender built on a JWT library does not share its mistakes.
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
    const jws = parseCompactJws(token);
    this.#checkHeader(jws);
    const { applicationName, apiKey, clockToleranceSeconds } = this.#settings;
    const nowSeconds = this.#clock.nowSeconds();
    const claims = checkLogoutClaims(jws.claims, {
      issuer: applicationName,
      audience: apiKey,
      toleranceSeconds: clockToleranceSeconds,
      nowSeconds,
    });
    for (const [jti, exp] of this.#seen) {
      if (exp <= nowSeconds - clockToleranceSeconds) this.#seen.delete(jti);
    }
    if (this.#seen.has(claims.jti)) throw new InvalidLogoutToken('jti was seen before');
    this.#seen.set(claims.jti, claims.exp);
    return claims;
  }

  #checkHeader({ header, signingInput, signature }: CompactJws): void {
    const algorithm = this.#settings.algorithms.find((accepted) => accepted === header.alg);
    if (algorithm === undefined) throw new InvalidLogoutToken('alg is not accepted');
    if (Object.hasOwn(header, 'crit'))
      throw new InvalidLogoutToken('crit names extensions nobody knows here');
    if (Object.hasOwn(header, 'typ')) {
      const typ = header.typ;
      if (typeof typ !== 'string' || typ.toLowerCase() !== 'logout+jwt') {
        throw new InvalidLogoutToken('typ is not logout+jwt');
      }
    }
    if (!isSignedWith(this.#key, algorithm, signingInput, signature)) {
      throw new InvalidLogoutToken('the signature does not match');
    }
  }
}
