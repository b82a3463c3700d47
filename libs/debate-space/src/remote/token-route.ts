import { z } from 'zod';
import { KeyProblem } from '../asked-key.js';
import { AuthenticationError, UnexpectedResponseError } from '../errors.js';
import type { KeySource, Secret } from '../secret.js';
import type { IssuedToken, Scope } from './access-tokens.js';
import {
  jsonBody,
  statusFailure,
  transportFailure,
  unexpected,
  type Attempt,
  type Failure,
} from './attempt.js';
import { retry, type RetryPolicy } from './retry.js';
import type { HttpReply, Transport } from './transport.js';

const tokenBody = z.object({
  // What a header can carry (RFC 6750, section 2.1, and a little more).
  access_token: z.string().regex(/^[\x21-\x7e]+$/),
  token_type: z.string().regex(/^bearer$/i).optional(), // prettier-ignore
  expires_in: z.number().positive().default(7200),
  created_at: z.number().optional(),
});

export interface TokenRouteOptions {
  readonly authUrl: string;
  readonly apiKey: Secret;
  readonly secretKey: KeySource;
  readonly policy: RetryPolicy;
}

/** POST {auth_url}/oauth/token (service-interface.md, section 4.1). */
export class TokenRoute {
  readonly #transport: Transport;
  readonly #options: TokenRouteOptions;

  constructor(transport: Transport, options: TokenRouteOptions) {
    this.#transport = transport;
    this.#options = options;
  }

  /** @throws AuthenticationError when the keys are wrong; any other request error when the service does not answer well */
  async fetch(scope: Scope, signal: AbortSignal): Promise<IssuedToken> {
    const { authUrl, apiKey, policy } = this.#options;
    const ready = () => Promise.resolve({ value: undefined });
    return retry('token', policy, false, signal, ready, async (_, { leftMs }) => {
      const body = new URLSearchParams({
        grant_type: 'client_credentials',
        client_id: apiKey.reveal(),
        client_secret: (await this.#key()).reveal(),
        scope,
      }).toString();
      const headers = { 'Content-Type': 'application/x-www-form-urlencoded' };
      const url = `${authUrl}/oauth/token`;
      const exchange = await this.#transport.exchange(
        { method: 'POST', url, headers, body },
        signal,
        leftMs(),
      );
      if ('failure' in exchange) return { failure: transportFailure(exchange.failure) };
      return issuedToken(exchange.reply);
    });
  }

  async #key(): Promise<Secret> {
    try {
      return await this.#options.secretKey.current();
    } catch (error) {
      const message = error instanceof KeyProblem ? error.message : 'secretKey cannot be had';
      const details = { operation: 'token', outcome: 'not-sent', retryable: true, attempts: 0 } as const;
      throw new AuthenticationError(message, details);
    }
  }
}

function issuedToken(reply: HttpReply): Attempt<IssuedToken> {
  const failure = statusFailure(reply);
  if (failure) return { failure: tokenFailure(failure) };
  const json = jsonBody(reply);
  if ('failure' in json) return json;
  const parsed = tokenBody.safeParse(json.value);
  if (!parsed.success) {
    const fields = parsed.error.issues.map((issue) => issue.path.join('.')).filter(Boolean);
    return unexpected(
      reply,
      fields.length > 0 ? `has no usable ${fields.join(', ')}` : 'is not an access token',
    );
  }
  const { access_token: value, expires_in: expiresIn, created_at: createdAt } = parsed.data;
  const expiresAt = createdAt === undefined ? undefined : (createdAt + expiresIn) * 1000 - skewMs(reply);
  return { value: { value, expiresInMs: expiresIn * 1000, expiresAt } };
}

/** The service's clock minus this one's, by the `Date` of its answer. */
function skewMs(reply: HttpReply): number {
  const date = Date.parse(reply.header('date') ?? '');
  return Number.isNaN(date) ? 0 : date - Date.now();
}

function tokenFailure(failure: Failure): Failure {
  switch (failure.status) {
    case 400:
    case 401:
    case 403:
      return {
        ...failure,
        error: AuthenticationError,
        message: `the service refused the keys (${failure.status}); compare apiKey and secretKey with the administration panel, Configuration > General`,
      };
    case 404:
      return {
        ...failure,
        error: UnexpectedResponseError,
        message: 'there is no token route at {auth_url}/oauth/token (404); check authUrl',
      };
    default:
      return failure;
  }
}
