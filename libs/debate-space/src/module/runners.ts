import { Containment } from '../async/containment.js';
import type { ErasureWorker } from '../erasure/erasure-worker.js';
import type { JobLaneOptions } from '../jobs/job-lane.js';
import { JobRunner } from '../jobs/job-runner.js';
import type { LogoutDelivery } from '../logout/logout-delivery.js';
import type { LogoutQueues } from '../logout/logout-queues.js';
import type { LogoutRepository } from '../logout/logout-repository.js';
import type { Application } from './application.js';

/** How many logouts one claim takes: with more at a time, Postgres delivers several times as many. */
const LOGOUTS_PER_CLAIM = 32;
const PRUNE_MS = 60_000;

/** The runner of the storage, and the runner of the logouts that wait in memory while the storage is away. */
export class Runners {
  readonly stored: JobRunner;
  /** Absent when the storage is memory itself. */
  readonly memory: JobRunner | undefined;
  #prunedAt = -Infinity;

  constructor(
    private readonly application: Application,
    { stored, memory }: LogoutQueues,
    logouts: LogoutDelivery,
    private readonly erasures: ErasureWorker,
  ) {
    const { emit, added } = application;
    const containment = new Containment(emit);
    const onFault = containment.report.bind(containment);
    this.stored = new JobRunner(onFault, () => this.#maintain());
    this.stored.add(logoutLane(stored, logouts)); // first
    this.stored.add(erasures);
    if (memory) {
      this.memory = new JobRunner(onFault);
      this.memory.add(logoutLane(memory, logouts));
    }
    added.subscribe((kind) => {
      for (const runner of this.#all) runner.wake(kind);
    });
  }

  start(): void {
    if (this.application.options.worker) this.stored.start();
    this.memory?.start(); // also without a worker: nobody else can deliver from this memory
  }

  /** Delivers logouts that are due, and stops. Without a worker, only a drain of the host's can run: it stops, too. */
  async drain(ms: number): Promise<void> {
    const { worker } = this.application.options;
    const stored = worker ? this.stored.drain(ms) : this.stored.endWorkOff(ms);
    await Promise.all([stored, this.memory?.drain(ms)]);
  }

  /** Resolves when no job runs any more and the others are given back, or after `ms`. */
  async idle(ms: number): Promise<void> {
    await Promise.all(this.#all.map((runner) => runner.idle(ms)));
  }

  get #all(): readonly JobRunner[] {
    return this.memory ? [this.stored, this.memory] : [this.stored];
  }

  async #maintain(): Promise<void> {
    await this.erasures.maintain();
    if (performance.now() - this.#prunedAt < PRUNE_MS) return;
    const { options, storage } = this.application;
    const keep = {
      historyMs: options.logout.historyRetentionMs,
      receiptsMs: options.erasure.receiptRetentionMs,
    };
    if (!(await storage.prune(keep))) this.#prunedAt = performance.now();
  }
}

const logoutLane = (logouts: LogoutRepository, delivery: LogoutDelivery): JobLaneOptions => ({
  storage: logouts.storage,
  kind: 'logout',
  breaker: delivery.breaker,
  batch: LOGOUTS_PER_CLAIM,
  pauseMs: () => delivery.pauseMs(),
  execute: (claim) => delivery.execute(logouts, claim),
});
