import { setImmediate as nextTurn } from 'node:timers/promises';
import { BootContext, Periodic } from '../async/background.js';
import { LEASE_MS, type Claim, type JobKind, type Storage } from '../storage/storage.js';
import type { CircuitBreaker } from './circuit-breaker.js';

const HEARTBEAT_MS = LEASE_MS / 3;
/** How often a lane looks for jobs that other processes have added, and for the end of a pause. */
const POLL_MS = 1_500;
/** When to claim again if other processes hold the rows that are due. */
const CLAIM_AGAIN_MS = 100;
/** When to claim again after the storage has failed. */
const RETRY_MS = 1_000;

/** @param where the kind of job, or `jobs` for the upkeep of all */
export type OnFault = (where: string, error: unknown) => void;

/** The kind of jobs of a lane, and how one of them is executed. */
export interface JobWork {
  readonly storage: Pick<Storage, 'claim' | 'renew' | 'giveBack'>;
  readonly kind: JobKind;
  /** How many jobs run at a time, and when. */
  readonly breaker: CircuitBreaker;
  /** The only list that a guest works on. */
  readonly only?: string | undefined;
  /** How many jobs one claim takes at most. Jobs that cannot start yet wait in this process. */
  readonly batch: number;
  /** Milliseconds left of the pause that the service requested; 0 or less when there is no pause. */
  pauseMs(): number;
  /**
   * Works on a job, and records the result in the storage. If it rejects, the job is due when its lease ends.
   * @returns milliseconds until the job is due again; `undefined` when it is not
   */
  execute(claim: Claim): Promise<number | undefined>;
}

/**
 * The states of a lane:
 *
 * | state   | the lane …                                         | until …                            |
 * |---------|----------------------------------------------------|------------------------------------|
 * | stopped | starts no job                                      | `start()`                          |
 * | looking | starts claimed jobs, and claims more               | one of the other states is reached |
 * | full    | runs as many jobs as the breaker permits           | a job ends                         |
 * | waiting | knows of no job that is due                        | `wake()`, or the next job is due   |
 * | paused  | has given back what it claimed: nothing may be sent | the pause ends                     |
 * | failed  | has got no answer from the storage                 | one second has passed              |
 *
 * `full`, `waiting` and `paused` also end after 1.5 s, to look again.
 */
type State = 'stopped' | 'looking' | 'full' | 'waiting' | 'paused' | 'failed';

/**
 * Works on the jobs of one kind at the pace that the service allows. A heartbeat renews the leases: after the death of a
 * process its jobs are due again within 30 s.
 */
export class JobLane {
  readonly kind: JobKind;
  #state: State = 'stopped';
  /** When the next job is due, as far as this process knows; in the past: look now. */
  #dueAt = 0;
  /** When a pause ends. */
  #pausedUntil = 0;
  /** When the lane last learned how its jobs stand. */
  #lookedAt = 0;
  readonly #running = new Map<string, { claim: Claim; readonly done: Promise<void> }>();
  #claimed: Claim[] = [];
  #loop: Promise<void> | undefined;
  /** Ends the current rest. */
  #resume: () => void = () => undefined;
  readonly #watchers = new Set<() => void>();
  readonly #context = new BootContext();
  readonly #heartbeat = new Periodic(HEARTBEAT_MS, () => this.#renew());

  /** @param onFault must not throw */
  constructor(
    private readonly work: JobWork,
    private readonly onFault: OnFault,
  ) {
    this.kind = work.kind;
  }

  /** Milliseconds since the lane last learned how its jobs stand; 0 when it is stopped. */
  get stalledMs(): number {
    return this.#state === 'stopped' ? 0 : performance.now() - this.#lookedAt;
  }

  get isStarted(): boolean {
    return this.#state !== 'stopped';
  }

