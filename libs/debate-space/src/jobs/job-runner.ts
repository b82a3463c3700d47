import { Containment } from '../containment.js';
import type { Emit } from '../debate-space-event.js';
import { withTimeout } from '../with-timeout.js';
import type { JobKind } from './job-kind.js';
import { JobLane } from './job-lane.js';
import { LEASE_MS } from './job-queue.js';
import { WorkLoop } from './work-loop.js';

const HEARTBEAT_MS = LEASE_MS / 3;
/** How often the runner looks for what other processes have added, and removes what is outdated. */
const POLL_MS = 1_500;
const RETRY_MS = 1_000;
/** How soon the runner looks again at a kind that lets the earlier ones go first. */
const LOOK_AGAIN_MS = 100;
/** How long a kind lets the earlier ones go first; then it begins what it may. */
const MAX_PATIENCE_MS = 5_000;

type Lane = Pick<JobLane<never>, keyof JobLane<never>>;

/**
 * Carries out the jobs of several kinds at the pace that the service allows, those of the first kind first. A heartbeat
 * renews the leases of the jobs in hand: after the death of a process its jobs are due again within 30 s.
 */
export class JobRunner {
  readonly #lanes: Lane[] = [];
  readonly #containment: Containment;
  readonly #loop: WorkLoop;
  readonly #patientSince = new Map<Lane, number>();
  readonly #stopping: (() => void)[] = [];
  /** Heartbeats and maintenance that are under way: the storage stays open until they are done. */
  readonly #upkeep = new Set<Promise<void>>();
  #isDraining = false;
  #onProgress: () => void = () => undefined;

  constructor(emit: Emit) {
    this.#containment = new Containment(emit);
    this.#loop = new WorkLoop(() => this.#work(), this.#containment, 'jobs');
  }

  /** Adds a kind, behind those that were added before. Call it before `start`. */
  add<Claim>(kind: JobKind<Claim>): void {
    const lane = new JobLane(kind, this.#containment, () => {
      this.#wake();
    });
    this.#lanes.push(lane);
  }

  start(): void {
    const every = (ms: number, work: () => Promise<void>): void => {
      const timer = setInterval(() => {
        const done = Promise.resolve(this.#containment.run('jobs', work, undefined)).finally(() => this.#upkeep.delete(done)); // prettier-ignore
        this.#upkeep.add(done);
      }, ms).unref();
      this.#stopping.push(() => { clearInterval(timer); }); // prettier-ignore
    };
    for (const lane of this.#lanes) {
      this.#stopping.push(lane.onChange(() => { this.#wake(); })); // prettier-ignore
      every(HEARTBEAT_MS, () => lane.renew());
    }
    every(POLL_MS, async () => {
      this.#wake();
      await Promise.all(this.#lanes.map((lane) => lane.maintain()));
    });
    this.#loop.start();
  }

  /** Goes on with the first kind until none of its jobs is due within the time, or the time has passed; then stops. */
  async drain(ms: number): Promise<void> {
    const deadline = performance.now() + ms;
    const [first] = this.#lanes;
    this.#isDraining = true;
    for (let leftMs = ms; first && leftMs > 0; leftMs = deadline - performance.now()) {
      const dueMs = await this.#nextDueMs(first, leftMs);
      if (first.size === 0 && dueMs > leftMs) break;
      await this.#progress(first.size > 0 ? leftMs : Math.max(1, dueMs));
    }
    this.stop();
  }

  /** Begins nothing any more. Jobs under way go on. */
  stop(): void {
    this.#loop.stop();
    for (const stop of this.#stopping.splice(0)) stop();
  }

  /** Resolves when no job is under way and the others are given back, or after `ms`. */
  async idle(ms: number): Promise<void> {
    const done = this.#lanes.map(async (lane) => {
      await lane.giveBack().catch((error: unknown) => { this.#containment.report(lane.name, error); }); // prettier-ignore
      await lane.idle();
    });
    await withTimeout(Promise.all([...done, ...this.#upkeep]), ms, undefined);
  }

  async #work(): Promise<void> {
    let nextMs = Infinity;
    let isBehind = false;
    for (const lane of this.#isDraining ? this.#lanes.slice(0, 1) : this.#lanes) {
      if (isBehind && this.#isPatient(lane)) {
        nextMs = Math.min(nextMs, LOOK_AGAIN_MS);
        continue;
      }
      if (!isBehind) this.#patientSince.delete(lane);
      const dueMs = await this.#begin(lane);
      isBehind ||= dueMs <= 0;
      if (dueMs > 0) nextMs = Math.min(nextMs, dueMs);
    }
    if (nextMs < Infinity) this.#loop.wakeIn(nextMs);
  }

  /** @returns milliseconds until the kind may begin a job; 0 when it waits for the end of one */
  async #begin(lane: Lane): Promise<number> {
    try {
      return (await lane.begin(() => this.#loop.running)) ?? Infinity;
    } catch (error) {
      this.#containment.report(lane.name, error);
      return RETRY_MS;
    }
  }

  /** Whether the kind lets an earlier one that has jobs waiting go first. */
  #isPatient(lane: Lane): boolean {
    const since = this.#patientSince.get(lane) ?? performance.now();
    this.#patientSince.set(lane, since);
    if (performance.now() - since < MAX_PATIENCE_MS) return true;
    this.#patientSince.delete(lane);
    return false;
  }

  async #nextDueMs(lane: Lane, withinMs: number): Promise<number> {
    try {
      return (await withTimeout(lane.nextDueMs(), withinMs, undefined)) ?? Infinity;
    } catch (error) {
      this.#containment.report(lane.name, error);
      return Infinity;
    }
  }

  #wake(): void {
    this.#onProgress();
    this.#loop.wake();
  }

  /** Resolves when a job has come to its end or another was added, or after `ms`. */
  async #progress(ms: number): Promise<void> {
    await new Promise<void>((resolve) => {
      const timer = setTimeout(resolve, ms); // keeps the process alive until the queue is drained
      this.#onProgress = () => {
        clearTimeout(timer);
        resolve();
      };
      this.#loop.wake();
    });
  }
}
