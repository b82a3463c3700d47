import type { JsonWebKey } from 'node:crypto';

/**
 * Your identity provider, as the operator of the service sets it up: the service then takes the logout tokens that the
 * provider sends (section 4.5), beside those that the client application signs itself.
 */
export interface IdentityProvider {
  /** Its issuer URL, which is `iss` of its tokens. */
  readonly issuer: string;
  /** The client by which the debate space logs its users in, which is `aud` of the tokens. */
  readonly clientId: string;
  /** The secret of that client. Give it for a client whose tokens are signed with HS256. */
  readonly clientSecret?: string | undefined;
  /** Where the public keys are. Default: as `{issuer}/.well-known/openid-configuration` says. */
  readonly jwksUri?: string | undefined;
  /** The public keys themselves. Nothing is fetched then. */
  readonly jwks?: { readonly keys: readonly ProviderKey[] } | undefined;
}

/** A public key of a JWK set (RFC 7517). */
export type ProviderKey = JsonWebKey & {
  readonly kid?: string;
  readonly alg?: string;
  readonly use?: string;
};

/** @throws TypeError naming the option that cannot be used; never its value */
export function assertIdentityProvider({ issuer, clientId, clientSecret, jwksUri }: IdentityProvider): void {
  for (const [name, url] of Object.entries({ issuer, jwksUri })) {
    if (url === undefined && name === 'jwksUri') continue;
    if (typeof url !== 'string' || !/^https?:$/.test(protocolOf(url)))
      throw new TypeError(`Option "identityProvider.${name}" must be an http or https URL.`);
  }
  if (clientId === '') throw new TypeError('Option "identityProvider.clientId" must not be empty.');
  if (clientSecret === '') throw new TypeError('Option "identityProvider.clientSecret" must not be empty.');
}

function protocolOf(url: string): string {
  return URL.canParse(url) ? new URL(url).protocol : '';
}
