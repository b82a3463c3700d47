import {
  AuthenticationError,
  DebateSpaceRequestError,
  RateLimitedError,
  type DebateSpaceOperation,
} from '../../errors.js';
import { withCombinedSignal } from '../../async/combined-signal.js';
import type { AccessTokens, Scope } from './access-tokens.js';
import { Failure } from '../http/answer.js';
import type { NoSlot, RateLimiter, Slot } from '../rate-limiter.js';
import { retry, type AttemptContext, type Caller, type RetryPolicy } from '../http/retry.js';
import type { Transport } from '../http/transport.js';
import type { HttpRequest } from '../http/undici-sender.js';
import type { HttpReply } from '../http/answer.js';

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
  readonly shutdownSignal: AbortSignal;
}

/** Calls under {base_url}: each in its slot of the rate limit, with a living token, repeated as far as the policy goes. */
export class ServiceClient {
  constructor(private readonly parts: ServiceClientParts) {}

  /** For a call, in milliseconds. */
  get totalTimeoutMs(): number {
    return this.parts.policy.totalTimeoutMs;
  }

  /** How long a job waits for a slot: the window of the rate limit may be full of the calls of others. */
  get #jobWaitMs(): number {
    return this.totalTimeoutMs + 2 * this.parts.limiter.windowMs;
  }

  /**
   * Waits for all that the request of a job needs: a slot of the rate limit, which the job releases or passes on to a
   * call, and an access token. Rejects with a `DebateSpaceRequestError` when there is no token.
   */
  prepareJob(operation: DebateSpaceOperation, scope: Scope, signal: AbortSignal): Promise<Slot | NoSlot> {
    const { limiter, policy } = this.parts;
    return retry(operation, policy, 'job', signal, async ({ wait, inTime }) => {
      const slot = await wait((limited) => limiter.acquire(limited, this.#jobWaitMs, true));
      if ('retryAfterMs' in slot) return slot;
      try {
        await inTime((limited) => this.#token(scope, limited));
        return slot;
      } catch (error) {
        slot.release(false);
        throw error;
      }
    });
  }

  /** @throws `DebateSpaceRequestError` */
  async call<T>(call: ServiceCall<T>, callerSignal?: AbortSignal): Promise<T> {
    const { transport, tokens, limiter, policy, shutdownSignal } = this.parts;
    const { operation, scope, caller, totalTimeoutMs = policy.totalTimeoutMs } = call;
    let { slot: given } = call;
    let isRenewed = false;
    const once = async ({ signal, leftMs, wait, inTime, unknownBefore }: AttemptContext): Promise<T> => {
      const slot = given ?? (await wait((limited) => this.#slot(caller, totalTimeoutMs, leftMs(), limited)));
      given = undefined;
      let sent = false;
      let token: string | undefined;
      try {
        token = scope && (await inTime((limited) => this.#token(scope, limited)));
        const reply = await transport.exchange({ ...call, headers: headers(token) }, signal, leftMs());
        sent = true;
        if (reply.status === 429 && reply.retryAfterMs !== undefined) limiter.pause(reply.retryAfterMs);
        return call.read(reply, unknownBefore);
      } catch (error) {
        if (!(error instanceof Failure)) throw error;
        sent ||= error.details.outcome !== 'not-sent';
        // A web page with 401 says nothing of the token.
        if (error.error !== AuthenticationError || scope === undefined || token === undefined) throw error;
        tokens.drop(scope, token);
        if (isRenewed) throw error;
        isRenewed = true;
        throw new Failure(error.error, error.message, { ...error.details, retry: 'immediately' });
      } finally {
        slot.release(sent);
      }
    };
    return withCombinedSignal([callerSignal, shutdownSignal], undefined, ({ signal }) =>
      retry(operation, { ...policy, totalTimeoutMs }, caller, signal, once),
    );
  }

  async #slot(caller: Caller, totalMs: number, leftMs: number, signal: AbortSignal): Promise<Slot> {
    const { limiter, policy } = this.parts;
    // A request that starts just before the end of the call is cut off, and nobody knows whether it was carried out.
    const reservedMs = Math.min(policy.timeoutMs, totalMs / 2);
    const withinMs = { call: leftMs - reservedMs, walk: Infinity, job: this.#jobWaitMs }[caller];
    const maxPauseMs = caller === 'walk' ? totalMs : Infinity;
    const slot = await limiter.acquire(signal, withinMs, caller === 'job', maxPauseMs);
    if (!('retryAfterMs' in slot)) return slot;
    const { retryAfterMs } = slot;
    const message = `http.rateLimit, or a pause that the service requested, leaves no slot in time; hint: repeat the call after ${Math.ceil(retryAfterMs / 1000)} s`;
    const details = { outcome: 'not-sent', requests: 0, retry: 'too-late', retryAfterMs } as const;
    throw new Failure(RateLimitedError, message, details);
  }

  /** A failure to get a token is seen from the call that needs it: that call was not sent. */
  async #token(scope: Scope, signal: AbortSignal): Promise<string> {
    try {
      return await this.parts.tokens.get(scope, signal);
    } catch (error) {
      if (!(error instanceof DebateSpaceRequestError)) throw error;
      const { status, retryable, retryAfterMs, attempts: requests } = error;
      const message = `no access token: ${error.message.replace(/^token: /, '')}`;
      const details = { outcome: 'not-sent', requests, retryable, status, retryAfterMs } as const;
      throw new Failure(error.constructor as Failure['error'], message, details);
    }
  }
}

function headers(token: string | undefined): Record<string, string> {
  const json = { 'Content-Type': 'application/json' };
  return token === undefined ? json : { ...json, Authorization: `Bearer ${token}` };
}
