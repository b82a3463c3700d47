import { Containment } from '../containment.js';
import type { Emit } from '../debate-space-event.js';
import { withTimeout } from '../with-timeout.js';
import type { CircuitBreaker } from '../jobs/circuit-breaker.js';
import type { ServicePause } from '../remote/service-pause.js';
import { WorkLoop } from '../jobs/work-loop.js';
import type { ErasureAttempt, FailedAttempt } from './erasure-attempt.js';
import type { ClaimedErasure, ErasureEnd } from './claimed-erasure.js';
import type { ErasureQueue } from './erasure-queue.js';
import type { ErasureRecords } from './erasure-records.js';
import type { ErasureUpkeep } from './erasure-upkeep.js';

export interface ErasureDispatcherParts {
  readonly records: ErasureRecords;
  readonly queue: ErasureQueue;
  readonly upkeep: ErasureUpkeep;
  readonly attempt: ErasureAttempt;
  readonly breaker: CircuitBreaker;
  readonly pause?: Pick<ServicePause, 'leftMs'>;
  /** Whether logouts wait: they go first. */
  readonly logoutsWait: () => Promise<boolean>;
  /** Gives up what still waits for a user who is no more. */
  readonly forget: (uid: string) => Promise<void>;
  readonly emit: Emit;
}

export interface ErasureDispatcherOptions {
  /** After how long an erasure that fails is parked, in milliseconds. */
  readonly giveUpAfterMs: number;
  /** Longer than any attempt can take, in milliseconds. */
  readonly leaseMs: number;
}

/** How often is looked after what other processes left, and what is overdue. */
const TICK_MS = 5_000;
const LOOK_AGAIN_MS = 100;
/** So long erasures let logouts go first; then one goes between. */
const MOST_PATIENCE_MS = 5_000;
/** What was paused, or had a long list before it, may be late at its first attempt: it has three in a row. */
const LATE_FAILURES = 2;
const LATE_DELAY_MS = 1_000;
const DAY_MS = 24 * 60 * 60 * 1000;

/** Carries out what is due, behind waiting logouts and at the pace that the service allows. */
export class ErasureDispatcher {
  readonly #parts: ErasureDispatcherParts;
  readonly #options: ErasureDispatcherOptions;
  readonly #underWay = new Set<Promise<void>>();
  readonly #containment: Containment;
  readonly #loop: WorkLoop;
  #tick: NodeJS.Timeout | undefined;
  #stopListening: () => void = () => undefined;
  #patientSince: number | undefined;
  #lookAfterAll = false;

  constructor(parts: ErasureDispatcherParts, options: ErasureDispatcherOptions) {
    this.#parts = parts;
    this.#options = options;
    this.#containment = new Containment(parts.emit);
    this.#loop = new WorkLoop(() => this.#work(), this.#containment, 'erasures');
  }

