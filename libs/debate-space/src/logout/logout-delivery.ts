import type { CircuitBreaker } from '../jobs/circuit-breaker.js';
import { Containment } from '../async/containment.js';
import type { Emit } from '../events.js';
import type { ServicePause } from '../service/http/service-pause.js';
import type { Claim } from '../storage/storage.js';
import { causeOf, decide, seemsDown } from './delivery-policy.js';
import type { LogoutRepository } from './logout-repository.js';
import type { LogoutSender } from './logout-sender.js';

/** What the breaker of the logouts says of the service. */
export function serviceEvents(emit: Emit) {
  return (state: 'open' | 'closed', cause: string): void => {
    emit(state === 'open' ? { type: 'service-down', cause } : { type: 'service-up' });
  };
}

const UNREADABLE_HINT =
  'no storageKey opens this logout: it was written with another storageKey, or the row was changed. Restore that key ' +
  'and retry the logout, or discard it';

export interface DeliveryParts {
  readonly breaker: CircuitBreaker;
  readonly sender: Pick<LogoutSender, 'send'>;
  /** `logout.giveUpAfterMs` */
  readonly giveUpAfterMs: number;
  readonly emit: Emit;
  /** Called when a logout is due earlier than its lane expects. */
  readonly onRetry: () => void;
  readonly pause?: Pick<ServicePause, 'unavailableMs'>;
}

/** Delivers logouts: sends one, and records what the policy makes of the answer. */
export class LogoutDelivery {
  readonly breaker: CircuitBreaker;
  readonly #parts: DeliveryParts;
  readonly #containment: Containment;
  #pausedUntil = 0;

  constructor(parts: DeliveryParts) {
    this.breaker = parts.breaker;
    this.#parts = parts;
    this.#containment = new Containment(parts.emit);
  }

  /** How long nothing may be sent, in milliseconds. */
  pauseMs(): number {
    return Math.max(this.#parts.pause?.unavailableMs ?? 0, this.#pausedUntil - performance.now());
  }

  /**
   * Sends one logout.
   * @param logouts where the claim comes from
   */
  async execute(logouts: LogoutRepository, claim: Claim): Promise<void> {
    const { sender, giveUpAfterMs, emit, onRetry } = this.#parts;
    const { storage } = logouts;
    const entry = logouts.entryOf(claim);
    const startedAt = performance.now();
    if (!entry) {
      await storage.park(claim, UNREADABLE_HINT, { ...claim, cause: 'unreadable' });
      const { id, attempts } = claim;
      emit({
        type: 'logout-parked',
        id,
        uid: '',
        attempts,
        tookMs: 0,
        cause: 'unreadable',
        hint: UNREADABLE_HINT,
      });
      return;
    }
    const answer = await sender.send(entry);
    if (answer.aborted) {
      await storage.giveBack([claim]); // the next process need not wait for the end of the lease
      return;
    }
    const decision = decide(answer, claim, giveUpAfterMs);
    const cause = causeOf(answer);
    const attempts = claim.attempts + 1;
    const about = { id: entry.id, uid: entry.uid, attempts, tookMs: performance.now() - startedAt };
    if (!answer.local) this.breaker.record(seemsDown(answer) ? 'failure' : 'success', cause);
    if (decision.action === 'finish') {
      await storage.finishLogout(claim, attempts);
      emit({ type: 'logout-delivered', ...about, delayMs: Date.now() - entry.endedAt });
      return;
    }
    const { pauseMs, rejections } = decision;
    if (pauseMs > 0) await this.#pause(logouts, pauseMs);
    const progress = { attempts, failures: claim.failures + 1, rejections, uncertain: undefined, cause };
    if (decision.action === 'retry') {
      await storage.retry(claim, decision.delayMs, progress);
      onRetry();
      emit({ type: 'logout-retrying', ...about, cause, delayMs: decision.delayMs });
    } else {
      await storage.park(claim, decision.hint, progress);
      emit({ type: 'logout-parked', ...about, cause, hint: decision.hint });
    }
  }

  /** Stops this process, and others by the storage. The result of the attempt is recorded even when the pause is not. */
  async #pause({ storage }: LogoutRepository, ms: number): Promise<void> {
    this.#pausedUntil = Math.max(this.#pausedUntil, performance.now() + ms);
    await this.#containment.run<unknown>('outbox', () => storage.pause('logout', ms), undefined);
  }
}
