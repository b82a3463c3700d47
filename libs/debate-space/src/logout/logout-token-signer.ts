import { randomUUID, webcrypto } from 'node:crypto';
import { lazy } from '../async/promises.js';
import type { LogoutClaims } from './logout-options.js';
import type { SecretSource, Secret } from '../secrets/secret.js';

const ENCODER = new TextEncoder();
const BACKCHANNEL_LOGOUT_EVENT = 'http://schemas.openid.net/event/backchannel-logout';

export interface LogoutTokenOptions {
  readonly secretKey: SecretSource;
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
  /** Loads `jose` with the first token: an app that logs nobody out does not need it. */
  readonly load = lazy(() => import('jose'));
  readonly #options: LogoutTokenOptions;
  /** Imported once, for as long as the key stays the same. */
  #imported: { readonly from: string; readonly key: Promise<webcrypto.CryptoKey> } | undefined;

  constructor(options: LogoutTokenOptions) {
    this.#options = options;
  }

  /** A warning for a key shorter than the hash (RFC 7518, section 3.2), or `undefined`. */
  weakness(key: Secret): string | undefined {
    const wanted = Number(this.#options.algorithm.slice(2)) / 8;
    const { length } = this.#bytesOf(key);
    if (length >= wanted) return undefined;
    return `the secret key has ${length} bytes; ${this.#options.algorithm} wants at least ${wanted} (RFC 7518, section 3.2)`;
  }

  /** The current secret key, from the host's function where there is one. */
  key(): Promise<Secret> {
    return this.#options.secretKey.current();
  }

  /**
   * A token of its own for every attempt: receivers refuse a `jti` that they have seen.
   * @param uid becomes `sub`, unchanged
   * @param id stays the same over all attempts for one logout; it travels as `txn` (RFC 8417, section 2.2)
   * @param key default: the current one
   */
  async sign({ uid, id }: { readonly uid: string; readonly id: string }, key?: Secret): Promise<string> {
    const { algorithm, issuer, audience, lifetimeSeconds, claims } = this.#options;
    const { CompactSign } = await this.load();
    const secret = key ?? (await this.key());
    const additional = { ...(await claims?.({ uid })) };
    delete additional.nonce; // section 2.4: a logout token must not be taken for an ID token
    const issuedAt = Math.floor(Date.now() / 1000); // after the host's function, which may have taken its time
    const payload = {
      ...additional,
      iss: issuer,
      aud: typeof audience === 'string' ? audience : [...audience],
      sub: uid,
      iat: issuedAt,
      exp: issuedAt + lifetimeSeconds,
      jti: randomUUID(),
      txn: id,
      events: { [BACKCHANNEL_LOGOUT_EVENT]: {} },
    };
    // Not SignJWT, which clones all claims first: that costs a twentieth of a delivery.
    return new CompactSign(ENCODER.encode(JSON.stringify(payload)))
      .setProtectedHeader({ alg: algorithm, typ: 'logout+jwt' })
      .sign(await this.#import(secret));
  }

  #import(secret: Secret): Promise<webcrypto.CryptoKey> {
    const from = secret.reveal();
    if (this.#imported?.from !== from) {
      const algorithm = { name: 'HMAC', hash: `SHA-${this.#options.algorithm.slice(2)}` };
      const key = webcrypto.subtle.importKey('raw', this.#bytesOf(secret), algorithm, false, ['sign']);
      this.#imported = { from, key };
    }
    return this.#imported.key;
  }

  #bytesOf(key: Secret): Buffer<ArrayBuffer> {
    return Buffer.from(key.reveal(), this.#options.secretKeyEncoding);
  }
}
