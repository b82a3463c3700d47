import {
  AbortedError,
  AuthenticationError,
  DebateSpaceRequestError,
  RateLimitedError,
  TimeoutError,
  type DebateSpaceOperation,
} from '../errors.js';
import type { AccessTokens, Scope } from './access-tokens.js';
import { transportFailure, type Attempt, type Failure } from './attempt.js';
import { withLinkedSignal } from '../linked-signal.js';
import type { NoTurn, Turn } from './rate-limiter.js';
import type { Limiter } from './rate-limiters.js';
import { retrying, type RetryPolicy } from './retrying.js';
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
  /** Asked when nothing stands between the call and its request any more. @returns whether it may still be sent */
  readonly mayStillBeSent?: () => Promise<boolean>;
  /** Reads an answer. `unknownBefore`: an earlier attempt of this call may have been carried out. */
  read(reply: HttpReply, unknownBefore: boolean): Attempt<T>;
}

export interface ServiceClientParts {
  readonly transport: Transport;
  readonly tokens: AccessTokens;
  readonly limiter: Limiter;
  readonly policy: RetryPolicy;
  /** Aborted when the app shuts down. */
  readonly closing: AbortSignal;
}

/** Calls under {base_url}: each at its turn, with a living token, repeated as far as the policy goes. */
export class ServiceClient {
  readonly #parts: ServiceClientParts;

  constructor(parts: ServiceClientParts) {
    this.#parts = parts;
  }

  /** In milliseconds, for a call that waits for its slot no longer than it takes. */
  get totalTimeoutMs(): number {
    return this.#parts.policy.totalTimeoutMs;
  }

  async call<T>(call: ServiceCall<T>, callerSignal?: AbortSignal): Promise<T> {
    return withLinkedSignal([callerSignal, this.#parts.closing], undefined, ({ signal }) =>
      this.#repeated(call, signal),
    );
  }

  async #repeated<T>(call: ServiceCall<T>, signal: AbortSignal): Promise<T> {
    const { transport, tokens, limiter, policy } = this.#parts;
    const { totalTimeoutMs = policy.totalTimeoutMs } = call;
    let renewed = false;
    return retrying<Turn, T>(
      call.operation,
      { ...policy, totalTimeoutMs },
      call.slotWithinMs !== undefined,
      signal,
      async (inTime, withinMs) => {
        const turn = await limiter.turn(inTime, call.slotWithinMs ?? withinMs);
        return 'retryAfterMs' in turn ? { failure: noSlot(turn) } : { value: turn };
      },
      async (turn, { leftMs, unknownBefore }) => {
        let sent = false;
        try {
          const token = await this.#token(call.scope, signal, leftMs());
          if (typeof token === 'object') return token;
          if (call.mayStillBeSent && !(await call.mayStillBeSent())) return { failure: GIVEN_UP };
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
          turn.done(sent);
        }
      },
    );
  }

  /** A failure to get a token is seen from the call that needed it: that call was not sent. */
  async #token(
    scope: Scope | undefined,
    signal: AbortSignal,
    leftMs: number,
  ): Promise<string | Attempt<never> | undefined> {
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

const GIVEN_UP: Failure = {
  error: AbortedError,
  message: 'given up before it was sent',
  outcome: 'not-sent',
  requests: 0,
  retry: 'no',
};

function noSlot({ retryAfterMs }: NoTurn): Failure {
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
