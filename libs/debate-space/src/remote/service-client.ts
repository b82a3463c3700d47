import {
  DebateSpaceRequestError,
  RateLimitedError,
  TimeoutError,
  type DebateSpaceOperation,
} from '../errors.js';
import { withLinkedSignal } from '../linked-signal.js';
import type { AccessTokens, Scope } from './access-tokens.js';
import { Failure } from './answer.js';
import type { NoSlot, RateLimiter, Slot } from './rate-limiter.js';
import { retry, within, type Caller, type RetryPolicy } from './retry.js';
import { failureOf } from './transport-failure.js';
import type { HttpReply, HttpRequest, Transport } from './transport.js';

/** One call under {base_url} (service-interface.md, section 4). */
export interface ServiceCall<T> extends Pick<HttpRequest, 'method' | 'url'> {
  readonly operation: DebateSpaceOperation;
  /** Absent when the API key in the query authorizes the call. */
  readonly scope?: Scope | undefined;
  readonly caller: Caller;
  /** In place of `http.totalTimeoutMs`, for a call that is one of several. */
  readonly totalTimeoutMs?: number | undefined;
  /** A slot that the caller has acquired; the first request takes it. */
  readonly slot?: Slot | undefined;
  /**
   * Reads an answer.
   * @param unknownBefore whether an earlier attempt of this call may have been carried out
   * @throws {@link Failure}
   */
  read(reply: HttpReply, unknownBefore: boolean): T;
}

export interface ServiceClientParts {
  readonly transport: Transport;
  readonly tokens: AccessTokens;
  readonly limiter: RateLimiter;
  /** `timeoutMs`: for one request. */
  readonly policy: RetryPolicy & { readonly timeoutMs: number };
  /** Aborted when the app shuts down. */
  readonly closing: AbortSignal;
}

/** Calls under {base_url}: each in its slot of the rate limit, with a living token, repeated as far as the policy goes. */
export class ServiceClient {
  readonly #parts: ServiceClientParts;

  constructor(parts: ServiceClientParts) {
    this.#parts = parts;
  }

  /** For a call, in milliseconds. */
  get totalTimeoutMs(): number {
    return this.#parts.policy.totalTimeoutMs;
  }

  /** How long a job waits for a slot: the window of the rate limit may be full of the calls of others. */
  get #jobWaitMs(): number {
    return this.totalTimeoutMs + 2 * this.#parts.limiter.windowMs;
  }

  /**
   * Waits for all that the request of a job needs: a slot of the rate limit, which the job releases or passes on to a
   * call, and an access token. Rejects with a `DebateSpaceRequestError` when there is no token.
   */
  async prepareJob(
    operation: DebateSpaceOperation,
    scope: Scope,
    signal: AbortSignal,
  ): Promise<Slot | NoSlot> {
    const slot = await this.#parts.limiter.acquire(signal, this.#jobWaitMs, true);
    if ('retryAfterMs' in slot) return slot;
    try {
      await this.#token(scope, signal, this.totalTimeoutMs);
      return slot;
    } catch (error) {
      slot.release(false);
      throw error instanceof Failure ? error.asError(operation, 0, 'not-sent') : error;
    }
  }

  /** @throws `DebateSpaceRequestError` */
  async call<T>(call: ServiceCall<T>, callerSignal?: AbortSignal): Promise<T> {
    const { transport, tokens, limiter, policy, closing } = this.#parts;
    const { operation, scope, caller, totalTimeoutMs = policy.totalTimeoutMs } = call;
    const { maxAttempts } = policy;
    let { slot: given } = call;
    let isRenewed = false;
    return withLinkedSignal([callerSignal, closing], undefined, ({ signal }) =>
      retry(
        operation,
        { maxAttempts, totalTimeoutMs },
        caller,
        signal,
        async ({ leftMs, wait, unknownBefore }) => {
          const slot =
            given ?? (await wait((inTime) => this.#slot(caller, totalTimeoutMs, leftMs(), inTime)));
          given = undefined;
          let sent = false;
          let token: string | undefined;
          try {
            token = await this.#token(scope, signal, leftMs());
            const exchange = await transport.exchange({ ...call, headers: headers(token) }, signal, leftMs());
            sent = !('failure' in exchange) || exchange.failure.sent;
            if ('failure' in exchange) throw failureOf(exchange.failure);
            const { status, retryAfterMs } = exchange.reply;
            if (status === 429 && retryAfterMs !== undefined) limiter.pause(retryAfterMs);
            return call.read(exchange.reply, unknownBefore);
          } catch (error) {
            const isRefused = error instanceof Failure && error.details.status === 401;
            if (!isRefused || scope === undefined || token === undefined) throw error;
            tokens.drop(scope, token);
            if (isRenewed) throw error;
            isRenewed = true;
            throw new Failure(error.error, error.message, { ...error.details, retry: 'immediately' });
          } finally {
            slot.release(sent);
          }
        },
      ),
    );
  }

  async #slot(caller: Caller, totalMs: number, leftMs: number, signal: AbortSignal): Promise<Slot> {
    const { limiter, policy } = this.#parts;
    // A request that starts just before the end of the call is cut off, and nobody knows whether it was carried out.
    const reservedMs = Math.min(policy.timeoutMs, totalMs / 2);
    const withinMs = { call: leftMs - reservedMs, walk: Infinity, job: this.#jobWaitMs }[caller];
    const slot = await limiter.acquire(signal, withinMs, caller === 'job');
    if (!('retryAfterMs' in slot)) return slot;
    const { retryAfterMs } = slot;
    const message = `http.rateLimit, or a pause that the service asked for, leaves no slot in time; hint: repeat the call after ${Math.ceil(retryAfterMs / 1000)} s`;
    const details = { outcome: 'not-sent', requests: 0, retry: 'too-late', retryAfterMs } as const;
    throw new Failure(RateLimitedError, message, details);
  }

  /** A failure to get a token is seen from the call that needs it: that call was not sent. */
  async #token(scope: Scope | undefined, signal: AbortSignal, leftMs: number): Promise<string | undefined> {
    if (scope === undefined) return undefined;
    try {
      return await within(leftMs, signal, noToken, (inTime) => this.#parts.tokens.get(scope, inTime));
    } catch (error) {
      if (!(error instanceof DebateSpaceRequestError)) throw error;
      const { status, retryable, retryAfterMs, attempts: requests } = error;
      const message = `no access token: ${error.message.replace(/^token: /, '')}`;
      const details = { outcome: 'not-sent', requests, retryable, status, retryAfterMs } as const;
      throw new Failure(error.constructor as Failure['error'], message, details);
    }
  }
}

function noToken(): Failure {
  const details = { outcome: 'not-sent', requests: 0, retryable: true } as const;
  return new Failure(TimeoutError, 'no access token in time', details);
}

function headers(token: string | undefined): Record<string, string> {
  const json = { 'Content-Type': 'application/json' };
  return token === undefined ? json : { ...json, Authorization: `Bearer ${token}` };
}
