import {
  AuthenticationError,
  DebateSpaceRequestError,
  RateLimitedError,
  type DebateSpaceOperation,
} from '../../errors.js';
import { withCombinedSignal } from '../../async/combined-signal.js';
import type { AccessTokens, Scope } from './access-tokens.js';
import type { HttpReply, HttpRequest } from '../http/exchange.js';
import type { NoSlot, RateLimiter } from '../rate-limiter.js';
import { retry, tooLate, type Attempt, type Priority, type RetryPolicy } from '../http/retry.js';
import type { ErrorClass } from '../http/status-table.js';
import type { Transport } from '../http/transport.js';

/** One call under {base_url} (service-interface.md, section 4). */
export interface ServiceCall<T> extends Pick<HttpRequest, 'operation' | 'method' | 'url' | 'maxBytes'> {
  /** Absent when the API key in the query authorizes the call. */
  readonly scope?: Scope | undefined;
  readonly priority: Priority;
  /** In place of `http.totalTimeoutMs`, for a call that is one of several. */
  readonly totalTimeoutMs?: number | undefined;
  /** Whether the caller already has the slot for the first request. @defaultValue `false` */
  readonly hasSlot?: boolean;
  /**
   * Reads an answer.
   * @param unknownBefore whether an earlier attempt of this call may have had an effect
   * @throws `DebateSpaceRequestError`
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
  readonly shutdownSignal: AbortSignal;
}

/** Calls under {base_url}: takes a slot of the rate limit and an access token for each request, and repeats by the policy. */
export class ServiceClient {
  constructor(private readonly parts: ServiceClientParts) {}

  /** For one call with all its attempts, in milliseconds. */
  get totalTimeoutMs(): number {
    return this.parts.policy.totalTimeoutMs;
  }

  /** How long a job waits for a slot, in milliseconds: calls of others may fill the window of the rate limit. */
  get #jobWaitMs(): number {
    return this.totalTimeoutMs + 2 * this.parts.limiter.windowMs;
  }

  /**
   * Waits for the access token and the slot that the request of a job needs. Rejects with a `DebateSpaceRequestError` when
   * it gets no token.
   */
  prepareJob(
    operation: DebateSpaceOperation,
    scope: Scope,
    signal: AbortSignal,
  ): Promise<NoSlot | undefined> {
    const { limiter, policy } = this.parts;
    return retry(operation, policy, 'job', signal, async ({ leftMs }) => {
      await this.#token(operation, scope, leftMs(), signal);
      return limiter.acquire(signal, { withinMs: this.#jobWaitMs, isJob: true });
    });
  }

  /** @throws `DebateSpaceRequestError` */
  async call<T>(call: ServiceCall<T>, callerSignal?: AbortSignal): Promise<T> {
    const { transport, tokens, limiter, policy, shutdownSignal } = this.parts;
    const { operation, scope, priority, totalTimeoutMs = policy.totalTimeoutMs } = call;
    let { hasSlot = false } = call;
    let isRenewed = false;
    const once = async ({ leftMs, unknownBefore }: Attempt, signal: AbortSignal): Promise<T> => {
      const token = scope && (await this.#token(operation, scope, leftMs(), signal));
      if (!hasSlot) await this.#takeSlot(call, totalTimeoutMs, leftMs(), signal);
      hasSlot = false;
      try {
        const reply = await transport.exchange({ ...call, headers: headers(token) }, signal, leftMs());
        if (reply.status === 429 && reply.retryAfterMs !== undefined) limiter.pause(reply.retryAfterMs);
        return call.read(reply, unknownBefore);
      } catch (error) {
        // Only the service itself: a web page with 401 does not mean that the token is wrong.
        if (!(error instanceof AuthenticationError) || scope === undefined || token === undefined)
          throw error;
        tokens.drop(scope, token);
        if (isRenewed) throw error;
        isRenewed = true;
        throw error.endedWith({ retryable: true, repeat: 'immediately' });
      }
    };
    return withCombinedSignal([callerSignal, shutdownSignal], undefined, ({ signal }) =>
      retry(operation, { ...policy, totalTimeoutMs }, priority, signal, (attempt) => once(attempt, signal)),
    );
  }

  async #takeSlot(
    { operation, priority }: Pick<ServiceCall<unknown>, 'operation' | 'priority'>,
    totalMs: number,
    leftMs: number,
    signal: AbortSignal,
  ): Promise<void> {
    const { limiter, policy } = this.parts;
    // A request that starts just before the end of the call would be cut off, with an unknown effect.
    const reservedMs = Math.min(policy.timeoutMs, totalMs / 2);
    const withinMs = priority === 'job' ? this.#jobWaitMs : leftMs - reservedMs;
    const maxPauseMs = priority === 'walk' ? totalMs : Infinity;
    const refusal = await limiter.acquire(signal, { withinMs, maxPauseMs, isJob: priority !== 'call' });
    if (!refusal) return;
    const { retryAfterMs } = refusal;
    const message = `http.rateLimit, or a pause that the service requested, leaves no slot in time; hint: repeat the call after ${Math.ceil(retryAfterMs / 1000)} s`;
    const details = { operation, outcome: 'not-sent', attempts: 0, retryAfterMs } as const;
    throw new RateLimitedError(message, { ...details, repeat: 'too-late' });
  }

  /** Turns a failure of the token request into the error of the call, which was not sent. */
  #token(
    operation: DebateSpaceOperation,
    scope: Scope,
    leftMs: number,
    signal: AbortSignal,
  ): Promise<string> {
    const { tokens, policy } = this.parts;
    const limitMs = Math.min(leftMs, policy.totalTimeoutMs);
    return withCombinedSignal([signal], limitMs, async (combined) => {
      try {
        return await tokens.get(scope, combined.signal);
      } catch (error) {
        if (combined.timedOut) throw tooLate(operation);
        if (!(error instanceof DebateSpaceRequestError)) throw error;
        const { status, retryable, retryAfterMs, attempts } = error;
        const ErrorClass = error.constructor as ErrorClass;
        const message = `no access token: ${error.message.replace(/^token: /, '')}`;
        const details = {
          operation,
          outcome: 'not-sent',
          attempts,
          retryable,
          status,
          retryAfterMs,
        } as const;
        throw new ErrorClass(message, details);
      }
    });
  }
}

function headers(token: string | undefined): Record<string, string> {
  const json = { 'Content-Type': 'application/json' };
  return token === undefined ? json : { ...json, Authorization: `Bearer ${token}` };
}
