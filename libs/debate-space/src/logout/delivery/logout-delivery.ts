import type { CircuitBreaker, JobKind } from 'durable-jobs';
import { Containment } from '../../async/containment.js';
import type { Emit } from '../../events.js';
import type { ServicePause } from '../../service/http/service-pause.js';
import { causeOf, decide, seemsDown } from './delivery-policy.js';
import type { FallbackQueue } from '../queue/fallback-queue.js';
import type { LogoutSender } from './logout-sender.js';
import type { LogoutJob } from '../logout.js';

/** What the breaker of the logouts says of the service, for {@link LogoutDelivery}. */
export function serviceEvents(emit: Emit) {
  return (state: 'open' | 'closed', cause: string): void => {
    emit(state === 'open' ? { type: 'service-down', cause } : { type: 'service-up' });
  };
}

/** Logouts as jobs: sends one, and records what the policy makes of the answer. */
export class LogoutDelivery implements JobKind<LogoutJob> {
  readonly name = 'outbox';
  /** What one commit claims; Postgres delivers several times as many logouts with it. */
  readonly batch = 32;
  readonly #containment: Containment;
  /** The ids of those whose result is not recorded: one that hung is due again meanwhile. */
  readonly #sent = new Set<string>();
  #pausedUntil = 0;

  /** @param giveUpAfterMs `logout.giveUpAfterMs` */
  constructor(
    readonly queue: FallbackQueue,
    readonly breaker: CircuitBreaker,
    private readonly sender: Pick<LogoutSender, 'send'>,
    private readonly giveUpAfterMs: number,
    private readonly emit: Emit,
    private readonly pause?: Pick<ServicePause, 'unavailableMs'>,
  ) {
    this.#containment = new Containment(emit);
  }

  pauseMs(): number {
    return Math.max(this.pause?.unavailableMs ?? 0, this.#pausedUntil - performance.now());
  }

  async execute(job: LogoutJob): Promise<void> {
    const { id } = job.entry;
    if (this.#sent.has(id)) return;
    this.#sent.add(id);
    try {
      await this.#deliver(job);
    } finally {
      this.#sent.delete(id);
    }
  }

  async #deliver(job: LogoutJob): Promise<void> {
    const { queue, breaker, sender, emit } = this;
    const { id, uid, endedAt } = job.entry;
    const begun = performance.now();
    const answer = await sender.send(job.entry);
    if (answer.aborted) {
      await queue.giveBack([job]); // the next process need not wait for the end of the lease
      return;
    }
    const decision = decide(answer, job, this.giveUpAfterMs);
    const cause = causeOf(answer);
    const attempts = job.attempts + 1;
    const about = { id, uid, attempts, tookMs: performance.now() - begun };
    if (!answer.local) breaker.record(seemsDown(answer) ? 'failure' : 'success', cause);
    if (decision.action === 'finish') {
      await queue.finish(id, attempts);
      emit({ type: 'logout-delivered', ...about, delayMs: Date.now() - endedAt });
      return;
    }
    const { pauseMs, rejections } = decision;
    if (pauseMs > 0) await this.#pause(pauseMs);
    const progress = { attempts, rejections, cause };
    if (decision.action === 'retry') {
      await queue.retry(id, progress, decision.delayMs);
      emit({ type: 'logout-retrying', ...about, cause, delayMs: decision.delayMs });
    } else {
      await queue.park(id, progress, decision.hint);
      emit({ type: 'logout-parked', ...about, cause, hint: decision.hint });
    }
  }

  /** Stops this process, and others by a row in the queue. The result of the attempt is recorded even when the row is not. */
  async #pause(ms: number): Promise<void> {
    this.#pausedUntil = Math.max(this.#pausedUntil, performance.now() + ms);
    await this.#containment.run<unknown>('outbox', () => this.queue.pause(ms), undefined);
  }
}
