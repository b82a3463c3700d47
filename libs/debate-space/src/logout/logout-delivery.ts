import { Containment, faultsTo } from '../async/containment.js';
import type { AttemptEvent, Emit } from '../events.js';
import type { CircuitBreaker } from '../jobs/circuit-breaker.js';
import type { JobWork } from '../jobs/job-lane.js';
import type { ServicePause } from '../service/http/service-pause.js';
import type { Claim, Progress } from '../storage/storage.js';
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
const UNREADABLE = 'unreadable';
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
  readonly pause: Pick<ServicePause, 'unavailableMs'>;
}

/** Logouts as jobs: sends one, and records what the policy makes of the answer. */
export class LogoutDelivery implements JobWork {
  readonly kind = 'logout';
  /** With more at a time, Postgres delivers several times as many. */
  readonly batch = 32;
  readonly breaker: CircuitBreaker;
  readonly #containment: Containment;

  /**
   * @param storage where the lane claims
   * @param logouts the logouts of this storage
   * @param parts the same for all storages
   */
  constructor(
    readonly storage: JobWork['storage'],
    private readonly logouts: LogoutRepository,
    private readonly parts: DeliveryParts,
  ) {
    this.breaker = parts.breaker;
    this.#containment = new Containment(faultsTo(parts.emit));
  }

  pauseMs(): number {
    return this.parts.pause.unavailableMs;
  }

  async execute(claim: Claim): Promise<number | undefined> {
    const { logouts } = this;
    const { sender, giveUpAfterMs, isGuest, emit } = this.parts;
    const entry = logouts.entryOf(claim);
    if (!entry) {
      const about = { id: claim.id, uid: '', attempts: claim.attempts, tookMs: 0 };
      return this.#park(claim, { ...claim, cause: UNREADABLE }, about, UNREADABLE_HINT);
    }
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
    if (decision.pauseMs > 0) await this.#pause(decision.pauseMs);
    // A guest may have other keys and JWT claims than the app: a 400 to its token is not counted.
    const rejections = isGuest ? claim.rejections : decision.rejections;
    const { failures, uncertain } = claim;
    const progress = { attempts, failures: failures + 1, rejections, uncertain, cause };
    if (decision.action === 'park') return this.#park(claim, progress, about, decision.hint);
    await logouts.postpone(claim, decision.delayMs, progress);
    emit({ type: 'logout-retrying', ...about, cause, delayMs: decision.delayMs });
    return decision.delayMs;
  }

  /** A guest leaves it to the app, which may have other options and keys. */
  async #park(
    claim: Claim,
    progress: Progress,
    about: AttemptEvent,
    hint: string,
  ): Promise<number | undefined> {
    const { isGuest, emit } = this.parts;
    const { cause = '' } = progress;
    if (isGuest) {
      // The app reads in the row why its own attempt failed, not that this process lacks its key.
      const left = progress.cause === UNREADABLE ? claim : progress;
      await this.logouts.postpone(claim, LEFT_TO_THE_APP_MS, left);
      emit({ type: 'logout-retrying', ...about, cause, delayMs: LEFT_TO_THE_APP_MS, hint });
      return LEFT_TO_THE_APP_MS;
    }
    await this.logouts.park(claim, hint, progress);
    emit({ type: 'logout-parked', ...about, cause, hint });
    return undefined;
  }

  /** Stops this process, and others by the storage. The result of the attempt is recorded even when the pause is not. */
  async #pause(ms: number): Promise<void> {
    this.breaker.rest(ms);
    await this.#containment.run<unknown>('outbox', () => this.logouts.pause(ms), undefined);
  }
}
