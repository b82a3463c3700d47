import type { CircuitBreaker, JobKind } from 'durable-jobs';
import { Containment } from '../../async/containment.js';
import type { Emit } from '../../events.js';
import type { ServicePause } from '../../service/http/service-pause.js';
import { causeOf, decide, seemsDown, hintFor, isUnexpected, type DeliveryAnswer } from './delivery-policy.js';
import type { FallbackQueue } from '../queue/fallback-queue.js';
import type { LogoutJob, LogoutEntry } from '../logout.js';
import { SecretKeyError, type Secret } from '../../secrets/secret.js';
import type { LogoutTokenSigner } from './logout-token-signer.js';
import type { LogoutRoute } from '../../service/calls/logout-route.js';
import { withTimeout } from '../../async/with-timeout.js';

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

/** An unexpected answer that has not come for this long is reported again. */
const REPORT_AGAIN_MS = 10 * 60_000;

/** Makes one attempt: a fresh token, one request (service-interface.md, section 5). Never rejects. */
export class LogoutSender {
  /** When each kind of unexpected answer came last. */
  readonly #unexpectedAt = new Map<string, number>();

  /**
   * @param timeoutMs for the host's functions that the token needs
   * @param shutdownSignal aborted when the app shuts down
   */
  constructor(
    private readonly signer: LogoutTokenSigner,
    private readonly route: LogoutRoute,
    private readonly timeoutMs: number,
    private readonly shutdownSignal: AbortSignal,
    private readonly emit: Emit,
  ) {}

  async send(entry: LogoutEntry): Promise<DeliveryAnswer> {
    try {
      await this.signer.load();
    } catch {
      return failure('jose cannot be loaded');
    }
    // Both are functions of the host's, which may do better next time.
    let key: Secret | undefined;
    try {
      key = await withTimeout(this.signer.key(), this.timeoutMs, undefined);
    } catch (error) {
      const where = error instanceof SecretKeyError ? error.message : 'secretKey';
      return this.#fault(where, error, 'secretKey failed');
    }
    if (key === undefined) return this.#late('secretKey');
    let token: string | undefined;
    try {
      token = await withTimeout(this.signer.sign(entry, key), this.timeoutMs, undefined);
    } catch (error) {
      return this.#fault('logout.claims', error, 'logout.claims failed');
    }
    if (token === undefined) return this.#late('logout.claims');
    try {
      const answer = await this.route.send(token, this.shutdownSignal);
      if (isUnexpected(answer)) this.#reportUnexpected(answer);
      return answer;
    } catch (error) {
      // A mistake in http.adapter, or in our code: the service has no part in it.
      return this.#fault('http', error);
    }
  }

  /** Once per outage: while such answers continue to come, they are not reported again. */
  #reportUnexpected(answer: DeliveryAnswer): void {
    const cause = causeOf(answer);
    const now = performance.now();
    const lastAt = this.#unexpectedAt.get(cause) ?? -Infinity;
    this.#unexpectedAt.set(cause, now);
    if (now - lastAt < REPORT_AGAIN_MS) return;
    this.emit({ type: 'logout-route-unexpected', address: this.route.url, cause, hint: hintFor(answer) });
  }

  #late(option: 'secretKey' | 'logout.claims'): DeliveryAnswer {
    const late = new DOMException('no answer in time', 'TimeoutError');
    return this.#fault(option, late, `${option} did not answer`);
  }

  /** Nothing else is logged before the logout is parked. */
  #fault(where: string, cause: unknown, reason?: string): DeliveryAnswer {
    const error = cause instanceof Error ? cause.name : typeof cause;
    this.emit({ type: 'fault', where, error });
    return failure(reason ?? error);
  }
}

function failure(reason: string): DeliveryAnswer {
  return { reason, local: true };
}
