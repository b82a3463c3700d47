import { orAborted } from '../linked-signal.js';

/** Scopes of section 4.1: `authentication` for user operations, `public` for the user list. */
export type Scope = 'authentication' | 'public';

/** A token as the service gave it out (service-interface.md, section 2). Times in milliseconds of this machine's clock. */
export interface IssuedToken {
  readonly value: string;
  readonly expiresInMs: number;
  /** `created_at + expires_in` by this machine's clock; absent when the service did not say. */
  readonly expiresAt?: number;
}

interface Cached {
  readonly value: string;
  readonly goodUntil: number;
  renewFrom: number;
}

const RENEW_AHEAD_MS = 5 * 60_000;
const MARGIN_MS = 5_000;

/** One living token per scope, one request in flight per scope, however many callers there are. */
export class AccessTokens {
  readonly #fetch: (scope: Scope) => Promise<IssuedToken>;
  readonly #cached = new Map<Scope, Cached>();
  readonly #flights = new Map<Scope, Promise<string>>();

  constructor(fetch: (scope: Scope) => Promise<IssuedToken>) {
    this.#fetch = fetch;
  }

  /** A living token, from the cache when there is one. The signal ends this caller's wait, not the others'. */
  async get(scope: Scope, signal: AbortSignal): Promise<string> {
    const cached = this.#cached.get(scope);
    const now = performance.now();
    if (!cached || now >= cached.goodUntil) return orAborted(this.#renew(scope), signal);
    if (now >= cached.renewFrom) {
      // In the background: the one at hand is still good. If it fails, not again before half of the rest has passed.
      cached.renewFrom = now + (cached.goodUntil - now) / 2;
      this.#renew(scope).catch(() => undefined);
    }
    return cached.value;
  }

  /** Forgets this very token – not a newer one that somebody else has fetched meanwhile. */
  drop(scope: Scope, value: string): void {
    if (this.#cached.get(scope)?.value === value) this.#cached.delete(scope);
  }

  #renew(scope: Scope): Promise<string> {
    const flight = this.#flights.get(scope) ?? this.#start(scope);
    this.#flights.set(scope, flight);
    return flight;
  }

  async #start(scope: Scope): Promise<string> {
    try {
      const token = await this.#fetch(scope);
      const life = lifeMs(token, Date.now());
      const goodUntil = performance.now() + life - Math.min(MARGIN_MS, life / 10);
      const renewFrom = performance.now() + life - Math.min(RENEW_AHEAD_MS, life / 4);
      this.#cached.set(scope, { value: token.value, goodUntil, renewFrom });
      return token.value;
    } finally {
      this.#flights.delete(scope);
    }
  }
}

/**
 * How long a token is good from now, in milliseconds. A server may hand out a living token again with its old
 * `created_at` and the *remaining* `expires_in`: their sum then lies in the past, and the token is good for the
 * remaining time. Never longer than `expires_in`, whatever the clocks say.
 */
export function lifeMs(token: IssuedToken, now: number): number {
  const left = token.expiresAt === undefined ? 0 : token.expiresAt - now;
  return left > 0 ? Math.min(left, token.expiresInMs) : token.expiresInMs;
}
