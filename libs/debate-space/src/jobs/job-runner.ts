import { withTimeout } from '../async/with-timeout.js';
import { LEASE_MS, type JobKind } from '../storage/storage.js';
import { JobLane, type JobLaneOptions, type OnFault } from './job-lane.js';

const HEARTBEAT_MS = LEASE_MS / 3;
const MAINTENANCE_MS = 1_500;
/** How often the runner looks whether all jobs are worked off. */
const LOOK_AGAIN_MS = 100;

/**
 * Works on jobs of several kinds at the pace that the service allows; earlier kinds go first. A heartbeat renews the leases:
 * after the death of a process its jobs are due again within 30 s.
 */
export class JobRunner {
  readonly #lanes: JobLane[] = [];
  readonly #stopping: (() => void)[] = [];
  /** Heartbeats and maintenance that run: the storage stays open until they have ended. */
  readonly #upkeep = new Set<Promise<void>>();

  /**
   * @param onFault takes contained errors of jobs, of their storage, and of `maintain`; must not throw
   * @param maintain called every 1.5 s, unless it still runs
   */
  constructor(
    private readonly onFault: OnFault,
    private readonly maintain: () => Promise<void> = () => Promise.resolve(),
  ) {}

  /** Adds a kind, behind the kinds that were added before. Call it before `start`. */
  add(options: JobLaneOptions): void {
    this.#lanes.push(new JobLane(options, [...this.#lanes], this.onFault));
  }

  /** This process has added jobs of this kind, or made some due earlier. */
  wake(kind: JobKind): void {
    for (const lane of this.#lanes) if (lane.kind === kind) lane.added();
  }

  /** Milliseconds since the slowest lane last looked for jobs; `Infinity` when the runner is stopped. */
  get stalledMs(): number {
    return Math.max(...this.#lanes.map(({ loop }) => loop.stalledMs));
  }

  start(): void {
    this.#every(MAINTENANCE_MS, this.maintain);
    for (const lane of this.#lanes) this.#every(HEARTBEAT_MS, () => lane.renew());
    for (const { loop } of this.#lanes) loop.start();
  }

  /**
   * Works on the first kind until none of its jobs is due within the time, or the time has passed; then stops. Resolves at
   * once if the runner was never started: an app may be closed that was created only.
   */
  async drain(ms: number): Promise<void> {
    const deadline = performance.now() + ms;
    const leftMs = (): number => Math.max(0, deadline - performance.now());
    const [first, ...others] = this.#lanes;
    for (const { loop } of others) loop.stop();
    this.#wakeAll();
    while (first?.loop.isStarted && leftMs() > 0) {
      await withTimeout(first.loop.idle(), leftMs(), undefined); // claims that are on their way count
      if (first.loop.isWorking) continue;
      if (first.size === 0 && first.nextMs > leftMs()) break;
      const waitMs = first.size > 0 ? Infinity : first.nextMs;
      await this.#progress(Math.min(waitMs, leftMs()));
    }
    this.stop();
  }

  /**
   * Works on the jobs that are due, in a process whose runner was not started: until no job is due, the time has passed or
   * the signal is aborted. A runner that was started continues afterwards.
   * @returns whether no job was due any more
   */
  async workOff(ms: number, signal?: AbortSignal): Promise<boolean> {
    const deadline = performance.now() + ms;
    const leftMs = (): number => (signal?.aborted === true ? 0 : Math.max(0, deadline - performance.now()));
    const isOurs = !this.#isStarted;
    if (isOurs) this.start();
    else this.#wakeAll();
    let isDone = false;
    while (!isDone && leftMs() > 0 && this.#isStarted) {
      await withTimeout(Promise.all(this.#lanes.map(({ loop }) => loop.idle())), leftMs(), undefined);
      if (this.#lanes.some(({ loop }) => loop.isWorking)) continue;
      isDone = this.#lanes.every(({ size, isBlocked }) => size === 0 && !isBlocked);
      if (!isDone) await this.#progress(Math.min(LOOK_AGAIN_MS, leftMs()));
    }
    if (isOurs) await this.endWorkOff(leftMs());
    return isDone;
  }

  /** Ends {@link workOff}: starts no more jobs, and waits for the running ones, at most `ms`. */
  async endWorkOff(ms: number): Promise<void> {
    this.stop();
    await this.idle(ms);
  }

  /** Starts no more jobs. Running jobs continue. */
  stop(): void {
    for (const { loop } of this.#lanes) loop.stop();
    for (const stop of this.#stopping.splice(0)) stop();
  }

  /** Resolves when no job runs and the others are given back, or after `ms`. */
  async idle(ms: number): Promise<void> {
    const done = this.#lanes.map((lane) => lane.idle());
    await withTimeout(Promise.all([...done, ...this.#upkeep]), ms, undefined);
  }

  get #isStarted(): boolean {
    return this.#lanes.some(({ loop }) => loop.isStarted);
  }

  /** Runs `work` every `ms`, unless it still runs. */
  #every(ms: number, work: () => Promise<void>): void {
    let isRunning = false;
    const run = async (): Promise<void> => {
      isRunning = true;
      await work().catch(this.onFault.bind(undefined, 'jobs'));
      isRunning = false;
    };
    const timer = setInterval(() => {
      if (isRunning) return;
      const done = run().finally(() => this.#upkeep.delete(done));
      this.#upkeep.add(done);
    }, ms).unref();
    this.#stopping.push(clearInterval.bind(undefined, timer));
  }

  /** Looks for jobs when one has ended, at the latest after `ms`. */
  async #progress(ms: number): Promise<void> {
    let timer: NodeJS.Timeout | undefined;
    const time = new Promise<void>((resolve) => {
      timer = setTimeout(resolve, ms); // keeps the process alive while it drains
    });
    await Promise.race([time, ...this.#lanes.map((lane) => lane.oneEnded())]);
    clearTimeout(timer);
    this.#wakeAll();
  }

  #wakeAll(): void {
    for (const { loop } of this.#lanes) loop.wake();
  }
}
