import { Containment } from './containment.js';
import { withTimeout } from './with-timeout.js';
import { type JobKind, LEASE_MS } from './job-kind.js';
import { JobLane, type AnyJobLane } from './job-lane.js';

const HEARTBEAT_MS = LEASE_MS / 3;
/** How often the runner looks for what other processes have added, and removes what is outdated. */
const POLL_MS = 1_500;
/** How often the runner looks what is due while it drains. */
const LOOK_AGAIN_MS = 100;

/**
 * Carries out the jobs of several kinds at the pace that the service allows, those of the first kind first. A heartbeat
 * renews the leases of the jobs in hand: after the death of a process its jobs are due again within 30 s.
 */
export class JobRunner {
  readonly #lanes: AnyJobLane[] = [];
  readonly #containment: Containment;
  readonly #stopping: (() => void)[] = [];
  /** Heartbeats and maintenance that are under way: the storage stays open until they are done. */
  readonly #upkeep = new Set<Promise<void>>();
  /** Who waits for a job to come to its end: a drain of the host's and a shutdown may do so at the same time. */
  readonly #waiting = new Set<() => void>();

  /** @param onFault takes what failed and was contained: something of a kind, of its queue, or of the storage */
  constructor(onFault: (where: string, error: unknown) => void) {
    this.#containment = new Containment(onFault);
  }

  /** Adds a kind, behind those that were added before. Call it before `start`. */
  add<Claim>(kind: JobKind<Claim>): void {
    const onSettled = (): void => {
      this.#onProgress();
    };
    const onCaughtUp = (): void => {
      for (const { loop } of this.#lanes) loop.wake();
    };
    this.#lanes.push(new JobLane(kind, [...this.#lanes], this.#containment, onSettled, onCaughtUp));
  }

  /** For how long a lane has not looked for jobs, in milliseconds; `Infinity` when the runner does not run. */
  get stalledMs(): number {
    return Math.max(...this.#lanes.map(({ loop }) => loop.stalledMs));
  }

  start(): void {
    for (const lane of this.#lanes) {
      this.#every(POLL_MS, () => {
        lane.loop.wake();
        return lane.maintain();
      });
      const onChange = (): void => {
        this.#onProgress();
        lane.loop.wake();
      };
      this.#stopping.push(lane.onChange(onChange));
      this.#every(HEARTBEAT_MS, () => lane.renew());
    }
    for (const { loop } of this.#lanes) loop.start();
  }

  /**
   * Goes on with the first kind until none of its jobs is due within the time, or the time has passed; then stops. Does not
   * wait if it was never started: an app may be closed that was created only.
   */
  async drain(ms: number): Promise<void> {
    const deadline = performance.now() + ms;
    const leftMs = (): number => Math.max(0, deadline - performance.now());
    const [first, ...others] = this.#lanes;
    for (const { loop } of others) loop.stop();
    while (first?.loop.running && leftMs() > 0) {
      await withTimeout(first.loop.idle(), leftMs(), undefined); // what is being claimed counts
      const dueMs = await first.nextDueMs(leftMs());
      if (first.loop.isWorking) continue;
      if (first.size === 0 && dueMs > leftMs()) break;
      const waitMs = first.size > 0 ? Infinity : Math.max(LOOK_AGAIN_MS, dueMs);
      await this.#progress(Math.min(waitMs, leftMs()));
    }
    this.stop();
  }

  /**
   * Carries out what is due, in a process whose runner was not started: until nothing is due, the time has passed or the signal
   * is aborted. A runner that runs goes on afterwards.
   * @returns whether nothing was due any more
   */
  async workOff(ms: number, signal?: AbortSignal): Promise<boolean> {
    const deadline = performance.now() + ms;
    const leftMs = (): number => (signal?.aborted === true ? 0 : Math.max(0, deadline - performance.now()));
    const isOurs = !this.#lanes.some(({ loop }) => loop.running);
    if (isOurs) this.start();
    let isDone = false;
    // A shutdown in the meantime stops the lanes: then nobody works off what is left.
    while (!isDone && leftMs() > 0 && this.#lanes.some(({ loop }) => loop.running)) {
      await withTimeout(Promise.all(this.#lanes.map(({ loop }) => loop.idle())), leftMs(), undefined);
      const dueMs = await Promise.all(this.#lanes.map((lane) => lane.nextDueMs(leftMs())));
      if (this.#lanes.some(({ loop }) => loop.isWorking)) continue;
      isDone = this.#lanes.every(({ size }, n) => size === 0 && (dueMs[n] ?? 0) > 0);
      if (!isDone) await this.#progress(Math.min(LOOK_AGAIN_MS, leftMs()));
    }
    if (isOurs) {
      this.stop();
      await this.idle(leftMs());
    }
    return isDone;
  }

  /** Ends {@link workOff}: begins nothing any more, and waits for the jobs under way, at most `ms`. */
  async endWorkOff(ms: number): Promise<void> {
    if (!this.#lanes.some(({ loop }) => loop.running)) return;
    this.stop();
    await this.idle(ms);
  }

  /** Begins nothing any more. Jobs under way go on. */
  stop(): void {
    for (const { loop } of this.#lanes) loop.stop();
    for (const stop of this.#stopping.splice(0)) stop();
  }

  /** Resolves when no job is under way and the others are given back, or after `ms`. */
  async idle(ms: number): Promise<void> {
    const done = this.#lanes.map((lane) => lane.idle());
    await withTimeout(Promise.all([...done, ...this.#upkeep]), ms, undefined);
  }

  #every(ms: number, work: () => Promise<void>): void {
    const timer = setInterval(() => {
      const contained = Promise.resolve(this.#containment.run('jobs', work, undefined));
      const done = contained.finally(() => this.#upkeep.delete(done));
      this.#upkeep.add(done);
    }, ms).unref();
    this.#stopping.push(() => {
      clearInterval(timer);
    });
  }

  #onProgress(): void {
    for (const wake of [...this.#waiting]) wake();
  }

  /** Resolves when a job has come to its end or another was added, or after `ms`. */
  async #progress(ms: number): Promise<void> {
    await new Promise<void>((resolve) => {
      const done = (): void => {
        clearTimeout(timer);
        this.#waiting.delete(done);
        resolve();
      };
      const timer = setTimeout(done, ms); // keeps the process alive until the queue is drained
      this.#waiting.add(done);
      for (const { loop } of this.#lanes) loop.wake();
    });
  }
}