  start(): void {
    this.#stopListening = this.#parts.records.onChange(() => {
      this.#loop.wake();
    });
    this.#lookAfterAll = true;
    this.#tick = setInterval(() => {
      this.#lookAfterAll = true;
      this.#loop.wake();
    }, TICK_MS).unref();
    this.#loop.start();
  }

  /** Begins nothing any more. */
  stop(): void {
    this.#stopListening();
    clearInterval(this.#tick);
    this.#loop.stop();
  }

  /** Resolves when no attempt is under way any more, or the time is over. */
  async idle(withinMs: number): Promise<void> {
    await withTimeout(Promise.all(this.#underWay), withinMs, undefined);
  }

  async #work(): Promise<void> {
    if (this.#lookAfterAll) await this.#lookAfter();
    const { breaker, queue } = this.#parts;
    while (this.#loop.running && this.#underWay.size < breaker.concurrency) {
      const pausedMs = Math.max(breaker.waitMs, this.#parts.pause?.leftMs ?? 0);
      const waitMs = pausedMs > 0 ? pausedMs : (await this.#isPatient()) ? LOOK_AGAIN_MS : 0;
      if (waitMs > 0) {
        this.#loop.wakeIn(waitMs);
        return;
      }
      const claimed = await queue.claim(this.#options.leaseMs);
      if (!claimed) {
        const dueMs = await queue.nextDueMs();
        if (dueMs !== undefined) this.#loop.wakeIn(Math.max(0, dueMs));
        return;
      }
      this.#begin(claimed);
    }
  }

  /** Whether logouts go first now. */
  async #isPatient(): Promise<boolean> {
    const waits = (await this.#parts.queue.nextDueMs()) ?? Infinity;
    if (waits > 0 || !(await this.#parts.logoutsWait())) {
      this.#patientSince = undefined;
      return false;
    }
    this.#patientSince ??= performance.now();
    if (performance.now() - this.#patientSince < MOST_PATIENCE_MS) return true;
    this.#patientSince = undefined;
    return false;
  }

  async #lookAfter(): Promise<void> {
    this.#lookAfterAll = false;
    const { upkeep, emit } = this.#parts;
    for (let late = await upkeep.nextOverdue(); late; late = await upkeep.nextOverdue()) {
      const { reference, mode, waiting, failed, askedAt } = late;
      const days = Math.floor((Date.now() - askedAt.getTime()) / DAY_MS);
      emit({ type: 'erasure-overdue', reference, mode, waiting: waiting + failed, days });
    }
    if (await upkeep.prune()) this.#lookAfterAll = true;
  }

  #begin(claimed: ClaimedErasure): void {
    const attempt = this.#attempt(claimed)
      .catch((error: unknown) => {
        this.#containment.report('erasures', error); // it is due again when its lease is over
      })
      .finally(() => {
        this.#underWay.delete(attempt);
        this.#loop.wake();
      });
    this.#underWay.add(attempt);
  }

  async #attempt(claimed: ClaimedErasure): Promise<void> {
    const { attempt, queue } = this.#parts;
    const result = await attempt.make(claimed, () => queue.send(claimed));
    if (result.end) await this.#finish(claimed, result.end);
    else await this.#again(claimed, result);
  }

  async #finish(claimed: ClaimedErasure, end: ErasureEnd): Promise<void> {
    const { queue, breaker, emit, forget } = this.#parts;
    const { uid, uidHash, mode } = claimed;
    const { outcome, answer, loggedOut, reason = '' } = end;
    if (outcome !== 'vetoed') {
      breaker.record('success', '');
      if (uid !== undefined) await forget(uid);
    }
    const { references, attempts, finished } = await queue.finish(claimed, end);
    if (finished.length > 0) this.#lookAfterAll = true;
    for (const reference of references) {
      const which = { reference, mode, uidHash };
      if (outcome === 'vetoed') emit({ type: 'erasure-vetoed', ...which, reason });
      else emit({ type: 'erasure-done', ...which, outcome, attempts, answer, loggedOut });
    }
    for (const { reference, total, done, notFound, vetoed, cancelled } of finished) {
      emit({ type: 'erasure-finished', reference, mode, total, done, notFound, vetoed, cancelled });
    }
  }

  async #again(claimed: ClaimedErasure, result: FailedAttempt): Promise<void> {
    const { queue, breaker, emit } = this.#parts;
    const { setback, others, brokenOff, delayMs, hint } = result;
    if (brokenOff) {
      await queue.retry(claimed, setback, 0); // the next start need not wait for the lease
      return;
    }
    const { cause, sent } = setback;
    if (others === 'held-up') breaker.record('failure', cause);
    if (others === 'slower') breaker.rest(delayMs);
    const { uidHash, mode, uid } = claimed;
    const [reference = ''] = claimed.references;
    const which = { reference, mode, uidHash, attempts: claimed.attempts + Number(sent), cause };
    const isLate = Date.now() >= claimed.since + this.#options.giveUpAfterMs;
    if (uid === undefined || (isLate && claimed.failures >= LATE_FAILURES)) {
      await queue.park(claimed, setback);
      this.#lookAfterAll = true;
      emit({ type: 'erasure-parked', ...which, hint });
      return;
    }
    const againMs = isLate ? Math.min(delayMs, LATE_DELAY_MS) : delayMs;
    await queue.retry(claimed, setback, againMs);
    emit({ type: 'erasure-retrying', ...which, delayMs: againMs });
  }
}
