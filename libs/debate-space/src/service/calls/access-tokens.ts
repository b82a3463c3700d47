import { SecretKeyError, type SecretSource, type Secret } from '../../secrets/secret.js';
import { AuthenticationError, UnexpectedResponseError } from '../../errors.js';
import { raceAbort } from '../../async/combined-signal.js';
import type { HttpReply } from '../http/exchange.js';
import { retry, type RetryPolicy } from '../http/retry.js';
import { assertSuccess, jsonBody, unexpected, type StatusMeanings } from '../http/status-table.js';
import type { Transport } from '../http/transport.js';

/** Scopes of section 4.1: `authentication` for user operations, `public` for the user list. */
export type Scope = 'authentication' | 'public';

export interface IssuedToken {
  readonly value: string;
  /** How long the token is valid from now, in milliseconds. */
  readonly lifeMs: number;
}

/** How long before its end a token is renewed in the background. */
const RENEW_AHEAD_MS = 5 * 60_000;
/** How long before its end a token is no longer used: a request takes time. */
const MARGIN_MS = 5_000;

/** The access tokens of an application: for each scope one token, and one request for it, however many callers wait. */
export class AccessTokens {
  readonly #cached = new Map<
    Scope,
    { readonly value: string; readonly validUntil: number; renewFrom: number }
  >();
  /** The requests that run. */
  readonly #requests = new Map<Scope, Promise<string>>();

  constructor(private readonly fetch: (scope: Scope) => Promise<IssuedToken>) {}

  /** A valid token, from the cache if it has one. The signal ends only the wait of this caller. */
  async get(scope: Scope, signal: AbortSignal): Promise<string> {
    const cached = this.#cached.get(scope);
    const now = performance.now();
    if (!cached || now >= cached.validUntil) return raceAbort(this.#renew(scope), signal);
    if (now >= cached.renewFrom) {
      // In the background, because the cached token is still valid. After a failure, half of its rest passes before the next try.
      cached.renewFrom = now + (cached.validUntil - now) / 2;
      this.#renew(scope).catch(() => undefined);
    }
    return cached.value;
  }

  /** Removes this token from the cache, but not a newer one that another caller has fetched. */
  drop(scope: Scope, value: string): void {
    if (this.#cached.get(scope)?.value === value) this.#cached.delete(scope);
  }

  #renew(scope: Scope): Promise<string> {
    const request =
      this.#requests.get(scope) ?? this.#request(scope).finally(() => this.#requests.delete(scope));
    this.#requests.set(scope, request);
    return request;
  }

  async #request(scope: Scope): Promise<string> {
    const { value, lifeMs } = await this.fetch(scope);
    const end = performance.now() + lifeMs;
    const validUntil = end - Math.min(MARGIN_MS, lifeMs / 10);
    const renewFrom = end - Math.min(RENEW_AHEAD_MS, lifeMs / 4);
    this.#cached.set(scope, { value, validUntil, renewFrom });
    return value;
  }
}

const REFUSED = {
  kind: 'refused',
  error: AuthenticationError,
  text: 'the service refused the keys',
  hint: 'compare apiKey and secretKey with the administration panel, Configuration > General',
} as const;
const MISSING = {
  kind: 'elsewhere',
  error: UnexpectedResponseError,
  text: 'there is no token route at {auth_url}/oauth/token',
  hint: 'check authUrl',
} as const;
const STATUSES: StatusMeanings = { 400: REFUSED, 401: REFUSED, 403: REFUSED, 404: MISSING, 410: MISSING };
/** Errors of RFC 6749, section 5.2, which some services send with a 200. */
const REFUSALS: ReadonlySet<unknown> = new Set([
  'invalid_request',
  'invalid_client',
  'invalid_grant',
  'unauthorized_client',
  'unsupported_grant_type',
  'invalid_scope',
]);

/** Any text that a header can carry: more than RFC 6750, section 2.1, allows. */
const TOKEN = /^[\x21-\x7e]{1,8192}$/;
/** For an answer without `expires_in` (service-interface.md, section 2). */
const DEFAULT_LIFE_SECONDS = 7200;

/**
 * POST {auth_url}/oauth/token (service-interface.md, section 4.1).
 * @throws {@link AuthenticationError} when the service refuses the keys, or the host's function gives no secret key
 * @throws another `DebateSpaceRequestError` when the service gives no token
 */
export async function fetchToken(
  transport: Pick<Transport, 'exchange'>,
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

/** Requires a usable `access_token` only. Ignores other fields that it cannot read. */
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
 * The token expires at `created_at + expires_in` (service-interface.md, section 2). A server may issue a valid token again
 * with its old `created_at` and the *remaining* `expires_in`: the sum is then in the past, and the token is valid for the
 * remaining time. Never longer than `expires_in`, because the clocks may differ.
 */
export function lifeSeconds(expiresIn: number, createdAt = 0, now = Date.now() / 1000): number {
  const left = createdAt + expiresIn - now;
  return left > 0 ? Math.min(left, expiresIn) : expiresIn;
}

/** A positive number, also as text; `undefined` for everything else. */
function positive(value: unknown): number | undefined {
  const number = typeof value === 'string' ? Number(value) : value;
  return typeof number === 'number' && Number.isFinite(number) && number > 0 ? number : undefined;
}
