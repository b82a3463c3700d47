import type { Containment } from '../containment.js';
import type { JobKind } from './job-kind.js';
import { LEASE_MS } from './job-queue.js';

const CLAIM_AGAIN_MS = 100;

/** The jobs of one kind that this process has claimed: those under way, and those that wait for a free place. */
export class JobLane<Claim> {
  readonly #kind: JobKind<Claim>;
  readonly #containment: Containment;
  readonly #onSettled: () => void;
  readonly #underWay = new Map<Claim, Promise<void>>();
  #waiting: readonly Claim[] = [];
  /** Until when nobody else gets what waits here. */
  #leasedUntil = 0;
  #isMaintaining = false;

  /** @param onSettled called when a job under way has come to its end */
  constructor(kind: JobKind<Claim>, containment: Containment, onSettled: () => void) {
    this.#kind = kind;
    this.#containment = containment;
    this.#onSettled = onSettled;
  }

  get name(): string {
    return this.#kind.name;
  }

  /** How many jobs this process has claimed. */
  get size(): number {
    return this.#underWay.size + this.#waiting.length;
  }

  onChange(listener: () => void): () => void {
    return this.#kind.queue.onChange(listener);
  }

  /**
   * Begins as many jobs as may be under way. During a pause all others are given back: another process may reach the
   * service, and what is removed from the queue meanwhile must not be carried out afterwards.
   * @returns milliseconds until there may be something to begin, 0 when jobs are due that cannot begin yet; `undefined`
   * when none waits
   */
  async begin(isRunning: () => boolean): Promise<number | undefined> {
    const { breaker, queue } = this.#kind;
    while (isRunning()) {
      const pauseMs = Math.max(breaker.waitMs, this.#kind.pauseMs());
      if (pauseMs > 0 || this.#isLate) await this.giveBack();
      if (pauseMs > 0) return pauseMs;
      if (this.#underWay.size >= breaker.concurrency) return this.#waiting.length > 0 ? 0 : queue.nextDueMs();
      const [first, ...rest] = this.#waiting;
      if (first !== undefined) {
        this.#waiting = rest;
        this.#begin(first);
      } else if (!(await this.#claim())) return this.#nextClaimMs();
    }
    return undefined;
  }

  /** Renews the leases of all jobs in hand. */
  async renew(): Promise<void> {
    if (this.#isLate) await this.giveBack();
    if (this.size === 0) return;
    const leasedUntil = performance.now() + LEASE_MS;
    await this.#kind.queue.renew([...this.#underWay.keys(), ...this.#waiting]);
    this.#leasedUntil = leasedUntil;
  }

  /** Does nothing while the last maintenance goes on. */
  async maintain(): Promise<void> {
    if (this.#isMaintaining) return;
    this.#isMaintaining = true;
    try {
      await this.#kind.queue.maintain();
    } finally {
      this.#isMaintaining = false;
    }
  }

  async nextDueMs(): Promise<number | undefined> {
    return this.#kind.queue.nextDueMs();
  }

  /** Gives back what has not begun. */
  async giveBack(): Promise<void> {
    const claims = this.#waiting;
    this.#waiting = [];
    if (claims.length > 0) await this.#kind.queue.giveBack(claims);
  }

  /** Resolves when no job is under way. */
  async idle(): Promise<void> {
    await Promise.all(this.#underWay.values());
  }

  /** Whether another process may have what waits here: this one hung, or could not renew the leases. */
  get #isLate(): boolean {
    return this.#waiting.length > 0 && performance.now() >= this.#leasedUntil;
  }

  /** @returns whether there was one */
  async #claim(): Promise<boolean> {
    this.#leasedUntil = performance.now() + LEASE_MS;
    this.#waiting = await this.#kind.queue.claim(this.#limit());
    return this.#waiting.length > 0;
  }

  /** When there was nothing to claim. What is due all the same became due meanwhile, or others are claiming it. */
  async #nextClaimMs(): Promise<number | undefined> {
    const dueMs = await this.#kind.queue.nextDueMs();
    return dueMs === undefined || dueMs > 0 ? dueMs : CLAIM_AGAIN_MS;
  }

  /** A probe takes one job: the others stay free for a process that reaches the service. */
  #limit(): number {
    const { breaker, batch } = this.#kind;
    return breaker.isOpen ? 1 : Math.max(batch, breaker.concurrency - this.#underWay.size);
  }

  #begin(claim: Claim): void {
    const done = this.#execute(claim).finally(() => {
      this.#underWay.delete(claim);
      this.#onSettled();
    });
    this.#underWay.set(claim, done);
  }

  async #execute(claim: Claim): Promise<void> {
    try {
      await this.#kind.execute(claim);
    } catch (error) {
      this.#containment.report(this.#kind.name, error);
    }
  }
}
