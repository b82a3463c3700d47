import { SecretKeyError } from '../../secrets/secret-key-provider.js';
import type { Emit } from '../../events.js';
import type { LogoutTokenSigner } from './logout-token-signer.js';
import type { LogoutRoute } from '../../service/calls/logout-route.js';
import { withTimeout } from '../../async/with-timeout.js';
import { causeOf, hintFor, isUnexpected, type DeliveryAnswer } from './delivery-policy.js';
import type { LogoutEntry } from '../logout.js';

/** An unexpected answer that has not come for this long is reported again. */
const REPORT_AGAIN_MS = 10 * 60_000;

/** Makes one attempt: a fresh token, one request (service-interface.md, section 5). Never rejects. */
export class LogoutSender {
  /** When each kind of unexpected answer came last. */
  readonly #unexpectedAt = new Map<string, number>();

  /**
   * @param timeoutMs for the host's functions that the token needs
   * @param shutdownSignal aborted when the app shuts down
   */
  constructor(
    private readonly signer: LogoutTokenSigner,
    private readonly route: LogoutRoute,
    private readonly timeoutMs: number,
    private readonly shutdownSignal: AbortSignal,
    private readonly emit: Emit,
  ) {}

  async send(entry: LogoutEntry): Promise<DeliveryAnswer> {
    let token: string | undefined;
    try {
      await this.signer.load();
    } catch {
      return failure('jose cannot be loaded');
    }
    try {
      token = await withTimeout(this.signer.sign(entry), this.timeoutMs, undefined);
    } catch (error) {
      // A function of the host's; it may do better next time.
      if (error instanceof SecretKeyError) return this.#fault(error.message, error, 'secretKey failed');
      return this.#fault('logout.claims', error, 'logout.claims failed');
    }
    if (token === undefined) {
      const late = new DOMException('no answer in time', 'TimeoutError');
      return this.#fault('logout.claims', late, 'logout.claims did not answer');
    }
    try {
      const answer = await this.route.send(token, this.shutdownSignal);
      if (isUnexpected(answer)) this.#reportUnexpected(answer);
      return answer;
    } catch (error) {
      // A mistake in http.adapter, or in our code: the service has no part in it.
      return this.#fault('http', error);
    }
  }

  /** Once per outage: while such answers continue to come, they are not reported again. */
  #reportUnexpected(answer: DeliveryAnswer): void {
    const cause = causeOf(answer);
    const now = performance.now();
    const lastAt = this.#unexpectedAt.get(cause) ?? -Infinity;
    this.#unexpectedAt.set(cause, now);
    if (now - lastAt < REPORT_AGAIN_MS) return;
    this.emit({ type: 'logout-route-unexpected', address: this.route.url, cause, hint: hintFor(answer) });
  }

  /** Nothing else is logged before the logout is parked. */
  #fault(where: string, cause: unknown, reason?: string): DeliveryAnswer {
    const error = cause instanceof Error ? cause.name : typeof cause;
    this.emit({ type: 'fault', where, error });
    return failure(reason ?? error);
  }
}

function failure(reason: string): DeliveryAnswer {
  return { reason, local: true };
}
