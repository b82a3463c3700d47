import type { JobRunner } from '../jobs/job-runner.js';

/** The runner of the storage, and the runner of the logouts that wait in memory while the storage is away. */
export class Runners {
  constructor(
    readonly stored: JobRunner,
    readonly memory: JobRunner | undefined,
  ) {}

  start(): void {
    for (const runner of this.#all) runner.start();
  }

  /** Delivers what is due, and stops. @param isWorker otherwise only a drain of the host's ends */
  async drain(ms: number, isWorker: boolean): Promise<void> {
    const memory = this.memory?.drain(ms);
    await Promise.all([memory, isWorker ? this.stored.drain(ms) : this.stored.endWorkOff(ms)]);
  }

  /** Resolves when no job runs any more and the others are given back, or after `ms`. */
  async idle(ms: number): Promise<void> {
    await Promise.all(this.#all.map((runner) => runner.idle(ms)));
  }

  get #all(): readonly JobRunner[] {
    return this.memory ? [this.stored, this.memory] : [this.stored];
  }
}
