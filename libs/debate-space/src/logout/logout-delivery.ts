import { Containment, faultsTo } from '../async/containment.js';
import type { Emit } from '../events.js';
import type { CircuitBreaker } from '../jobs/circuit-breaker.js';
import type { ServicePause } from '../service/http/service-pause.js';
import type { Claim } from '../storage/storage.js';
import { causeOf, decide, seemsDown } from './delivery-policy.js';
import type { LogoutRepository } from './logout-repository.js';
import type { LogoutSender } from './logout-sender.js';

/** Emits `service-down` and `service-up` when the breaker of the logouts opens and closes. */
export function serviceEvents(emit: Emit) {
  return (state: 'open' | 'closed', cause: string): void => {
    emit(state === 'open' ? { type: 'service-down', cause } : { type: 'service-up' });
  };
}

const UNREADABLE_HINT =
  'no storageKey opens this logout: it was written with another storageKey, or the row was changed. Restore that key ' +
  'and retry the logout, or discard it';
/** When a guest leaves the next attempt to the app. */
const LEFT_TO_THE_APP_MS = 10_000;

export interface DeliveryParts {
  readonly breaker: CircuitBreaker;
  readonly sender: Pick<LogoutSender, 'send'>;
  /** `logout.giveUpAfterMs` */
  readonly giveUpAfterMs: number;
  /** Whether this process has no options of the app, and so must not give up its logouts: see {@link Guest}. */
  readonly isGuest: boolean;
  readonly emit: Emit;
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
    this.#containment = new Containment(faultsTo(parts.emit));
  }

  /** How long nothing may be sent, in milliseconds. */
  pauseMs(): number {
    return Math.max(this.#parts.pause?.unavailableMs ?? 0, this.#pausedUntil - performance.now());
  }

  /**
   * Sends one logout.
   * @param logouts where the claim comes from
   * @returns milliseconds until it is due again; `undefined` when it is not
   */
  async execute(logouts: LogoutRepository, claim: Claim): Promise<number | undefined> {
    const { sender, giveUpAfterMs, isGuest, emit } = this.#parts;
    const entry = logouts.entryOf(claim);
    if (!entry) return this.#unreadable(logouts, claim);
    const startedAt = performance.now();
    const answer = await sender.send(entry);
    if (answer.aborted) {
      await logouts.giveBack(claim); // the next process need not wait for the end of the lease
      return 0;
    }
    const cause = causeOf(answer);
    const attempts = claim.attempts + 1;
    const about = { id: entry.id, uid: entry.uid, attempts, tookMs: performance.now() - startedAt };
    if (!answer.local) this.breaker.record(seemsDown(answer) ? 'failure' : 'success', cause);
    const decision = decide(answer, claim, isGuest ? Infinity : giveUpAfterMs);
    if (decision.action === 'finish') {
      await logouts.finish(claim, attempts);
      emit({ type: 'logout-delivered', ...about, delayMs: Date.now() - entry.endedAt });
      return undefined;
    }
    if (decision.pauseMs > 0) await this.#pause(logouts, decision.pauseMs);
    // Keys and claims of a guest may be wrong: its refusals do not count.
    const rejections = isGuest ? claim.rejections : decision.rejections;
    const progress = {
      attempts,
      failures: claim.failures + 1,
      rejections,
      uncertain: claim.uncertain,
      cause,
    };
    if (decision.action === 'park' && !isGuest) {
      await logouts.park(claim, decision.hint, progress);
      emit({ type: 'logout-parked', ...about, cause, hint: decision.hint });
      return undefined;
    }
    const { delayMs, hint } =
      decision.action === 'park'
        ? { ...decision, delayMs: LEFT_TO_THE_APP_MS }
        : { ...decision, hint: undefined };
    await logouts.postpone(claim, delayMs, progress);
    emit({ type: 'logout-retrying', ...about, cause, delayMs, ...(hint !== undefined && { hint }) });
    return delayMs;
  }

  async #unreadable(logouts: LogoutRepository, claim: Claim): Promise<number | undefined> {
    const { isGuest, emit } = this.#parts;
    const { id, attempts } = claim;
    const about = { id, uid: '', attempts, tookMs: 0, cause: 'unreadable' };
    if (isGuest) {
      await logouts.postpone(claim, LEFT_TO_THE_APP_MS, claim);
      emit({ type: 'logout-retrying', ...about, delayMs: LEFT_TO_THE_APP_MS, hint: UNREADABLE_HINT });
      return LEFT_TO_THE_APP_MS;
    }
    await logouts.park(claim, UNREADABLE_HINT, { ...claim, cause: 'unreadable' });
    emit({ type: 'logout-parked', ...about, hint: UNREADABLE_HINT });
    return undefined;
  }

  /** Stops this process, and others by the storage. The result of the attempt is recorded even when the pause is not. */
  async #pause(logouts: LogoutRepository, ms: number): Promise<void> {
    this.#pausedUntil = Math.max(this.#pausedUntil, performance.now() + ms);
    await this.#containment.run<unknown>('outbox', () => logouts.pause(ms), undefined);
  }
}