  start(): void {
    if (this.#state !== 'stopped') return;
    this.#become('looking');
    this.#dueAt = 0;
    this.#lookedAt = performance.now();
    this.#context.run(() => {
      this.#heartbeat.start();
      this.#loop ??= this.#work();
    });
  }

  /** This process has added jobs, or made some due earlier. */
  wake(): void {
    this.#dueAt = 0;
    if (this.#state === 'waiting') this.#resume();
  }

  /**
   * Works until no job of this lane runs or is due, or `ms` have passed. A lane that was stopped is stopped afterwards.
   * @param isPatient whether it waits for a job that will be due within the time; if so, a storage that fails ends it
   * @returns whether no job is due any more
   */
  async drain(ms: number, isPatient: boolean, signal?: AbortSignal): Promise<boolean> {
    const deadline = performance.now() + ms;
    const wasStopped = this.#state === 'stopped';
    this.start();
    this.#dueAt = 0;
    this.#become('looking'); // at once, also after a failure
    this.#resume();
    for (;;) {
      const leftMs = deadline - performance.now();
      const nextMs = this.#nextMs();
      const isDone = this.#state === 'waiting' && nextMs > 0;
      const isOver = (isPatient ? nextMs > leftMs : isDone) || leftMs <= 0 || signal?.aborted === true;
      if (isOver || this.#state === 'stopped') {
        if (wasStopped) this.stop();
        return isDone;
      }
      await this.#change(leftMs, signal);
    }
  }

  /** Starts no more jobs. Running jobs continue. */
  stop(): void {
    this.#become('stopped');
    void this.#heartbeat.stop();
    this.#resume();
  }

  /** After {@link stop}: gives back the jobs that have not started. Resolves when the others have ended. */
  async idle(): Promise<void> {
    await this.#loop; // it may be claiming
    await this.#giveBack().catch((error: unknown) => {
      this.onFault(this.kind, error);
    });
    await Promise.all([...this.#running.values()].map(({ done }) => done));
    await this.#heartbeat.stop();
  }

  async #work(): Promise<void> {
    while (this.#state !== 'stopped') {
      await nextTurn(); // jobs that are added in one turn share a claim
      try {
        this.#become(await this.#look());
        this.#lookedAt = performance.now();
      } catch (error) {
        this.onFault(this.kind, error);
        this.#become('failed');
      }
      await this.#rest();
    }
    this.#loop = undefined;
  }

  /**
   * Starts as many jobs as may run. During a pause all others are given back: another process may reach the service, and
   * a job that somebody cancels during the pause must not start afterwards.
   */
  async #look(): Promise<State> {
    const { breaker } = this.work;
    while (this.#state !== 'stopped') {
      this.#become('looking');
      const now = performance.now();
      const pauseMs = Math.max(breaker.waitMs, this.work.pauseMs());
      if (pauseMs > 0) {
        this.#pausedUntil = now + pauseMs;
        await this.#giveBack();
        return 'paused';
      }
      if (this.#running.size >= breaker.concurrency) return 'full';
      const claim = this.#claimed.shift();
      if (claim) this.#running.set(claim.id, { claim, done: this.#execute(claim) });
      else if (now < this.#dueAt) return 'waiting';
      else await this.#claim();
    }
    return 'stopped';
  }

  /** A probe takes one job: the others stay free for a process that reaches the service. */
  async #claim(): Promise<void> {
    const { breaker, batch, kind, only, storage } = this.work;
    const limit = breaker.isOpen ? 1 : Math.max(batch, breaker.concurrency - this.#running.size);
    this.#dueAt = Infinity; // unless `wake()` is called during the claim
    let dueMs = 0;
    try {
      const { claims, nextMs = Infinity } = await storage.claim(kind, limit, LEASE_MS, only);
      dueMs = claims.length === 0 && nextMs <= 0 ? CLAIM_AGAIN_MS : nextMs;
      for (const claim of claims) {
        // This process hung, or could not renew the lease: the job still runs here, from now on with this lease.
        const running = this.#running.get(claim.id);
        if (running) running.claim = claim;
        else this.#claimed.push(claim);
      }
    } finally {
      this.#dueAt = Math.min(this.#dueAt, performance.now() + dueMs);
    }
  }

  async #execute(claim: Claim): Promise<void> {
    const dueMs = await this.work.execute(claim).catch((error: unknown) => {
      this.onFault(this.kind, error);
    });
    this.#running.delete(claim.id);
    this.#dueAt = Math.min(this.#dueAt, performance.now() + (dueMs ?? Infinity));
    if (this.#state === 'full' || this.#state === 'waiting') this.#resume();
    this.#changed();
  }

  async #rest(): Promise<void> {
    if (this.#state === 'stopped') return;
    const endsAt =
      this.#state === 'waiting' ? this.#dueAt : this.#state === 'paused' ? this.#pausedUntil : Infinity;
    const ms = this.#state === 'failed' ? RETRY_MS : Math.min(endsAt - performance.now(), POLL_MS);
    let timer: NodeJS.Timeout | undefined;
    await new Promise<void>((resolve) => {
      this.#resume = resolve;
      timer = setTimeout(() => {
        this.#dueAt = 0; // other processes may have added jobs
        resolve();
      }, Math.ceil(ms)).unref();
      this.#changed();
    });
    clearTimeout(timer);
  }

  /** Renews the leases of all claims. */
  async #renew(): Promise<void> {
    const claims = [...[...this.#running.values()].map(({ claim }) => claim), ...this.#claimed];
    if (claims.length === 0) return;
    await this.work.storage.renew(claims).catch((error: unknown) => {
      this.onFault('jobs', error);
    });
  }

  async #giveBack(): Promise<void> {
    const claims = this.#claimed;
    this.#claimed = [];
    if (claims.length > 0) await this.work.storage.giveBack(claims);
  }

  #become(state: State): void {
    if (this.#state === 'stopped' && state !== 'looking') return;
    this.#state = state;
  }

  /** Milliseconds until a job runs: 0 while one does, `Infinity` while the storage fails. */
  #nextMs(): number {
    if (this.#running.size > 0 || this.#claimed.length > 0) return 0;
    if (this.#state === 'failed') return Infinity;
    const at = this.#state === 'waiting' ? this.#dueAt : this.#state === 'paused' ? this.#pausedUntil : 0;
    return Math.max(0, at - performance.now());
  }

  /** Resolves when a job ends or the lane rests, at the latest after `ms`. Keeps the process alive. */
  async #change(ms: number, signal?: AbortSignal): Promise<void> {
    let timer: NodeJS.Timeout | undefined;
    let resume = (): void => undefined;
    await new Promise<void>((resolve) => {
      resume = resolve;
      timer = setTimeout(resolve, ms);
      this.#watchers.add(resolve);
      signal?.addEventListener('abort', resume);
    });
    clearTimeout(timer);
    this.#watchers.delete(resume);
    signal?.removeEventListener('abort', resume);
  }

  #changed(): void {
    for (const watcher of this.#watchers) watcher();
  }
}
