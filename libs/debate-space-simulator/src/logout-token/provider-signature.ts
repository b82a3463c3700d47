import { verify } from 'node:crypto';
import { promisify } from 'node:util';
import type { CompactJws } from './compact-jws.js';
import { isSignedWith } from './hmac-algorithm.js';
import type { IdentityProvider } from './identity-provider.js';
import { InvalidLogoutToken } from './invalid-logout-token.js';
import { ProviderKeys } from './provider-keys.js';

const verifyWith = promisify(verify);

/** The signatures of an identity provider: RS256 with its public keys, HS256 with the client's secret. */
export class ProviderSignature {
  readonly #keys: ProviderKeys;
  readonly #secret: Buffer | undefined;

  constructor(provider: IdentityProvider) {
    this.#keys = new ProviderKeys(provider);
    this.#secret = provider.clientSecret === undefined ? undefined : Buffer.from(provider.clientSecret);
  }

  /** @throws InvalidLogoutToken when the algorithm is not accepted, or the signature does not match */
  async check({ header, signingInput, signature }: CompactJws): Promise<void> {
    if (header.alg === 'RS256') {
      for (const key of await this.#keys.for(header))
        if (await verifyWith('sha256', Buffer.from(signingInput), key, signature)) return;
    } else if (header.alg !== 'HS256') {
      throw new InvalidLogoutToken('alg is not accepted: an identity provider signs with RS256 or HS256');
    } else if (this.#secret === undefined) {
      throw new InvalidLogoutToken('alg HS256 needs the secret of the client at the identity provider');
    } else if (isSignedWith(this.#secret, 'HS256', signingInput, signature)) return;
    throw new InvalidLogoutToken('the signature does not match');
  }
}
