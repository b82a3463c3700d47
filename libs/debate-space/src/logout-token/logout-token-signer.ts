import { randomUUID, webcrypto } from 'node:crypto';
import { SignJWT } from 'jose';
import type { LogoutClaims } from '../debate-space.options.js';
import type { Secret } from '../secret.js';

const BACKCHANNEL_LOGOUT_EVENT = 'http://schemas.openid.net/event/backchannel-logout';

export interface LogoutTokenOptions {
  readonly secretKey: Secret;
  readonly secretKeyEncoding: 'utf8' | 'base64';
  readonly algorithm: 'HS256' | 'HS384' | 'HS512';
  readonly issuer: string;
  readonly audience: string | readonly string[];
  readonly lifetimeSeconds: number;
  readonly claims?: LogoutClaims | undefined;
}

/**
 * Signs logout tokens: service-interface.md, section 5, with the full claim set of OpenID Connect Back-Channel Logout
 * 1.0, section 2.4.
 */
export class LogoutTokenSigner {
  readonly #options: LogoutTokenOptions;
  readonly #bytes: number;
  readonly #key: Promise<webcrypto.CryptoKey>;

  constructor(options: LogoutTokenOptions) {
    this.#options = options;
    const key = Buffer.from(options.secretKey.reveal(), options.secretKeyEncoding);
    const algorithm = { name: 'HMAC', hash: `SHA-${options.algorithm.slice(2)}` };
    this.#bytes = key.length;
    this.#key = webcrypto.subtle.importKey('raw', key, algorithm, false, ['sign']);
  }

  /** A warning for a key shorter than the hash (RFC 7518, section 3.2), or `undefined`. */
  get weakness(): string | undefined {
    const wanted = Number(this.#options.algorithm.slice(2)) / 8;
    if (this.#bytes >= wanted) return undefined;
    return `the secret key has ${this.#bytes} bytes; ${this.#options.algorithm} wants at least ${wanted} (RFC 7518, section 3.2)`;
  }

  /**
   * A token of its own for every attempt: receivers refuse a `jti` that they have seen.
   * @param uid becomes `sub`, unchanged
   * @param id stays the same over all attempts for one logout; it travels as `txn` (RFC 8417, section 2.2)
   */
  async sign({ uid, id }: { readonly uid: string; readonly id: string }): Promise<string> {
    const { algorithm, issuer, audience, lifetimeSeconds, claims } = this.#options;
    const additional = { ...(await claims?.({ uid })) };
    delete additional.nonce; // section 2.4: a logout token must not be taken for an ID token
    const issuedAt = Math.floor(Date.now() / 1000); // after the host's function, which may have taken its time
    return new SignJWT({
      ...additional,
      iss: issuer,
      aud: typeof audience === 'string' ? audience : [...audience],
      sub: uid,
      iat: issuedAt,
      exp: issuedAt + lifetimeSeconds,
      jti: randomUUID(),
      txn: id,
      events: { [BACKCHANNEL_LOGOUT_EVENT]: {} },
    })
      .setProtectedHeader({ alg: algorithm, typ: 'logout+jwt' })
      .sign(await this.#key);
  }
}
