import { createPublicKey, type KeyObject } from 'node:crypto';
import type { IdentityProvider, ProviderKey } from './identity-provider.js';
import { InvalidLogoutToken } from './invalid-logout-token.js';
import { isJsonObject, type JsonObject } from './json-object.js';

const FETCH_TIMEOUT_MS = 5_000;

/** The public keys of an identity provider: fetched for the first token, and again for a token of an unknown key. */
export class ProviderKeys {
  readonly #provider: IdentityProvider;
  #keys: readonly ProviderKey[] | undefined;

  constructor(provider: IdentityProvider) {
    this.#provider = provider;
    this.#keys = provider.jwks?.keys;
  }

  /**
   * The RSA keys that may have signed a token of this header.
   * @throws InvalidLogoutToken when there is none, or the keys cannot be read
   */
  async for(header: JsonObject): Promise<readonly KeyObject[]> {
    const known = matching(this.#keys ?? [], header);
    if (known.length > 0) return known;
    if (this.#provider.jwks === undefined) this.#keys = await this.#fetched();
    const found = matching(this.#keys ?? [], header);
    if (found.length === 0) throw new InvalidLogoutToken('no key of the identity provider has this kid');
    return found;
  }

  async #fetched(): Promise<readonly ProviderKey[]> {
    const { keys } = await readJson(this.#provider.jwksUri ?? (await this.#discovered()));
    if (!Array.isArray(keys) || !keys.every(isJsonObject)) throw unreadable('its JWK set has no keys');
    return keys;
  }

  /** OpenID Connect Discovery 1.0, sections 4 and 4.3. */
  async #discovered(): Promise<string> {
    const { issuer } = this.#provider;
    const { jwks_uri: uri, ...document } = await readJson(
      `${issuer.replace(/\/$/, '')}/.well-known/openid-configuration`,
    );
    if (document.issuer !== issuer) throw unreadable('its discovery document is of another issuer');
    if (typeof uri !== 'string') throw unreadable('its discovery document has no jwks_uri');
    return uri;
  }
}

/** Without a kid in the header, every key that is not for something else is tried. */
function matching(keys: readonly ProviderKey[], { kid, alg }: JsonObject): KeyObject[] {
  return keys
    .filter((key) => key.kty === 'RSA' && (kid === undefined || key.kid === kid))
    .filter((key) => (key.use ?? 'sig') === 'sig' && (key.alg ?? alg) === alg)
    .map((key) => createPublicKey({ key, format: 'jwk' }));
}

async function readJson(url: string): Promise<JsonObject> {
  let value: unknown;
  try {
    const response = await fetch(url, { redirect: 'error', signal: AbortSignal.timeout(FETCH_TIMEOUT_MS) });
    if (!response.ok) throw unreadable(`it answers ${response.status}`);
    value = await response.json();
  } catch (error) {
    if (error instanceof InvalidLogoutToken) throw error;
    throw unreadable('it does not answer with JSON');
  }
  if (!isJsonObject(value)) throw unreadable('it does not answer with a JSON object');
  return value;
}

function unreadable(problem: string): InvalidLogoutToken {
  return new InvalidLogoutToken(`the keys of the identity provider cannot be read: ${problem}`);
}
