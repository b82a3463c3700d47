import { randomBytes } from 'node:crypto';
import type { ServiceClock } from '../service-clock.js';

/** The scopes a token can have: user operations, or the user list (section 5). */
export type AccessTokenScope = 'authentication' | 'public';

/** Answer of the token route (section 2). Times in whole seconds, `created_at` since the epoch. */
export interface AccessTokenAnswer {
  access_token: string;
  token_type: 'Bearer';
  expires_in: number;
  created_at: number;
}

interface IssuedToken {
  readonly scope: AccessTokenScope;
  readonly createdAt: number;
}

/** The access tokens handed out and still living, by the service's clock. */
export class AccessTokens {
  readonly #clock: ServiceClock;
  readonly #lifetimeSeconds: number;
  readonly #reissue: boolean;
  readonly #issued = new Map<string, IssuedToken>();

  constructor(clock: ServiceClock, lifetimeSeconds: number, reissue: boolean) {
    this.#clock = clock;
    this.#lifetimeSeconds = lifetimeSeconds;
    this.#reissue = reissue;
  }

  issue(scope: AccessTokenScope): AccessTokenAnswer {
    this.#forgetExpired();
    if (this.#reissue) {
      for (const [token, issued] of this.#issued) {
        if (issued.scope === scope && this.#secondsLeft(issued) >= 1) return this.#answer(token, issued);
      }
    }
    const token = randomBytes(32).toString('base64url');
    const issued = { scope, createdAt: Math.floor(this.#clock.nowSeconds()) };
    this.#issued.set(token, issued);
    return { ...this.#answer(token, issued), expires_in: this.#lifetimeSeconds };
  }

  /** The scope of a living token; undefined when it is unknown, revoked or expired. */
  scopeOf(token: string): AccessTokenScope | undefined {
    this.#forgetExpired();
    return this.#issued.get(token)?.scope;
  }

  revokeAll(): void {
    this.#issued.clear();
  }

  #answer(token: string, issued: IssuedToken): AccessTokenAnswer {
    return {
      access_token: token,
      token_type: 'Bearer',
      expires_in: Math.floor(this.#secondsLeft(issued)),
      created_at: issued.createdAt,
    };
  }

  #secondsLeft(issued: IssuedToken): number {
    return issued.createdAt + this.#lifetimeSeconds - this.#clock.nowSeconds();
  }

  #forgetExpired(): void {
    for (const [token, issued] of this.#issued) {
      if (this.#secondsLeft(issued) <= 0) this.#issued.delete(token);
    }
  }
}
