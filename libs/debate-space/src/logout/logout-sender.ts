import { withTimeout } from '../async/with-timeout.js';
import type { Emit } from '../events.js';
import { SecretKeyError, type Secret } from '../secrets/secret.js';
import type { LogoutRoute } from '../service/calls/logout-route.js';
import { causeOf, hintFor, isUnexpected, type DeliveryAnswer } from './delivery-policy.js';
import type { LogoutEntry } from './logout-repository.js';
import type { LogoutTokenSigner } from './logout-token-signer.js';

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
    try {
      await this.signer.load();
    } catch {
      return failure('jose cannot be loaded');
    }
    // Both are functions of the host's, which may do better next time.
    let key: Secret | undefined;
    try {
      key = await withTimeout(this.signer.key(), this.timeoutMs, undefined);
    } catch (error) {
      const where = error instanceof SecretKeyError ? error.message : 'secretKey';
      return this.#fault(where, error, 'secretKey failed');
    }
    if (key === undefined) return this.#late('secretKey');
    let token: string | undefined;
    try {
      token = await withTimeout(this.signer.sign(entry, key), this.timeoutMs, undefined);
    } catch (error) {
      return this.#fault('logout.claims', error, 'logout.claims failed');
    }
    if (token === undefined) return this.#late('logout.claims');
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

  #late(option: 'secretKey' | 'logout.claims'): DeliveryAnswer {
    const late = new DOMException('no answer in time', 'TimeoutError');
    return this.#fault(option, late, `${option} did not answer`);
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
