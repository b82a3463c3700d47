import { withTimeout } from '../async/with-timeout.js';
import { LEASE_MS, type JobKind } from '../storage/storage.js';
import { JobLane, type JobLaneOptions, type OnFault } from './job-lane.js';

const HEARTBEAT_MS = LEASE_MS / 3;
/** How often the runner looks for jobs that other processes have added. */
const POLL_MS = 1_500;
/** How often the runner looks for jobs while it drains. */
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
  #isMaintaining = false;
  /** Who waits for a job to end: a drain of the host and a shutdown may wait at the same time. */
  readonly #waiting = new Set<() => void>();

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
    const onSettled = (): void => {
      this.#onProgress();
    };
    const onCaughtUp = (): void => {
      for (const { loop } of this.#lanes) loop.wake();
    };
    this.#lanes.push(new JobLane(options, [...this.#lanes], this.onFault, onSettled, onCaughtUp));
  }

  /** This process has added a job of this kind, or made one due. */
  wake(kind: JobKind): void {
    for (const lane of this.#lanes) if (lane.kind === kind) lane.added();
    this.#onProgress();
  }

  /** Milliseconds since the slowest lane last looked for jobs; `Infinity` when the runner is stopped. */
  get stalledMs(): number {
    return Math.max(...this.#lanes.map(({ loop }) => loop.stalledMs));
  }

  start(): void {
    this.#every(POLL_MS, async () => {
      for (const { loop } of this.#lanes) loop.wake();
      await this.#maintain();
    });
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
    first?.loop.wake();
    while (first?.loop.isStarted && leftMs() > 0) {
      await withTimeout(first.loop.idle(), leftMs(), undefined); // claims that are on their way count
      if (first.loop.isWorking) continue;
      if (first.size === 0 && first.nextMs > leftMs()) break;
      const waitMs = first.size > 0 ? Infinity : Math.max(LOOK_AGAIN_MS, first.nextMs);
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
    else for (const { loop } of this.#lanes) loop.wake();
    let isDone = false;
    while (!isDone && leftMs() > 0 && this.#isStarted) {
      await withTimeout(Promise.all(this.#lanes.map(({ loop }) => loop.idle())), leftMs(), undefined);
      if (this.#lanes.some(({ loop }) => loop.isWorking)) continue;
      isDone = this.#lanes.every(({ size, isBlocked, nextMs }) => size === 0 && !isBlocked && nextMs > 0);
      if (!isDone) await this.#progress(Math.min(LOOK_AGAIN_MS, leftMs()));
    }
    if (isOurs) {
      this.stop();
      await this.idle(leftMs());
    }
    return isDone;
  }

  /** Ends {@link workOff}: starts no more jobs, and waits for the running ones, at most `ms`. */
  async endWorkOff(ms: number): Promise<void> {
    if (!this.#isStarted) return;
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

  async #maintain(): Promise<void> {
    if (this.#isMaintaining) return;
    this.#isMaintaining = true;
    try {
      await this.maintain();
    } finally {
      this.#isMaintaining = false;
    }
  }

  #every(ms: number, work: () => Promise<void>): void {
    const timer = setInterval(() => {
      const done = work()
        .catch((error: unknown) => {
          this.onFault('jobs', error);
        })
        .finally(() => this.#upkeep.delete(done));
      this.#upkeep.add(done);
    }, ms).unref();
    this.#stopping.push(() => {
      clearInterval(timer);
    });
  }

  #onProgress(): void {
    for (const wake of [...this.#waiting]) wake();
  }

  /** Resolves when a job has ended or another was added, or after `ms`; then the lanes look for jobs. */
  async #progress(ms: number): Promise<void> {
    await new Promise<void>((resolve) => {
      const done = (): void => {
        clearTimeout(timer);
        this.#waiting.delete(done);
        resolve();
      };
      const timer = setTimeout(done, ms); // keeps the process alive while it drains
      this.#waiting.add(done);
    });
    for (const { loop } of this.#lanes) loop.wake();
  }
}
