import { jsonAnswer, formFields, Refusal } from '../service/http.js';
import type { Perform } from '../service/contract-route.js';
import type { SimulatorSettings } from '../simulator-options.js';
import { createHash, timingSafeEqual, randomBytes } from 'node:crypto';
import type { ServiceClock } from '../state/users.js';

/** Section 4.1. Errors are those of RFC 6749, section 5.2. */
export function obtainToken(
  { apiKey, secretKey }: Pick<SimulatorSettings, 'apiKey' | 'secretKey'>,
  tokens: AccessTokens,
): Perform {
  return (call) => {
    const fields = formFields(call);
    const grantType = fields.get('grant_type');
    if (grantType === undefined) throw Refusal.oauth(400, 'invalid_request', 'grant_type is missing');
    // Both are always compared, so that the time does not show which of them is wrong.
    const knownClient = sameSecret(fields.get('client_id') ?? '', apiKey);
    const knownSecret = sameSecret(fields.get('client_secret') ?? '', secretKey);
    if (!knownClient || !knownSecret) {
      throw Refusal.oauth(401, 'invalid_client', 'client_id or client_secret is wrong');
    }
    if (grantType !== 'client_credentials') {
      throw Refusal.oauth(400, 'unsupported_grant_type', 'grant_type must be client_credentials');
    }
    const scope = fields.get('scope');
    if (scope !== 'authentication' && scope !== 'public') {
      throw Refusal.oauth(400, 'invalid_scope', 'scope must be authentication or public');
    }
    return jsonAnswer(200, tokens.issue(scope), { 'cache-control': 'no-store' });
  };
}

/** Compares two secrets in constant time; hashing first hides their lengths as well. */
export function sameSecret(given: string, expected: string): boolean {
  const [a, b] = [given, expected].map((text) => createHash('sha256').update(text).digest());
  return a !== undefined && b !== undefined && timingSafeEqual(a, b);
}

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

/** Section 8 of service-interface.md. */
const LIFETIME_SECONDS = 7200;

/** The access tokens handed out and still living, by the service's clock. */
export class AccessTokens {
  readonly #clock: ServiceClock;
  readonly #reissue: boolean;
  readonly #issued = new Map<string, IssuedToken>();

  constructor(clock: ServiceClock, reissue: boolean) {
    this.#clock = clock;
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
    return { ...this.#answer(token, issued), expires_in: LIFETIME_SECONDS };
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
    return issued.createdAt + LIFETIME_SECONDS - this.#clock.nowSeconds();
  }

  #forgetExpired(): void {
    for (const [token, issued] of this.#issued) {
      if (this.#secondsLeft(issued) <= 0) this.#issued.delete(token);
    }
  }
}
