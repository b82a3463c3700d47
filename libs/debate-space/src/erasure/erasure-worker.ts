import { Containment, faultsTo } from '../async/containment.js';
import type { Emit } from '../events.js';
import { CircuitBreaker } from '../jobs/circuit-breaker.js';
import type { JobWork } from '../jobs/job-lane.js';
import type { Logouts } from '../logout/logouts.js';
import type { ServicePause } from '../service/http/service-pause.js';
import type { Claim, Progress } from '../storage/storage.js';
import type { ErasureEnd, PendingErasure } from './erasure.js';
import type { ErasureAttempt, FailedAttempt } from './erasure-attempt.js';
import type { ErasureRepository } from './erasure-repository.js';
import { finishedEvent, openOf } from './erasure-status.js';

const UNREADABLE_HINT =
  'no storageKey opens the record of this user: it was written with another storageKey, or somebody changed it in the ' +
  'database; restore the key that wrote it, or cancel the reference and request the erasure again under another one';
const AFTER_THE_DELETION_MS = 60_000;
/** An erasure that was paused, or waited behind a long list, may be too old at its first attempt: it gets three in a row. */
const LATE_FAILURES = 2;
const LATE_DELAY_MS = 1_000;
/** When a guest leaves the next attempt to the app. */
const LEFT_TO_THE_APP_MS = 10_000;
const DAY_MS = 86_400_000;
const VERIFY_MS = 60_000;

export interface WorkerOptions {
  readonly concurrency: number;
  readonly giveUpAfterMs: number;
  /** Whether this process has no options of the app, and so must not give up its erasures: see {@link Guest}. */
  readonly isGuest: boolean;
  /** The only list that a guest works on. */
  readonly only?: string | undefined;
  /** Ages in milliseconds at which a reference that is not finished is reported as overdue, ascending. */
  readonly overdueAgesMs: readonly number[];
}

/** Erasures as jobs: makes an attempt, and records its result. */
export class ErasureWorker implements JobWork {
  readonly kind = 'erasure';
  /** A claim takes no more than may begin: under the rate limit they would only wait in this process. */
  readonly batch = 1;
  readonly only: string | undefined;
  readonly breaker: CircuitBreaker;
  readonly #containment: Containment;
  #verifiedAt = -Infinity;

  /** @param storage where the lane claims */
  constructor(
    readonly storage: JobWork['storage'],
    private readonly options: WorkerOptions,
    private readonly emit: Emit,
    private readonly repository: ErasureRepository,
    private readonly attempt: Pick<ErasureAttempt, 'make'>,
    private readonly pause: Pick<ServicePause, 'leftMs'>,
    private readonly logouts: Pick<Logouts, 'forget'>,
  ) {
    this.only = options.only;
    this.#containment = new Containment(faultsTo(emit));
    const onChange = (state: 'open' | 'closed', cause: string): void => {
      emit(state === 'open' ? { type: 'erasure-service-down', cause } : { type: 'erasure-service-up' });
    };
    // An attempt logs the user out first: one failure is enough to stop the others.
    this.breaker = new CircuitBreaker(options.concurrency, onChange, 1);
  }

  pauseMs(): number {
    return this.pause.leftMs;
  }

  async execute(claim: Claim): Promise<number | undefined> {
    const startedAt = performance.now();
    const { repository } = this;
    const erasure = repository.open(claim);
    if (!erasure && this.options.isGuest) return this.#postpone(claim, LEFT_TO_THE_APP_MS, claim);
    if (!erasure) return this.#park(claim, claim, 'unreadable', UNREADABLE_HINT);
    if (claim.reference?.paused) {
      await repository.giveBack(claim); // the process that had claimed it died before the pause
      return undefined;
    }
    if (claim.reference?.canceled && claim.uncertain === undefined)
      return this.#cancelRest(erasure.reference);
    if (await repository.waitsForDeletion(erasure))
      return this.#postpone(claim, AFTER_THE_DELETION_MS, claim);
    const result = await this.attempt.make(erasure, claim);
    if ('outcome' in result) return this.#finish(claim, erasure, result);
    return this.#tryAgain(claim, result, claim.ageMs + performance.now() - startedAt);
  }

