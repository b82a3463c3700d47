import { Containment } from '../containment.js';
import type { Emit } from '../debate-space-event.js';
import { withTimeout } from '../with-timeout.js';
import { causeOf, decide, seemsDown, type DeliveryAnswer } from './delivery-policy.js';
import type { Outbox, LogoutEntry, LogoutJob } from './outbox.js';
import type { ServicePause } from '../remote/service-pause.js';
import { CircuitBreaker } from './circuit-breaker.js';
import { WorkLoop } from './work-loop.js';

export interface DispatcherOptions {
  readonly concurrency: number;
  readonly giveUpAfterMs: number;
  /** Longer than any attempt can take, in milliseconds. */
  readonly leaseMs: number;
}

/** One attempt: a fresh token, one request. Never rejects. */
export type Deliver = (entry: LogoutEntry) => Promise<DeliveryAnswer>;

/** Takes what is due out of the outbox and delivers it, at the pace that the service allows. */
export class Dispatcher {
  readonly #outbox: Outbox;
  readonly #deliver: Deliver;
  readonly #options: DispatcherOptions;
  readonly #emit: Emit;
  readonly #breaker: CircuitBreaker;
  readonly #servicePause: Pick<ServicePause, 'unavailableMs'> | undefined;
  readonly #underWay = new Set<Promise<void>>();
  /** The ids of those that wait for an answer. */
  readonly #sent = new Set<string>();
  readonly #containment: Containment;
  readonly #loop: WorkLoop;
  #settled: () => void = () => undefined;

  constructor(
    outbox: Outbox,
    deliver: Deliver,
    options: DispatcherOptions,
    emit: Emit,
    servicePause?: Pick<ServicePause, 'unavailableMs'>,
  ) {
    this.#outbox = outbox;
    this.#deliver = deliver;
    this.#options = options;
    this.#emit = emit;
    this.#breaker = new CircuitBreaker(options.concurrency, emit);
    this.#containment = new Containment(emit);
    this.#loop = new WorkLoop(() => this.#claimAndDeliver(), this.#containment, 'outbox');
    this.#servicePause = servicePause;
  }

  /** Whether the service did not serve when it was last tried. */
  get serviceDown(): boolean {
    return this.#breaker.isOpen;
  }

  start(): void {
    this.#outbox.onChange(() => {
      this.#loop.wake();
    });
    this.#loop.start();
  }

  /**
   * Goes on until nothing is pending or the time is over, then stops.
   * @returns how many entries are left pending, as far as the outbox could say
   */
  async drain(deadlineMs: number): Promise<number> {
    const deadline = performance.now() + deadlineMs;
    try {
      for (;;) {
        const pending = await this.#pending(deadline - performance.now());
        const leftMs = deadline - performance.now();
        if (pending === 0 || leftMs <= 0) return pending;
        await this.#progress(leftMs);
      }
    } finally {
      this.#loop.stop();
    }
  }

  /** As far as it can be said: of an engine that is away, nobody knows. */
  async #pending(withinMs: number): Promise<number> {
    try {
      const counts = await withTimeout(Promise.resolve(this.#outbox.counts()), withinMs, undefined);
      if (counts) return counts.pending;
      throw new Error('the outbox does not answer');
    } catch (error) {
      this.#containment.report('outbox', error);
      return this.#outbox.kept?.pending ?? 0;
    }
  }

  /** Whether a logout is due. */
  async busy(): Promise<boolean> {
    return ((await this.#outbox.nextDueMs()) ?? Infinity) <= 0;
  }

  /** Resolves when no attempt is under way any more. */
  async idle(): Promise<void> {
    await Promise.all(this.#underWay);
  }

  /** Resolves with the next attempt that comes to its end, or after the time given. */
  async #progress(withinMs: number): Promise<void> {
    await new Promise<void>((resolve) => {
      const timer = setTimeout(resolve, withinMs);
      this.#settled = () => {
        clearTimeout(timer);
        resolve();
      };
      this.#loop.wake();
    });
  }

  /** Claims as much as may be under way now. */
  async #claimAndDeliver(): Promise<void> {
    const { concurrency } = this.#breaker;
    const waitMs = Math.max(this.#breaker.waitMs, this.#servicePause?.unavailableMs ?? 0);
    if (waitMs > 0) {
      this.#loop.wakeIn(waitMs);
      return;
    }
    const free = concurrency - this.#underWay.size;
    if (free <= 0) return;
    for (const job of await this.#outbox.claim(free, this.#options.leaseMs)) {
      // One whose lease ran out while it is still under way here – in a process that hung – is not sent twice.
      if (!this.#sent.has(job.entry.id)) this.#begin(job);
    }
    const dueMs = await this.#outbox.nextDueMs();
    if (dueMs !== undefined && this.#underWay.size < concurrency) this.#loop.wakeIn(dueMs);
  }

  #begin(job: LogoutJob): void {
    const attempt = this.#attempt(job)
      .catch((error: unknown) => {
        // The entry stays in the outbox and is due again when its lease has run out.
        this.#containment.report('outbox', error);
      })
      .finally(() => {
        this.#underWay.delete(attempt);
        this.#settled();
        this.#loop.wake();
      });
    this.#underWay.add(attempt);
  }

  /** What came of the attempt has to be noted, whether the pause was or not. */
  async #pause(ms: number): Promise<void> {
    try {
      await this.#outbox.pause(ms);
    } catch (error) {
      this.#containment.report('outbox', error);
    }
  }

  async #attempt(job: LogoutJob): Promise<void> {
    const { entry } = job;
    this.#sent.add(entry.id);
    const begun = performance.now();
    const answer = await this.#deliver(entry).finally(() => this.#sent.delete(entry.id));
    if (answer.aborted) {
      const { attempts, rejections, cause } = job;
      await this.#outbox.retry(entry.id, { attempts, rejections, cause }, 0); // none at all: the next start need not wait for the lease
      return;
    }
    const decision = decide(answer, job, this.#options.giveUpAfterMs);
    const attempts = job.attempts + 1;
    const tookMs = performance.now() - begun;
    const { id, uid } = entry;
    const cause = causeOf(answer);
    if (!answer.local) this.#breaker.record(seemsDown(answer) ? 'failure' : 'success', cause);
    if (decision.action === 'finish') {
      await this.#outbox.finish(id, attempts);
      this.#emit({
        type: 'logout-delivered',
        id,
        uid,
        attempts,
        tookMs,
        delayMs: Date.now() - entry.endedAt,
      });
      return;
    }
    if (decision.pauseMs > 0) await this.#pause(decision.pauseMs);
    const progress = { attempts, rejections: decision.rejections, cause };
    switch (decision.action) {
      case 'retry':
        await this.#outbox.retry(id, progress, decision.delayMs);
        this.#emit({ type: 'logout-retrying', id, uid, attempts, tookMs, cause, delayMs: decision.delayMs });
        return;
      case 'park':
        await this.#outbox.park(id, progress, decision.hint);
        this.#emit({ type: 'logout-parked', id, uid, attempts, tookMs, cause, hint: decision.hint });
    }
  }
}
