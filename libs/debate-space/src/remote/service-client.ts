import {
  AuthenticationError,
  DebateSpaceRequestError,
  RateLimitedError,
  TimeoutError,
  type DebateSpaceOperation,
} from '../errors.js';
import type { AccessTokens, Scope } from './access-tokens.js';
import { transportFailure, type Attempt, type Failure } from './attempt.js';
import { withLinkedSignal } from '../linked-signal.js';
import type { NoSlot, Slot } from './rate-limiter.js';
import type { RateLimiters } from './rate-limiters.js';
import { retry, type RetryPolicy } from './retry.js';
import type { HttpReply, Transport } from './transport.js';

/** One call under {base_url} (service-interface.md, section 4). */
export interface ServiceCall<T> {
  readonly operation: DebateSpaceOperation;
  readonly method: 'GET' | 'POST' | 'DELETE';
  /** With its query, which may hold the API key. */
  readonly url: string;
  /** Absent when the API key in the query authorises the call. */
  readonly scope?: Scope;
  /**
   * For how long the call waits for its slot of the rate limit, in milliseconds; that wait does not count for
   * `totalTimeoutMs`. Absent: it counts, and the call is refused immediately when the slot cannot come in time, that
   * is, with time left for the request.
   */
  readonly slotWithinMs?: number | undefined;
  /** In place of `http.totalTimeoutMs`, for a call that is one of several. */
  readonly totalTimeoutMs?: number | undefined;
  /** A slot that the caller has acquired; the first request takes it. */
  readonly slot?: Slot | undefined;
  /**
   * Whether it is part of a job, which has a schedule of its own: only a request whose access token was refused is
   * repeated, and it leaves slots of the rate limit to the calls that somebody waits for.
   */
  readonly isJob?: boolean | undefined;
  /** Reads an answer. `unknownBefore`: an earlier attempt of this call may have been carried out. */
  read(reply: HttpReply, unknownBefore: boolean): Attempt<T>;
}

export interface ServiceClientParts {
  readonly transport: Transport;
  readonly tokens: AccessTokens;
  readonly limiters: RateLimiters;
  readonly policy: RetryPolicy;
  /** Aborted when the app shuts down. */
  readonly closing: AbortSignal;
}

/** Calls under {base_url}: each in its slot of the rate limit, with a living token, repeated as far as the policy goes. */
export class ServiceClient {
  readonly #parts: ServiceClientParts;

  constructor(parts: ServiceClientParts) {
    this.#parts = parts;
  }

  /** In milliseconds, for a call that waits for its slot no longer than it takes. */
  get totalTimeoutMs(): number {
    return this.#parts.policy.totalTimeoutMs;
  }

