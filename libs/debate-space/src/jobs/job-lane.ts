import { withTimeout } from '../async/with-timeout.js';
import type { Claim, JobKind, Storage } from '../storage/storage.js';
import type { CircuitBreaker } from './circuit-breaker.js';
import { WorkLoop } from './work-loop.js';

/** When to claim again if other processes hold the rows that are due. */
const CLAIM_AGAIN_MS = 100;
/** How often a lane that yields looks whether it may start jobs. */
const LOOK_AGAIN_MS = 100;
/** How often a lane looks for jobs that other processes have added, and for the end of a pause. */
const POLL_MS = 1_500;
/** How long a lane yields to earlier lanes, or waits for their storage, before it starts jobs anyway. */
const MAX_YIELD_MS = 5_000;

/** @param where the kind of job, or `jobs` for the upkeep of all */
export type OnFault = (where: string, error: unknown) => void;

export interface JobLaneOptions {
  readonly storage: Pick<Storage, 'claim' | 'renew' | 'giveBack'>;
  readonly kind: JobKind;
  /** How many jobs run at a time, and when. */
  readonly breaker: CircuitBreaker;
  /** How many jobs one claim takes at most. Jobs that cannot start yet wait in this process. */
  readonly batch: number;
  /** Milliseconds left of the pause that the service requested; 0 or less when there is no pause. */
  pauseMs(): number;
  /** Works on a job, and records the result in the storage. If it rejects, the job is due when its lease ends. */
  execute(claim: Claim): Promise<void>;
}

/** The jobs of one kind that this process has claimed: some run, others wait for a free place. */
export class JobLane {
  /** Of its own: a storage that does not answer stops no other lane. */
  readonly loop: WorkLoop;
  readonly kind: JobKind;
  /** Whether jobs are due that cannot start yet. */
  isBehind = false;
  /** Whether the last look for jobs found out nothing: during a pause, or because the storage failed. */
  isBlocked = true;
  /** Milliseconds from the last look until jobs may start; `Infinity` when no job waits, or the storage failed. */
  nextMs = 0;
  readonly #running = new Map<string, { claim: Claim; readonly done: Promise<void> }>();
  #waiting: Claim[] = [];
  /** Whether the last look found no free place: the end of a job makes room for the next one. */
  #isFull = false;
  /** Whether the last claim left jobs that are due, or this process has added jobs since. */
  #hasMore = false;
  #yieldingSince: number | undefined;
  readonly #report: (error: unknown) => void;

  /**
   * @param earlier the lanes that this one yields to
   * @param onFault must not throw
   */
  constructor(
    private readonly options: JobLaneOptions,
    private readonly earlier: readonly JobLane[],
    onFault: OnFault,
  ) {
    this.kind = options.kind;
    this.#report = onFault.bind(undefined, this.kind);
    this.loop = new WorkLoop(() => this.#work(), this.#report);
  }

  /** How many jobs this process has claimed. */
  get size(): number {
    return this.#running.size + this.#waiting.length;
  }

  /** This process has added jobs, or made some due earlier. */
  added(): void {
    this.#hasMore = true;
    this.loop.wake();
  }

  /** Renews the leases of all claims. */
  async renew(): Promise<void> {
    if (this.size === 0) return;
    const running = [...this.#running.values()].map(({ claim }) => claim);
    await this.options.storage.renew([...running, ...this.#waiting]);
  }

  /** Gives back the jobs that have not started. Resolves when the others have ended. */
  async idle(): Promise<void> {
    await this.loop.idle(); // it may be claiming
    await this.#giveBack().catch(this.#report);
    await Promise.all([...this.#running.values()].map(({ done }) => done));
  }

  /** Resolves when one of the running jobs ends. */
  async oneEnded(): Promise<void> {
    await Promise.race([...this.#running.values()].map(({ done }) => done));
  }

  async #work(): Promise<void> {
    if (!(await this.#isNext())) {
      this.loop.wakeIn(LOOK_AGAIN_MS);
      return;
    }
    Object.assign(this, { isBehind: false, isBlocked: true, nextMs: Infinity }); // in case it fails
    this.nextMs = await this.#start();
    this.isBehind = this.nextMs <= 0;
    this.loop.wakeIn(this.isBehind ? POLL_MS : Math.min(this.nextMs, POLL_MS));
  }

  /** Whether no earlier lane is behind, or this one has yielded for long enough. */
  async #isNext(): Promise<boolean> {
    const known = Promise.all(this.earlier.map(({ loop }) => loop.idle()));
    if (this.earlier.length > 0) await withTimeout(known, MAX_YIELD_MS, undefined);
    const isYielding = this.earlier.some(({ isBehind }) => isBehind);
    if (isYielding) this.#yieldingSince ??= performance.now();
    const isNext = !isYielding || performance.now() - (this.#yieldingSince ?? 0) >= MAX_YIELD_MS;
    if (isNext) this.#yieldingSince = undefined;
    return isNext;
  }

  /**
   * Starts as many jobs as may run. During a pause all others are given back: another process may reach the service, and
   * a job that somebody cancels during the pause must not start afterwards.
   * @returns milliseconds until jobs may start; 0 when jobs are due that cannot start yet, `Infinity` when no job waits
   */
  async #start(): Promise<number> {
    const { breaker } = this.options;
    this.#isFull = false;
    for (let nextMs = 0; this.loop.isStarted;) {
      const pauseMs = Math.max(breaker.waitMs, this.options.pauseMs());
      if (pauseMs > 0) {
        await this.#giveBack();
        return pauseMs;
      }
      this.isBlocked = false;
      if (this.#running.size >= breaker.concurrency) {
        this.#isFull = true;
        return this.#waiting.length > 0 || this.#hasMore ? 0 : Infinity;
      }
      const first = this.#waiting.shift();
      if (first) this.#running.set(first.id, { claim: first, done: this.#execute(first) });
      else if (nextMs > 0) return nextMs;
      else nextMs = await this.#claim();
    }
    return Infinity;
  }

  /** A probe takes one job: the others stay free for a process that reaches the service. @returns as {@link Claims.nextMs} */
  async #claim(): Promise<number> {
    const { breaker, batch, kind, storage } = this.options;
    const limit = breaker.isOpen ? 1 : Math.max(batch, breaker.concurrency - this.#running.size);
    this.isBlocked = true; // in case it fails
    this.#hasMore = false;
    const { claims, nextMs = Infinity } = await storage.claim(kind, limit);
    this.#hasMore ||= nextMs <= 0;
    for (const claim of claims) {
      // This process hung, or could not renew the lease: the job still runs here, from now on with this lease.
      const running = this.#running.get(claim.id);
      if (running) running.claim = claim;
      else this.#waiting.push(claim);
    }
    return claims.length === 0 && nextMs <= 0 ? CLAIM_AGAIN_MS : nextMs;
  }

  async #execute(claim: Claim): Promise<void> {
    await this.options.execute(claim).catch(this.#report);
    this.#running.delete(claim.id);
    if (this.#isFull) this.loop.wake();
  }

  async #giveBack(): Promise<void> {
    const claims = this.#waiting;
    this.#waiting = [];
    if (claims.length > 0) await this.options.storage.giveBack(claims);
  }
}
