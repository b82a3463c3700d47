import { CircuitBreaker, type JobKind } from 'durable-jobs';
import { Containment } from '../../async/containment.js';
import type { Emit } from '../../events.js';
import type { FallbackQueue } from '../../logout/queue/fallback-queue.js';
import type { ServicePause } from '../../service/http/service-pause.js';
import type { ErasureAttempt, FailedAttempt } from './erasure-attempt.js';
import type { ErasureEnd } from '../queue/erasure-batch.js';
import type { ErasureClaim, ErasureQueue } from '../queue/erasure-queue.js';

/** What was paused, or had a long list before it, may be late at its first attempt: it has three in a row. */
const LATE_FAILURES = 2;
const LATE_DELAY_MS = 1_000;

/** Erasures as jobs: makes an attempt, and records what came of it. */
export class ErasureExecution implements JobKind<ErasureClaim> {
  readonly name = 'erasures';
  /** A claim takes no more than may begin: under the rate limit they would only wait in this process. */
  readonly batch = 1;
  readonly breaker: CircuitBreaker;
  readonly #containment: Containment;

  constructor(
    private readonly options: { readonly concurrency: number; readonly giveUpAfterMs: number },
    private readonly emit: Emit,
    readonly queue: ErasureQueue,
    private readonly attempt: ErasureAttempt,
    private readonly pause: ServicePause,
    private readonly logouts: FallbackQueue,
  ) {
    this.#containment = new Containment(emit);
    const onChange = (state: 'open' | 'closed', cause: string): void => {
      emit(state === 'open' ? { type: 'erasure-service-down', cause } : { type: 'erasure-service-up' });
    };
    // An attempt logs the user out first: one failure is enough to stop the others.
    this.breaker = new CircuitBreaker(options.concurrency, onChange, 1);
  }

  pauseMs(): number {
    return this.pause.leftMs;
  }

  async execute(claim: ErasureClaim): Promise<void> {
    const begun = performance.now();
    const result = await this.attempt.make(claim, () => this.queue.markSending(claim));
    if ('outcome' in result) await this.#finish(claim, result);
    else await this.#tryAgain(claim, result, claim.ageMs + performance.now() - begun);
  }

  async #finish(claim: ErasureClaim, end: ErasureEnd): Promise<void> {
    const { uid, uidHash, mode, reference } = claim;
    const { outcome, status, loggedOut, reason = '' } = end;
    if (outcome !== 'vetoed') {
      this.breaker.record('success', '');
      const forget = () => (uid === undefined ? undefined : this.logouts.forget(uid));
      await this.#containment.run('logouts of an erased user', forget, undefined);
    }
    await this.queue.finish(claim, end, (attempts) => {
      const which = { reference, mode, uidHash };
      if (outcome === 'vetoed') this.emit({ type: 'erasure-vetoed', ...which, reason });
      else this.emit({ type: 'erasure-done', ...which, outcome, attempts, status, loggedOut });
    });
  }

  async #tryAgain(claim: ErasureClaim, failed: FailedAttempt, ageMs: number): Promise<void> {
    const { cause, sent, others, brokenOff, delayMs, hint } = failed;
    // The next process need not wait for the end of the lease.
    if (brokenOff) return this.queue.retry(claim, failed, 0);
    if (others === 'held-up') this.breaker.record('failure', cause);
    if (others === 'slower') this.breaker.rest(delayMs);
    const { uidHash, mode, uid, failures, reference } = claim;
    const which = { reference, mode, uidHash, attempts: claim.attempts + Number(sent), cause };
    const isLate = this.queue.isLate(ageMs, this.options.giveUpAfterMs);
    if (uid === undefined || (isLate && failures >= LATE_FAILURES)) {
      await this.queue.park(claim, failed, hint);
      this.emit({ type: 'erasure-parked', ...which, hint });
    } else {
      const retryMs = isLate ? Math.min(delayMs, LATE_DELAY_MS) : delayMs;
      await this.queue.retry(claim, failed, retryMs);
      this.emit({ type: 'erasure-retrying', ...which, delayMs: retryMs });
    }
  }
}