  /**
   * Waits for all that the request of a job needs: a slot of the rate limit, which the job releases or passes on to a
   * call, and an access token. Rejects with a `DebateSpaceRequestError` when there is no token.
   */
  async prepare(
    { operation, scope }: Pick<ServiceCall<unknown>, 'operation' | 'scope'>,
    signal: AbortSignal,
    slotWithinMs: number,
  ): Promise<Slot | NoSlot> {
    const slot = await this.#parts.limiters.jobs.acquire(signal, slotWithinMs);
    if ('retryAfterMs' in slot) return slot;
    const token = await this.#token(scope, signal, this.totalTimeoutMs).catch((error: unknown) => {
      slot.release(false);
      throw error;
    });
    if (typeof token !== 'object') return slot;
    slot.release(false);
    const { error: RequestError, message, status, retryable = false, retryAfterMs } = token.failure;
    throw new RequestError(message, { operation, attempts: 0, outcome: 'not-sent', status, retryable, retryAfterMs }); // prettier-ignore
  }

  async call<T>(call: ServiceCall<T>, callerSignal?: AbortSignal): Promise<T> {
    return withLinkedSignal([callerSignal, this.#parts.closing], undefined, ({ signal }) =>
      this.#repeated(call, signal),
    );
  }

  async #repeated<T>(call: ServiceCall<T>, signal: AbortSignal): Promise<T> {
    const { transport, tokens, limiters } = this.#parts;
    const limiter = call.isJob ? limiters.jobs : limiters.calls;
    const policy = this.#policyOf(call);
    let given = call.slot;
    const { totalTimeoutMs = policy.totalTimeoutMs } = call;
    let renewed = false;
    return retry<Slot, T>(
      call.operation,
      { ...policy, totalTimeoutMs },
      call.slotWithinMs !== undefined,
      signal,
      async (inTime, withinMs) => {
        if (given) {
          const slot = given;
          given = undefined;
          return { value: slot };
        }
        const slot = await limiter.acquire(inTime, call.slotWithinMs ?? withinMs);
        return 'retryAfterMs' in slot ? { failure: noSlot(slot) } : { value: slot };
      },
      async (slot, { leftMs, unknownBefore }) => {
        let sent = false;
        try {
          const token = await this.#token(call.scope, signal, leftMs());
          if (typeof token === 'object') return token;
          const exchange = await transport.exchange({ ...call, headers: headers(token) }, signal, leftMs());
          sent = !('failure' in exchange) || exchange.failure.sent;
          if ('failure' in exchange) return { failure: transportFailure(exchange.failure) };
          const attempt = call.read(exchange.reply, unknownBefore);
          if (!('failure' in attempt)) return attempt;
          const { failure } = attempt;
          if (failure.status === 429 && failure.retryAfterMs !== undefined)
            limiter.pause(failure.retryAfterMs);
          if (failure.error !== AuthenticationError || !call.scope || token === undefined) return attempt;
          tokens.drop(call.scope, token);
          const retry = renewed ? 'no' : 'at-once';
          renewed = true;
          return { failure: { ...failure, retry } };
        } finally {
          slot.release(sent);
        }
      },
    );
  }

  #policyOf({ isJob }: Pick<ServiceCall<unknown>, 'isJob'>): RetryPolicy {
    const { policy } = this.#parts;
    return isJob
      ? { ...policy, maxAttempts: Math.min(2, policy.maxAttempts), onlyRefusedTokens: true }
      : policy;
  }

  /** A failure to get a token is seen from the call that needed it: that call was not sent. */
  async #token(
    scope: Scope | undefined,
    signal: AbortSignal,
    leftMs: number,
  ): Promise<string | { readonly failure: Failure } | undefined> {
    if (scope === undefined) return undefined;
    return withLinkedSignal([signal], leftMs, async (budget) => {
      try {
        return await this.#parts.tokens.get(scope, budget.signal);
      } catch (error) {
        if (budget.timedOut) return { failure: { error: TimeoutError, message: 'no access token in time', outcome: 'not-sent', requests: 0, retry: 'no', retryable: true } }; // prettier-ignore
        if (!(error instanceof DebateSpaceRequestError)) throw error;
        const { status, retryable, retryAfterMs, attempts: requests } = error;
        const Kind = error.constructor as Failure['error'];
        const message = `no access token: ${error.message.replace(/^token: /, '')}`;
        return { failure: { error: Kind, message, outcome: 'not-sent', requests, retry: 'no', retryable, status, retryAfterMs } }; // prettier-ignore
      }
    });
  }
}

function noSlot({ retryAfterMs }: NoSlot): Failure {
  return {
    error: RateLimitedError,
    message: `http.rateLimit, or a pause that the service asked for, leaves no slot in time; hint: repeat the call after ${Math.ceil(retryAfterMs / 1000)} s`,
    outcome: 'not-sent',
    requests: 0,
    retry: 'no',
    retryable: true,
    retryAfterMs,
  };
}

function headers(token: string | undefined): Record<string, string> {
  return {
    'Content-Type': 'application/json',
    ...(token === undefined ? {} : { Authorization: `Bearer ${token}` }),
  };
}
