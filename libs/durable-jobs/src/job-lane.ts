import type { Containment } from './containment.js';
import { withTimeout } from './with-timeout.js';
import { type JobKind, LEASE_MS, type ChangeListener } from './job-kind.js';
import { WorkLoop } from './work-loop.js';

const CLAIM_AGAIN_MS = 100;
/** How soon a lane that lets the earlier ones go first looks again. */
const LOOK_AGAIN_MS = 100;
/** How long a lane lets the earlier ones go first, or waits for their queues; then it begins what it may. */
const MAX_PATIENCE_MS = 5_000;

export type AnyJobLane = Pick<JobLane<never>, keyof JobLane<never>>;

/** The jobs of one kind that this process has claimed: those under way, and those that wait for a free place. */
export class JobLane<Claim> {
  /** Of its own: a queue that does not answer holds up no other lane. */
  readonly loop: WorkLoop;
  /** Whether it has jobs that are due and cannot begin yet. */
  isBehind = false;
  readonly #underWay = new Map<Claim, Promise<void>>();
  #waiting: readonly Claim[] = [];
  /** Until when nobody else gets what waits here. */
  #leasedUntil = 0;
  #isMaintaining = false;
  /** Whether nothing is due before a change, a poll or the timer wakes the loop: the end of a job brings nothing to begin. */
  #isEmpty = false;
  /** Since when it lets the earlier ones go first. */
  #patientSince: number | undefined;

  /**
   * @param earlier the lanes that go first
   * @param onSettled called when a job under way has come to its end
   * @param onCaughtUp called when the lane is not behind any more
   */
  constructor(
    private readonly kind: JobKind<Claim>,
    private readonly earlier: readonly AnyJobLane[],
    private readonly containment: Containment,
    private readonly onSettled: () => void,
    private readonly onCaughtUp: () => void,
  ) {
    this.loop = new WorkLoop(() => this.#work(), containment, kind.name);
  }

  /** How many jobs this process has claimed. */
  get size(): number {
    return this.#underWay.size + this.#waiting.length;
  }

  onChange(listener: ChangeListener): () => void {
    return this.kind.queue.onChange(listener);
  }

  /** Renews the leases of all jobs in hand. */
  async renew(): Promise<void> {
    if (this.#isLate) await this.#giveBack();
    if (this.size === 0) return;
    const leasedUntil = performance.now() + LEASE_MS;
    await this.kind.queue.renew([...this.#underWay.keys(), ...this.#waiting]);
    this.#leasedUntil = leasedUntil;
  }

  /** Does nothing while the last maintenance goes on. */
  async maintain(): Promise<void> {
    if (this.#isMaintaining) return;
    this.#isMaintaining = true;
    try {
      await this.kind.queue.maintain();
    } finally {
      this.#isMaintaining = false;
    }
  }

  /** @returns milliseconds until a job is due; `Infinity` when none waits, or when the queue does not say within `ms` */
  async nextDueMs(ms: number): Promise<number> {
    const asked = async (): Promise<number | undefined> => this.kind.queue.nextDueMs();
    const answer = this.containment.run(this.kind.name, asked, undefined);
    return (await withTimeout(Promise.resolve(answer), ms, undefined)) ?? Infinity;
  }

  /** Resolves when nothing is being claimed or under way. What has not begun is given back. */
  async idle(): Promise<void> {
    await this.loop.idle(); // it may be claiming
    await this.containment.run(this.kind.name, () => this.#giveBack(), undefined);
    await Promise.all(this.#underWay.values());
  }

  async #work(): Promise<void> {
    if (!(await this.#isNext())) {
      this.loop.wakeIn(LOOK_AGAIN_MS);
      return;
    }
    const wasBehind = this.isBehind;
    this.isBehind = this.#isEmpty = false; // it may fail
    const dueMs = (await this.#begin()) ?? Infinity;
    this.isBehind = dueMs <= 0;
    if (wasBehind && !this.isBehind) this.onCaughtUp();
    if (dueMs > 0 && dueMs < Infinity) this.loop.wakeIn(dueMs);
  }

  /** Whether no earlier lane is behind, or this one has let them go first for long enough. */
  async #isNext(): Promise<boolean> {
    const known = Promise.all(this.earlier.map(({ loop }) => loop.idle()));
    if (this.earlier.length > 0) await withTimeout(known, MAX_PATIENCE_MS, undefined);
    const isPatient = this.earlier.some(({ isBehind }) => isBehind);
    if (isPatient) this.#patientSince ??= performance.now();
    const isNext = !isPatient || performance.now() - (this.#patientSince ?? 0) >= MAX_PATIENCE_MS;
    if (isNext) this.#patientSince = undefined;
    return isNext;
  }

  /**
   * Begins as many jobs as may be under way. During a pause all others are given back: another process may reach the
   * service, and what is removed from the queue meanwhile must not be carried out afterwards.
   * @returns milliseconds until there may be something to begin, 0 when jobs are due that cannot begin yet; `undefined`
   * when none waits
   */
  async #begin(): Promise<number | undefined> {
    const { breaker, queue } = this.kind;
    let isDrained = false;
    while (this.loop.running) {
      const pauseMs = Math.max(breaker.waitMs, this.kind.pauseMs());
      if (pauseMs > 0 || this.#isLate) await this.#giveBack();
      if (pauseMs > 0) return pauseMs;
      if (this.#underWay.size >= breaker.concurrency) return this.#waiting.length > 0 ? 0 : queue.nextDueMs();
      const [first, ...rest] = this.#waiting;
      if (first !== undefined) {
        this.#waiting = rest;
        this.#underWay.set(first, this.#execute(first));
        continue;
      }
      const dueMs = isDrained ? await queue.nextDueMs() : 0;
      this.#isEmpty = dueMs === undefined || dueMs > 0;
      if (this.#isEmpty) return dueMs;
      const hasAll = await this.#claim();
      // What is due all the same became due meanwhile, or others are claiming it.
      if (isDrained && this.#waiting.length === 0) return CLAIM_AGAIN_MS;
      isDrained = !hasAll;
    }
    return undefined;
  }

  async #giveBack(): Promise<void> {
    const claims = this.#waiting;
    this.#waiting = [];
    if (claims.length > 0) await this.kind.queue.giveBack(claims);
  }

  /** Whether another process may have what waits here: this one hung, or could not renew the leases. */
  get #isLate(): boolean {
    return this.#waiting.length > 0 && performance.now() >= this.#leasedUntil;
  }

  /** A probe takes one job: the others stay free for a process that reaches the service. @returns whether it got all it may have */
  async #claim(): Promise<boolean> {
    const { breaker, batch, queue } = this.kind;
    const limit = breaker.isOpen ? 1 : Math.max(batch, breaker.concurrency - this.#underWay.size);
    this.#leasedUntil = performance.now() + LEASE_MS;
    this.#waiting = await queue.claim(limit);
    return this.#waiting.length >= limit;
  }

  async #execute(claim: Claim): Promise<void> {
    await this.containment.run(this.kind.name, async () => this.kind.execute(claim), undefined);
    this.kind.queue.release?.(claim);
    this.#underWay.delete(claim);
    if (!this.#isEmpty) this.loop.wake();
    this.onSettled();
  }
}
