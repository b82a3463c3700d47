import { Containment } from '../async/containment.js';
import { withTimeout } from '../async/with-timeout.js';
import type { LogoutRecorder } from '../logout/logout-recorder.js';
import type { Runners } from './runners.js';
import type { Transport } from '../service/http/transport.js';
import type { Application } from './application.js';
import type { SessionWatch } from './session-watch.js';

const DRAIN_MS = 5_000;
/** So much is left for it when the verdicts have taken the rest. */
const MIN_DRAIN_MS = 1_000;
/** All steps together: Docker kills after ten seconds. */
const MAX_MS = 9_000;
/** What each step has at least, however late it is. */
const MIN_STEP_MS = 50;

/** The order in which an application shuts down, from the sessions down to the storage. */
export class Shutdown {
  readonly #containment: Containment;
  #done: Promise<void> | undefined;
  #deadline = Infinity;

  constructor(
    private readonly application: Application,
    private readonly recorder: LogoutRecorder,
    private readonly sessions: SessionWatch,
    private readonly runners: Runners,
    private readonly transport: Transport,
  ) {
    this.#containment = new Containment(application.emit);
  }

  /**
   * Decides what is open, delivers what is pending – for five seconds at most –, and closes everything, within nine seconds.
   * Never rejects.
   */
  run(): Promise<void> {
    this.#done ??= this.#run();
    return this.#done;
  }

  async #run(): Promise<void> {
    const begun = performance.now();
    this.#deadline = begun + MAX_MS;
    const { shutdown, events } = this.application;
    await this.#step(() => {
      this.recorder.close();
    });
    await this.#step(() => this.sessions.close());
    const drainMs = Math.max(MIN_DRAIN_MS, begun + DRAIN_MS - performance.now());
    await this.#step(() => this.runners.drain(drainMs), drainMs + MIN_DRAIN_MS);
    shutdown.abort();
    await this.#step(() => this.runners.idle(DRAIN_MS));
    await this.#step(() => this.#reportUnfinished());
    await this.#step(() => {
      this.transport.close();
    });
    await this.#step(() => this.application.storage.close());
    events.complete();
  }

  /** A step that fails or does not answer must not keep the next ones from running. */
  async #step(work: () => unknown, limitMs = DRAIN_MS): Promise<void> {
    const awaited = async (): Promise<void> => {
      await work();
    };
    const done = this.#containment.run<Promise<void>>('shutdown', awaited, undefined);
    const leftMs = Math.max(MIN_STEP_MS, this.#deadline - performance.now());
    await withTimeout(done, Math.min(limitMs, leftMs), undefined);
  }

  async #reportUnfinished(): Promise<void> {
    const { options, emit, storage } = this.application;
    const { durable } = options.storage;
    const lost = await this.recorder.flush();
    const { waiting = 0 } = (options.worker ? await ifKnown(storage.counts('logout')) : undefined) ?? {};
    const pending = Math.max(waiting, lost);
    if (pending > 0) emit({ type: 'shutdown-incomplete', pending, lost: !durable || lost > 0 });
    const erasures = durable ? undefined : await ifKnown(storage.counts('erasure'));
    const count = (erasures?.waiting ?? 0) + (erasures?.parked ?? 0);
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
