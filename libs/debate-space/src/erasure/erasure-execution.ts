import type { Emit } from '../debate-space-event.js';
import type { CircuitBreaker } from '../jobs/circuit-breaker.js';
import type { JobKind } from '../jobs/job-kind.js';
import type { ServicePause } from '../remote/service-pause.js';
import type { ErasureAttempt } from './erasure-attempt.js';
import type { ErasureClaim, ErasureEnd, ErasureJobs } from './erasure-claim.js';
import type { FailedAttempt } from './failed-attempt.js';

export interface ErasureExecutionParts {
  readonly queue: ErasureJobs;
  readonly attempt: Pick<ErasureAttempt, 'make'>;
  readonly breaker: CircuitBreaker;
  readonly pause?: Pick<ServicePause, 'leftMs'>;
  /** `erasure.giveUpAfterMs`. */
  readonly giveUpAfterMs: number;
  /** Removes the logouts that still wait for a user who is erased. */
  readonly forget: (uid: string) => Promise<void>;
  readonly emit: Emit;
}

/** What was paused, or had a long list before it, may be late at its first attempt: it has three in a row. */
const LATE_FAILURES = 2;
const LATE_DELAY_MS = 1_000;

/** Erasures as jobs: makes an attempt, and records what came of it. */
export class ErasureExecution implements JobKind<ErasureClaim> {
  readonly name = 'erasures';
  /** A claim takes no more than may begin: under the rate limit they would only wait in this process. */
  readonly batch = 1;
  readonly #parts: ErasureExecutionParts;
  readonly #underWay = new Set<string>();

  constructor(parts: ErasureExecutionParts) {
    this.#parts = parts;
  }

  get queue(): ErasureJobs {
    return this.#parts.queue;
  }

  get breaker(): CircuitBreaker {
    return this.#parts.breaker;
  }

  pauseMs(): number {
    return this.#parts.pause?.leftMs ?? 0;
  }

  async execute(claim: ErasureClaim): Promise<void> {
    const { attempt } = this.#parts;
    const begun = performance.now();
    const id = `${claim.mode} ${claim.uidHash}`;
    if (this.#underWay.has(id)) return;
    this.#underWay.add(id);
    const result = await attempt.make(claim, () => this.queue.markSending(claim)).finally(() => this.#underWay.delete(id)); // prettier-ignore
    if (result.end) await this.#finish(claim, result.end);
    else await this.#tryAgain(claim, result, claim.ageMs + performance.now() - begun);
  }

  async #finish(claim: ErasureClaim, end: ErasureEnd): Promise<void> {
    const { queue, breaker, emit, forget } = this.#parts;
    const { uid, uidHash, mode } = claim;
    const { outcome, status, loggedOut, reason = '' } = end;
    if (outcome !== 'vetoed') {
      breaker.record('success', '');
      if (uid !== undefined) await forget(uid);
    }
    const { references, attempts, finished } = await queue.finish(claim, end);
    for (const reference of references) {
      const which = { reference, mode, uidHash };
      if (outcome === 'vetoed') emit({ type: 'erasure-vetoed', ...which, reason });
      else emit({ type: 'erasure-done', ...which, outcome, attempts, status, loggedOut });
    }
    for (const { reference, total, done, notFound, vetoed, cancelled } of finished) {
      emit({ type: 'erasure-finished', reference, mode, total, done, notFound, vetoed, cancelled });
    }
  }

  async #tryAgain(claim: ErasureClaim, result: FailedAttempt, ageMs: number): Promise<void> {
    const { queue, breaker, emit, giveUpAfterMs } = this.#parts;
    const { setback, others, brokenOff, delayMs, hint } = result;
    if (brokenOff) {
      await queue.retry(claim, setback, 0); // the next process need not wait for the end of the lease
      return;
    }
    const { cause, sent } = setback;
    if (others === 'held-up') breaker.record('failure', cause);
    if (others === 'slower') breaker.rest(delayMs);
    const { uidHash, mode, uid } = claim;
    const [reference = ''] = claim.references;
    const which = { reference, mode, uidHash, attempts: claim.attempts + Number(sent), cause };
    const isLate = ageMs >= giveUpAfterMs;
    if (uid === undefined || (isLate && claim.failures >= LATE_FAILURES)) {
      await queue.park(claim, setback, hint);
      emit({ type: 'erasure-parked', ...which, hint });
      return;
    }
    const retryMs = isLate ? Math.min(delayMs, LATE_DELAY_MS) : delayMs;
    await queue.retry(claim, setback, retryMs);
    emit({ type: 'erasure-retrying', ...which, delayMs: retryMs });
  }
}
