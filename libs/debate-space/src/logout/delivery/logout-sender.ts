import { SecretKeyError } from '../../secrets/secret-key-provider.js';
import type { Emit } from '../../events.js';
import type { LogoutTokenSigner } from './logout-token-signer.js';
import type { LogoutRoute } from '../../service/calls/logout-route.js';
import { withTimeout } from '../../async/with-timeout.js';
import type { DeliveryAnswer } from './delivery-policy.js';
import type { LogoutEntry } from '../logout.js';

/** Makes one attempt: a fresh token, one request (service-interface.md, section 5). Never rejects. */
export class LogoutSender {
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
      return failure(error instanceof SecretKeyError ? 'secretKey failed' : 'logout.claims failed');
    }
    if (token === undefined) return failure('logout.claims did not answer');
    try {
      return await this.route.send(token, this.shutdownSignal);
    } catch (error) {
      // A mistake in http.adapter, or in our code: the service has no part in it.
      const name = error instanceof Error ? error.name : typeof error;
      this.emit({ type: 'fault', where: 'http', error: name });
      return failure(name);
    }
  }
}

function failure(reason: string): DeliveryAnswer {
  return { reason, local: true };
}
