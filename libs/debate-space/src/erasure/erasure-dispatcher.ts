import { Containment } from '../containment.js';
import type { Emit } from '../debate-space-event.js';
import { inTime } from '../in-time.js';
import type { CircuitBreaker } from '../outbox/circuit-breaker.js';
import type { ServicePause } from '../remote/service-pause.js';
import { WorkLoop } from '../outbox/work-loop.js';
import type { ErasureAttempt, FailedAttempt } from './erasure-attempt.js';
import { LEASE_MS } from '../jobs/job-queue.js';
import type { ErasureClaim, ErasureEnd } from './erasure-claim.js';
import type { ErasureQueue } from './erasure-queue.js';

export interface ErasureDispatcherParts {
  readonly queue: ErasureQueue;
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
}

/** How often is looked after what other processes left, and what is overdue. */
const TICK_MS = 5_000;
const LOOK_AGAIN_MS = 100;
/** So long erasures let logouts go first; then one goes between. */
const MOST_PATIENCE_MS = 5_000;
/** What was paused, or had a long list before it, may be late at its first attempt: it has three in a row. */
const LATE_FAILURES = 2;
const LATE_DELAY_MS = 1_000;

/** Carries out what is due, behind waiting logouts and at the pace that the service allows. */
export class ErasureDispatcher {
  readonly #parts: ErasureDispatcherParts;
  readonly #options: ErasureDispatcherOptions;
  readonly #underWay = new Set<Promise<void>>();
  readonly #claims = new Set<ErasureClaim>();
  #heartbeat: NodeJS.Timeout | undefined;
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
    this.#stopListening = this.#parts.queue.onChange(() => {
      this.#loop.wake();
    });
    this.#lookAfterAll = true;
    this.#tick = setInterval(() => {
      this.#lookAfterAll = true;
      this.#loop.wake();
    }, TICK_MS).unref();
    const renew = (): void => void this.#parts.queue.renew([...this.#claims]).catch(() => undefined);
    this.#heartbeat = setInterval(renew, LEASE_MS / 3).unref();
    this.#loop.start();
  }

  /** Begins nothing any more. */
  stop(): void {
    this.#stopListening();
    clearInterval(this.#tick);
    clearInterval(this.#heartbeat);
    this.#loop.stop();
  }

  /** Resolves when no attempt is under way any more, or the time is over. */
  async idle(withinMs: number): Promise<void> {
    await inTime(Promise.all(this.#underWay), withinMs, undefined);
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
      const [claimed] = await queue.claim(1);
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
    await this.#parts.queue.maintain();
  }

  #begin(claimed: ErasureClaim): void {
    this.#claims.add(claimed);
    const attempt = this.#attempt(claimed)
      .catch((error: unknown) => {
        this.#containment.report('erasures', error); // it is due again when its lease is over
      })
      .finally(() => {
        this.#underWay.delete(attempt);
        this.#claims.delete(claimed);
        this.#loop.wake();
      });
    this.#underWay.add(attempt);
  }

  async #attempt(claimed: ErasureClaim): Promise<void> {
    const { attempt, queue } = this.#parts;
    const result = await attempt.make(claimed, () => queue.markSending(claimed));
    if (result.end) await this.#finish(claimed, result.end);
    else await this.#again(claimed, result);
  }

  async #finish(claimed: ErasureClaim, end: ErasureEnd): Promise<void> {
    const { queue, breaker, emit, forget } = this.#parts;
    const { uid, uidHash, mode } = claimed;
    const { outcome, status, loggedOut, reason = '' } = end;
    if (outcome !== 'vetoed') {
      breaker.record('success', '');
      if (uid !== undefined) await forget(uid);
    }
    const { references, attempts, finished } = await queue.finish(claimed, end);
    if (finished.length > 0) this.#lookAfterAll = true;
    for (const reference of references) {
      const which = { reference, mode, uidHash };
      if (outcome === 'vetoed') emit({ type: 'erasure-vetoed', ...which, reason });
      else emit({ type: 'erasure-done', ...which, outcome, attempts, status, loggedOut });
    }
    for (const { reference, total, done, notFound, vetoed, cancelled } of finished) {
      emit({ type: 'erasure-finished', reference, mode, total, done, notFound, vetoed, cancelled });
    }
  }

  async #again(claimed: ErasureClaim, result: FailedAttempt): Promise<void> {
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
    const isLate = claimed.ageMs >= this.#options.giveUpAfterMs;
    if (uid === undefined || (isLate && claimed.failures >= LATE_FAILURES)) {
      await queue.park(claimed, setback, hint);
      this.#lookAfterAll = true;
      emit({ type: 'erasure-parked', ...which, hint });
      return;
    }
    const againMs = isLate ? Math.min(delayMs, LATE_DELAY_MS) : delayMs;
    await queue.retry(claimed, setback, againMs);
    emit({ type: 'erasure-retrying', ...which, delayMs: againMs });
  }
}
