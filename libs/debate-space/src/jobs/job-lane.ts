import type { Containment } from '../containment.js';
import type { JobKind } from './job-kind.js';

/** The jobs of one kind that this process has claimed: those under way, and those that wait for a free place. */
export class JobLane<Claim> {
  readonly #kind: JobKind<Claim>;
  readonly #containment: Containment;
  readonly #onSettled: () => void;
  readonly #underWay = new Map<Claim, Promise<void>>();
  #waiting: readonly Claim[] = [];

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
   * Begins as many jobs as may be under way.
   * @returns milliseconds until there may be something to begin, 0 when jobs are due that cannot begin yet; `undefined`
   * when none waits
   */
  async begin(isRunning: () => boolean): Promise<number | undefined> {
    const { breaker, queue } = this.#kind;
    while (isRunning() && this.#underWay.size < breaker.concurrency) {
      const pauseMs = Math.max(breaker.waitMs, this.#kind.pauseMs());
      if (pauseMs > 0) {
        await this.giveBack(); // a pause holds for all processes, and what waits may be superseded meanwhile
        return pauseMs;
      }
      if (this.#waiting.length === 0) this.#waiting = await queue.claim(this.#limit());
      const [first, ...rest] = this.#waiting;
      if (first === undefined) return queue.nextDueMs();
      this.#waiting = rest;
      this.#begin(first);
    }
    return this.#waiting.length > 0 ? 0 : queue.nextDueMs();
  }

  /** Renews the leases of all jobs in hand. */
  async renew(): Promise<void> {
    if (this.size > 0) await this.#kind.queue.renew([...this.#underWay.keys(), ...this.#waiting]);
  }

  async maintain(): Promise<void> {
    await this.#kind.queue.maintain();
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