  /** Reports overdue references, over all processes once for each reference and age, and verifies some references. */
  async maintain(): Promise<void> {
    await this.#reportOverdue();
    if (performance.now() - this.#verifiedAt < VERIFY_MS) return;
    await this.repository.verifySome();
    this.#verifiedAt = performance.now();
  }

  async #reportOverdue(): Promise<void> {
    const { options, repository, emit } = this;
    for (;;) {
      const overdue = await repository.claimOverdue(options.overdueAgesMs);
      if (overdue.length === 0) return;
      for (const found of overdue) {
        const { reference, mode, requestedAt } = found;
        const days = Math.max(0, Math.floor((Date.now() - requestedAt) / DAY_MS));
        emit({ type: 'erasure-overdue', reference, mode, waiting: openOf(found), days });
      }
    }
  }

  /** A process that died has left the rest of a canceled reference. */
  async #cancelRest(reference: string): Promise<undefined> {
    const finished = await this.repository.cancel(reference);
    if (finished) this.emit(finishedEvent(finished));
  }

  async #finish(claim: Claim, { uid, mode, reference }: PendingErasure, end: ErasureEnd): Promise<undefined> {
    const { outcome, status, loggedOut, reason = '' } = end;
    const { repository, emit } = this;
    const attempts = claim.attempts + Number(outcome !== 'vetoed');
    if (outcome !== 'vetoed') {
      this.breaker.record('success', '');
      const forget = () => this.logouts.forget(uid);
      await this.#containment.run('logouts of an erased user', forget, undefined);
    }
    const { isNew, finished } = await repository.finish(claim, end, attempts);
    const which = { reference, mode, subject: claim.subject };
    if (isNew && outcome === 'vetoed') emit({ type: 'erasure-vetoed', ...which, reason });
    else if (isNew) emit({ type: 'erasure-done', ...which, outcome, attempts, status, loggedOut });
    if (finished) emit(finishedEvent(finished));
  }

  async #tryAgain(claim: Claim, failed: FailedAttempt, ageMs: number): Promise<number | undefined> {
    const { cause, others, brokenOff, delayMs, hint } = failed;
    const progress = this.#progressAfter(claim, failed);
    // The next process need not wait for the end of the lease.
    if (brokenOff) return this.#postpone(claim, 0, progress);
    if (others === 'held-up') this.breaker.record('failure', cause);
    if (others === 'slower') this.breaker.rest(delayMs);
    const isLate = !this.options.isGuest && ageMs >= this.options.giveUpAfterMs;
    if (isLate && claim.failures >= LATE_FAILURES) return this.#park(claim, progress, cause, hint);
    const retryMs = isLate ? Math.min(delayMs, LATE_DELAY_MS) : delayMs;
    await this.#postpone(claim, retryMs, progress);
    this.emit({ type: 'erasure-retrying', ...this.#about(claim, progress), cause, delayMs: retryMs });
    return retryMs;
  }

  /** @returns `delayMs` */
  async #postpone(claim: Claim, delayMs: number, progress: Progress): Promise<number> {
    await this.repository.postpone(claim, delayMs, progress);
    return delayMs;
  }

  async #park(claim: Claim, progress: Progress, cause: string, hint: string): Promise<undefined> {
    await this.repository.park(claim, hint, { ...progress, cause });
    this.emit({ type: 'erasure-parked', ...this.#about(claim, progress), cause, hint });
  }

  #about({ reference: of, subject }: Claim, { attempts }: Progress) {
    const { reference = '', mode = 'anonymize' } = of ?? {};
    return { reference, mode, subject, attempts } as const;
  }

  #progressAfter(claim: Claim, failed: FailedAttempt): Progress {
    const uncertain = failed.uncertain ? this.repository.uncertainMark(claim) : undefined;
    return {
      attempts: claim.attempts + Number(failed.sent),
      failures: claim.failures + Number(!failed.brokenOff),
      rejections: failed.rejections,
      uncertain: claim.uncertain ?? uncertain,
      cause: failed.brokenOff ? claim.cause : failed.cause,
    };
  }
}
