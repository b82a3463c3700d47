import type { DebateSpaceOutbox } from '../api/debate-space-outbox.js';
import { Containment } from '../async/containment.js';
import { withTimeout } from '../async/with-timeout.js';
import type { ErasureStorage } from '../erasure/erasure-storage.js';
import type { JobRunner } from '../jobs/job-runner.js';
import type { FallbackQueue } from '../logout/fallback-queue.js';
import type { Transport } from '../service/transport.js';
import type { SessionRegistry } from '../session-end/expiry/session-registry.js';
import type { SessionEndDetector } from '../session-end/session-end-detector.js';
import type { EndRecorder } from '../session-end/verdict/end-recorder.js';
import type { Application } from './application.js';

const DRAIN_MS = 5_000;
/** So much is left for it when the verdicts have taken the rest. */
const MIN_DRAIN_MS = 1_000;

/** The order in which an application shuts down, from the sessions down to the storage. */
export class Shutdown {
  readonly #containment: Containment;
  #done: Promise<void> | undefined;

  constructor(
    private readonly application: Application,
    private readonly recorder: EndRecorder,
    private readonly detector: SessionEndDetector,
    private readonly runner: JobRunner,
    private readonly logouts: FallbackQueue,
    private readonly outbox: DebateSpaceOutbox,
    private readonly erasures: ErasureStorage,
    private readonly transport: Transport,
    private readonly registry: SessionRegistry,
  ) {
    this.#containment = new Containment(application.emit);
  }

  /** Decides what is open, delivers what is pending – for five seconds at most –, and closes everything. Never rejects. */
  run(): Promise<void> {
    this.#done ??= this.#run();
    return this.#done;
  }

  async #run(): Promise<void> {
    const deadline = performance.now() + DRAIN_MS;
    await this.#step(() => {
      this.recorder.close();
      return withTimeout(this.detector.close(), DRAIN_MS, undefined);
    });
    await this.#step(async () => {
      const leftMs = Math.max(MIN_DRAIN_MS, deadline - performance.now());
      if (this.application.options.worker) await this.runner.drain(leftMs);
    });
    this.application.shutdown.abort();
    await this.#step(() => this.runner.idle(DRAIN_MS));
    await this.#step(() => withTimeout(this.logouts.flush(), DRAIN_MS, undefined));
    await this.#step(() => this.#reportUnfinished());
    await this.#step(() => {
      this.transport.close();
      return withTimeout(this.registry.idle(), MIN_DRAIN_MS, undefined);
    });
    await this.#step(() => withTimeout(this.logouts.close(), DRAIN_MS, undefined)); // and the storage
    this.application.events.complete();
  }

  /** A step that fails or does not answer must not keep the next ones from running. */
  async #step(work: () => Promise<unknown>): Promise<void> {
    await this.#containment.run('shutdown', work, undefined);
  }

  async #reportUnfinished(): Promise<void> {
    const { options, emit } = this.application;
    const { unpersistedCount } = this.logouts;
    const { durable } = options.storage;
    const stats = options.worker ? await ifKnown(this.outbox.stats()) : undefined;
    const pending = Math.max(stats?.pending ?? 0, unpersistedCount);
    if (pending > 0) emit({ type: 'shutdown-incomplete', pending, lost: !durable || unpersistedCount > 0 });
    const count = durable ? 0 : ((await ifKnown(this.erasures.count())) ?? 0);
    if (count > 0) emit({ type: 'erasures-dropped', count });
  }
}

/** As far as the storage can say. */
async function ifKnown<T>(answer: Promise<T>): Promise<T | undefined> {
  return withTimeout(
    answer.catch(() => undefined),
    MIN_DRAIN_MS,
    undefined,
  );
}
