import { hasMediaType, JSON_MEDIA_TYPE, Refusal, type ServiceCall } from '../service/http.js';
import { type AccessTokens, type AccessTokenScope, sameSecret } from './obtain-token.js';
import type { RateLimit } from '../simulator-options.js';

/** What all routes under `{base_url}` have in common (sections 4 and 5), in the order of the checks. */
export class ClientAuthorization {
  readonly #apiKey: string;
  readonly #tokens: AccessTokens;
  readonly #window: SlidingWindow;

  constructor(apiKey: string, tokens: AccessTokens, window: SlidingWindow) {
    this.#apiKey = apiKey;
    this.#tokens = tokens;
    this.#window = window;
  }

  /** @throws Refusal 401, 403, 429 or 415 */
  checkBearer(call: ServiceCall, scope: AccessTokenScope): void {
    this.#requireScope(call, scope);
    this.#requireRoomAndJson(call);
  }

  /** The same, with the query parameter `api_key` in place of a token (section 4.4). */
  checkBearerOrApiKey(call: ServiceCall, scope: AccessTokenScope): void {
    const apiKey = call.query.api_key;
    if (call.headers.authorization !== undefined || apiKey === undefined) this.#requireScope(call, scope);
    else if (typeof apiKey !== 'string' || !sameSecret(apiKey, this.#apiKey)) {
      throw Refusal.of(401, 'The API key is unknown');
    }
    this.#requireRoomAndJson(call);
  }

  #requireScope(call: ServiceCall, required: AccessTokenScope): void {
    const token = /^Bearer +([A-Za-z0-9\-._~+/]+=*)$/i.exec(call.headers.authorization ?? '')?.[1];
    if (token === undefined) {
      throw Refusal.of(401, 'A Bearer token is required', { 'www-authenticate': 'Bearer' });
    }
    const scope = this.#tokens.scopeOf(token);
    if (scope === undefined) {
      const challenge = { 'www-authenticate': 'Bearer error="invalid_token"' };
      throw Refusal.of(401, 'The access token is unknown, revoked or expired', challenge);
    }
    if (scope !== required) {
      const challenge = { 'www-authenticate': `Bearer error="insufficient_scope", scope="${required}"` };
      throw Refusal.of(403, `The access token lacks the scope ${required}`, challenge);
    }
  }

  #requireRoomAndJson(call: ServiceCall): void {
    const seconds = this.#window.admit(this.#apiKey);
    if (seconds > 0) throw Refusal.of(429, 'Too many requests', { 'retry-after': String(seconds) });
    if (!hasMediaType(call.headers['content-type'], JSON_MEDIA_TYPE)) {
      throw Refusal.of(415, `Content-Type must be ${JSON_MEDIA_TYPE}`);
    }
  }
}

/** Counts requests per API key over a sliding window of time. Refused requests do not count. */
export class SlidingWindow {
  readonly #limit: RateLimit | false;
  readonly #now: () => number;
  readonly #admitted = new Map<string, number[]>();

  /** @param now a clock in milliseconds; the monotonic one, because skew must not widen the window */
  constructor(limit: RateLimit | false, now: () => number = () => performance.now()) {
    this.#limit = limit;
    this.#now = now;
  }

  /** Admits a request (returns 0), or returns the whole seconds after which one will be admitted. */
  admit(apiKey: string): number {
    if (this.#limit === false) return 0;
    const { requests, perMs } = this.#limit;
    const now = this.#now();
    const admitted = (this.#admitted.get(apiKey) ?? []).filter((at) => at > now - perMs);
    this.#admitted.set(apiKey, admitted);
    if (admitted.length < requests) {
      admitted.push(now);
      return 0;
    }
    const oldest = admitted[0] ?? now;
    return Math.max(1, Math.ceil((oldest + perMs - now) / 1000));
  }
}
