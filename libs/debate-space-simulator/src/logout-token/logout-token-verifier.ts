import type { ServiceClock } from '../service-clock.js';
import type { SimulatorSettings } from '../simulator-options.js';
import { parseCompactJws, type CompactJws } from './compact-jws.js';
import { isSignedWith } from './hmac-algorithm.js';
import { InvalidLogoutToken } from './invalid-logout-token.js';
import type { JsonObject } from './json-object.js';
import { checkLogoutClaims, type LogoutClaims, type Sender } from './logout-claims.js';
import { ProviderSignature } from './provider-signature.js';

type VerifierSettings = Pick<
  SimulatorSettings,
  | 'secretKey'
  | 'secretKeyEncoding'
  | 'algorithms'
  | 'applicationName'
  | 'apiKey'
  | 'clockToleranceSeconds'
  | 'identityProvider'
>;

/**
 * Verifies logout tokens (section 5; OpenID Connect Back-Channel Logout 1.0, section 2.6): those that the client application
 * signs with its secret key, and those of its identity provider, if it has one.
 * Written on node:crypto alone, so that a sender built on a JWT library does not share its mistakes.
 */
export class LogoutTokenVerifier {
  readonly #settings: VerifierSettings;
  readonly #key: Buffer;
  readonly #clock: ServiceClock;
  readonly #application: Sender;
  readonly #provider: (Sender & { readonly signature: ProviderSignature }) | undefined;
  /** Issuer and jti to exp: a token is remembered for as long as it could be retried. */
  readonly #seen = new Map<string, number>();

  constructor(settings: VerifierSettings, clock: ServiceClock) {
    this.#settings = settings;
    this.#key = Buffer.from(settings.secretKey, settings.secretKeyEncoding);
    this.#clock = clock;
    this.#application = {
      issuer: settings.applicationName,
      issuerName: 'the application name',
      audience: settings.apiKey,
      audienceName: 'the API key',
    };
    const { identityProvider } = settings;
    this.#provider = identityProvider && {
      issuer: identityProvider.issuer,
      issuerName: 'the issuer of the identity provider',
      audience: identityProvider.clientId,
      audienceName: 'the client at the identity provider',
      signature: new ProviderSignature(identityProvider),
    };
  }

  /**
   * @returns a promise for a token of the identity provider, whose keys may have to be fetched
   * @throws InvalidLogoutToken naming the broken rule; so does the promise
   */
  verify(token: string): LogoutClaims | Promise<LogoutClaims> {
    const jws = parseCompactJws(token);
    const provider = this.#provider;
    if (provider && jws.claims.iss === provider.issuer) {
      checkHeader(jws.header);
      return provider.signature.check(jws).then(() => this.#accepted(jws, provider));
    }
    if (provider && jws.claims.iss !== this.#application.issuer)
      throw new InvalidLogoutToken(
        'iss is neither the issuer of the identity provider nor the application name',
      );
    this.#checkHmac(jws);
    return this.#accepted(jws, this.#application);
  }

  #checkHmac({ header, signingInput, signature }: CompactJws): void {
    const algorithm = this.#settings.algorithms.find((accepted) => accepted === header.alg);
    if (algorithm === undefined) throw new InvalidLogoutToken('alg is not accepted');
    checkHeader(header);
    if (!isSignedWith(this.#key, algorithm, signingInput, signature)) {
      throw new InvalidLogoutToken('the signature does not match');
    }
  }

  #accepted({ claims: unchecked }: CompactJws, sender: Sender): LogoutClaims {
    const { clockToleranceSeconds: toleranceSeconds } = this.#settings;
    const nowSeconds = this.#clock.nowSeconds();
    const claims = checkLogoutClaims(unchecked, { ...sender, toleranceSeconds, nowSeconds });
    for (const [seen, exp] of this.#seen) {
      if (exp <= nowSeconds - toleranceSeconds) this.#seen.delete(seen);
    }
    const once = `${claims.iss}\n${claims.jti}`;
    if (this.#seen.has(once)) throw new InvalidLogoutToken('jti was seen before');
    this.#seen.set(once, claims.exp);
    return claims;
  }
}

function checkHeader(header: JsonObject): void {
  if (Object.hasOwn(header, 'crit')) throw new InvalidLogoutToken('crit names extensions nobody knows here');
  if (!Object.hasOwn(header, 'typ')) return;
  const { typ } = header;
  if (typeof typ !== 'string' || typ.toLowerCase() !== 'logout+jwt')
    throw new InvalidLogoutToken('typ is not logout+jwt');
}
