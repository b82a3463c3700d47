import { SecretKeyError, type SecretSource, type Secret } from '../../secrets/secret.js';
import { AuthenticationError, UnexpectedResponseError } from '../../errors.js';
import { raceAbort } from '../../async/combined-signal.js';
import { assertSuccess, jsonBody, unexpected } from '../http/answer.js';
import type { HttpReply } from '../http/exchange.js';
import { retry, type RetryPolicy } from '../http/retry.js';
import type { StatusMeanings } from '../http/status-table.js';
import type { Transport } from '../http/transport.js';

/** Scopes of section 4.1: `authentication` for user operations, `public` for the user list. */
export type Scope = 'authentication' | 'public';

export interface IssuedToken {
  readonly value: string;
  /** How long it is good from now, in milliseconds. */
  readonly lifeMs: number;
}

const RENEW_AHEAD_MS = 5 * 60_000;
const MARGIN_MS = 5_000;

/** One living token per scope, one request in flight per scope, however many callers there are. */
export class AccessTokens {
  readonly #cached = new Map<
    Scope,
    { readonly value: string; readonly goodUntil: number; renewFrom: number }
  >();
  readonly #flights = new Map<Scope, Promise<string>>();

  constructor(private readonly fetch: (scope: Scope) => Promise<IssuedToken>) {}

  /** A living token, from the cache when there is one. The signal ends this caller's wait, not the others'. */
  async get(scope: Scope, signal: AbortSignal): Promise<string> {
    const cached = this.#cached.get(scope);
    const now = performance.now();
    if (!cached || now >= cached.goodUntil) return raceAbort(this.#renew(scope), signal);
    if (now >= cached.renewFrom) {
      // In the background: the one at hand is still good. If it fails, not again before half of the rest has passed.
      cached.renewFrom = now + (cached.goodUntil - now) / 2;
      this.#renew(scope).catch(() => undefined);
    }
    return cached.value;
  }

  /** Forgets this very token. A newer token that another caller has fetched stays. */
  drop(scope: Scope, value: string): void {
    if (this.#cached.get(scope)?.value === value) this.#cached.delete(scope);
  }

  #renew(scope: Scope): Promise<string> {
    const flight = this.#flights.get(scope) ?? this.#start(scope).finally(() => this.#flights.delete(scope));
    this.#flights.set(scope, flight);
    return flight;
  }

  async #start(scope: Scope): Promise<string> {
    const { value, lifeMs } = await this.fetch(scope);
    const end = performance.now() + lifeMs;
    const goodUntil = end - Math.min(MARGIN_MS, lifeMs / 10);
    const renewFrom = end - Math.min(RENEW_AHEAD_MS, lifeMs / 4);
    this.#cached.set(scope, { value, goodUntil, renewFrom });
    return value;
  }
}

const HINT = '; compare apiKey and secretKey with the administration panel, Configuration > General';
const REFUSED = {
  verdict: 'refused',
  error: AuthenticationError,
  text: 'the service refused the keys',
  hint: HINT,
} as const;
const MISSING = {
  verdict: 'elsewhere',
  error: UnexpectedResponseError,
  text: 'there is no token route at {auth_url}/oauth/token',
  hint: '; check authUrl',
} as const;
const STATUSES: StatusMeanings = { 400: REFUSED, 401: REFUSED, 403: REFUSED, 404: MISSING, 410: MISSING };
/** What says the same with a 200 (RFC 6749, section 5.2). */
const REFUSALS: ReadonlySet<unknown> = new Set([
  'invalid_request',
  'invalid_client',
  'invalid_grant',
  'unauthorized_client',
  'unsupported_grant_type',
  'invalid_scope',
]);

/** What a header can carry (RFC 6750, section 2.1, and a little more). */
const TOKEN = /^[\x21-\x7e]{1,8192}$/;
/** Section 2 of service-interface.md. */
const DEFAULT_LIFE_SECONDS = 7200;

/**
 * POST {auth_url}/oauth/token (service-interface.md, section 4.1).
 * @throws {@link AuthenticationError} when the keys are wrong
 * @throws another `DebateSpaceRequestError` when the service does not answer well
 */
export async function fetchToken(
  transport: Transport,
  { authUrl, apiKey, secretKey }: { authUrl: string; apiKey: Secret; secretKey: SecretSource },
  policy: RetryPolicy,
  scope: Scope,
  signal: AbortSignal,
): Promise<IssuedToken> {
  return retry('token', policy, 'call', signal, async ({ leftMs }) => {
    const body = new URLSearchParams({
      grant_type: 'client_credentials',
      client_id: apiKey.reveal(),
      client_secret: (await currentKey(secretKey)).reveal(),
      scope,
    }).toString();
    const headers = { 'Content-Type': 'application/x-www-form-urlencoded' };
    const url = `${authUrl}/oauth/token`;
    const request = { operation: 'token', method: 'POST', url, headers, body } as const;
    return issuedToken(await transport.exchange(request, signal, leftMs()));
  });
}

async function currentKey(secretKey: SecretSource): Promise<Secret> {
  try {
    return await secretKey.current();
  } catch (error) {
    const message = error instanceof SecretKeyError ? error.message : 'secretKey failed';
    const details = { operation: 'token', outcome: 'not-sent', retryable: true, attempts: 0 } as const;
    throw new AuthenticationError(message, details);
  }
}

/** Only an access token that cannot be used stops: what else the answer says is used as far as it can be. */
function issuedToken(reply: HttpReply): IssuedToken {
  assertSuccess(reply, STATUSES);
  const body = Object(jsonBody(reply)) as Readonly<Record<string, unknown>>;
  const { access_token: value, error } = body;
  if (typeof value !== 'string' || !TOKEN.test(value)) {
    if (REFUSALS.has(error)) assertSuccess(reply, { [reply.status]: REFUSED });
    throw unexpected(reply, 'and the body has no usable access_token');
  }
  const expiresIn = positive(body.expires_in) ?? DEFAULT_LIFE_SECONDS;
  return { value, lifeMs: lifeSeconds(expiresIn, positive(body.created_at)) * 1000 };
}

/**
 * The token expires at `created_at + expires_in` (service-interface.md, section 2). A server may hand out a living token again
 * with its old `created_at` and the *remaining* `expires_in`: the sum then lies in the past, and the token is good for the
 * remaining time. Never longer than `expires_in`, whatever the clocks say.
 */
export function lifeSeconds(expiresIn: number, createdAt = 0, now = Date.now() / 1000): number {
  const left = createdAt + expiresIn - now;
  return left > 0 ? Math.min(left, expiresIn) : expiresIn;
}

/** A number, or the text of one; `undefined` for everything else. */
function positive(value: unknown): number | undefined {
  const number = typeof value === 'string' ? Number(value) : value;
  return typeof number === 'number' && Number.isFinite(number) && number > 0 ? number : undefined;
}
