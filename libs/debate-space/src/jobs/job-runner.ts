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
/** How long a kind lets the earlier ones go first, or waits for their queues; then it begins what it may. */
const MAX_PATIENCE_MS = 5_000;

/** The place of a kind among the others. */
interface Place {
  readonly lane: Pick<JobLane<never>, keyof JobLane<never>>;
  /** Of its own: a queue that does not answer holds up no other kind. */
  readonly loop: WorkLoop;
  /** Whether it has jobs that are due and cannot begin yet. */
  isBehind: boolean;
  /** Since when it lets the earlier ones go first. */
  patientSince: number | undefined;
}

/**
 * Carries out the jobs of several kinds at the pace that the service allows, those of the first kind first. A heartbeat
 * renews the leases of the jobs in hand: after the death of a process its jobs are due again within 30 s.
 */
export class JobRunner {
  readonly #places: Place[] = [];
  readonly #containment: Containment;
  readonly #stopping: (() => void)[] = [];
  /** Heartbeats and maintenance that are under way: the storage stays open until they are done. */
  readonly #upkeep = new Set<Promise<void>>();
  #isDraining = false;
  #onProgress: () => void = () => undefined;

  constructor(emit: Emit) {
    this.#containment = new Containment(emit);
  }

  /** Adds a kind, behind those that were added before. Call it before `start`. */
  add<Claim>(kind: JobKind<Claim>): void {
    const earlier = [...this.#places];
    const lane = new JobLane(kind, this.#containment, () => {
      this.#wake();
    });
    const loop = new WorkLoop(() => this.#work(place, earlier), this.#containment, 'jobs');
    const place: Place = { lane, loop, isBehind: false, patientSince: undefined };
    this.#places.push(place);
  }

  start(): void {
    const every = (ms: number, work: () => Promise<void>): void => {
      const timer = setInterval(() => {
        const done = Promise.resolve(this.#containment.run('jobs', work, undefined)).finally(() => this.#upkeep.delete(done)); // prettier-ignore
        this.#upkeep.add(done);
      }, ms).unref();
      this.#stopping.push(() => { clearInterval(timer); }); // prettier-ignore
    };
    for (const { lane, loop } of this.#places) {
      every(POLL_MS, () => {
        loop.wake();
        return lane.maintain();
      });
      this.#stopping.push(lane.onChange(() => { this.#wake(); })); // prettier-ignore
      every(HEARTBEAT_MS, () => lane.renew());
    }
    for (const { loop } of this.#places) loop.start();
  }

  /** Goes on with the first kind until none of its jobs is due within the time, or the time has passed; then stops. */
  async drain(ms: number): Promise<void> {
    const deadline = performance.now() + ms;
    const leftMs = (): number => Math.max(0, deadline - performance.now());
    const [first] = this.#places;
    this.#isDraining = true;
    while (first && leftMs() > 0) {
      await withTimeout(first.loop.idle(), leftMs(), undefined); // what is being claimed counts
      const dueMs = await this.#nextDueMs(first, leftMs());
      if (first.loop.isWorking) continue;
      if (first.lane.size === 0 && dueMs > leftMs()) break;
      const waitMs = first.lane.size > 0 ? Infinity : Math.max(LOOK_AGAIN_MS, dueMs);
      await this.#progress(Math.min(waitMs, leftMs()));
    }
    this.stop();
  }

  /** Begins nothing any more. Jobs under way go on. */
  stop(): void {
    for (const { loop } of this.#places) loop.stop();
    for (const stop of this.#stopping.splice(0)) stop();
  }

  /** Resolves when no job is under way and the others are given back, or after `ms`. */
  async idle(ms: number): Promise<void> {
    const done = this.#places.map(async ({ lane, loop }) => {
      await loop.idle(); // it may be claiming
      await lane.giveBack().catch((error: unknown) => { this.#containment.report(lane.name, error); }); // prettier-ignore
      await lane.idle();
    });
    await withTimeout(Promise.all([...done, ...this.#upkeep]), ms, undefined);
  }

  async #work(place: Place, earlier: readonly Place[]): Promise<void> {
    const { loop } = place;
    if (earlier.length > 0) {
      const known = Promise.all(earlier.map(({ loop }) => loop.idle())); // whether they are behind
      await withTimeout(known, MAX_PATIENCE_MS, undefined);
      if (this.#isDraining) return;
    }
    if (!earlier.some(({ isBehind }) => isBehind)) place.patientSince = undefined;
    else if (isPatient(place)) {
      loop.wakeIn(LOOK_AGAIN_MS);
      return;
    }
    const dueMs = await this.#begin(place);
    place.isBehind = dueMs <= 0;
    if (dueMs > 0 && dueMs < Infinity) loop.wakeIn(dueMs);
  }

  /** @returns milliseconds until the kind may begin a job; 0 when it waits for the end of one */
  async #begin({ lane, loop }: Place): Promise<number> {
    try {
      return (await lane.begin(() => loop.running)) ?? Infinity;
    } catch (error) {
      this.#containment.report(lane.name, error);
      return RETRY_MS;
    }
  }

  async #nextDueMs({ lane }: Place, withinMs: number): Promise<number> {
    try {
      return (await withTimeout(lane.nextDueMs(), withinMs, undefined)) ?? Infinity;
    } catch (error) {
      this.#containment.report(lane.name, error);
      return Infinity;
    }
  }

  #wake(): void {
    this.#onProgress();
    for (const { loop } of this.#places) loop.wake();
  }

  /** Resolves when a job has come to its end or another was added, or after `ms`. */
  async #progress(ms: number): Promise<void> {
    await new Promise<void>((resolve) => {
      const timer = setTimeout(resolve, ms); // keeps the process alive until the queue is drained
      this.#onProgress = () => {
        clearTimeout(timer);
        resolve();
      };
      for (const { loop } of this.#places) loop.wake();
    });
  }
}

/** Whether the kind lets an earlier one that has jobs waiting go first. */
function isPatient(place: Place): boolean {
  place.patientSince ??= performance.now();
  if (performance.now() - place.patientSince < MAX_PATIENCE_MS) return true;
  place.patientSince = undefined;
  return false;
}
