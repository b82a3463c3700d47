import { AsyncResource } from 'node:async_hooks';
import { setImmediate as nextTurn } from 'node:timers/promises';

const RETRY_MS = 1_000;

/**
 * Runs `work` serially, in the next turn of the event loop: several calls of `wake()` in one turn make one run. `wake()`
 * during a run schedules one more run. After a failure it runs again one second later. Its timer never keeps the process
 * alive.
 */
export class WorkLoop {
  /** Runs outside the async context of the request that woke it, so that the host's AsyncLocalStorage does not leak in. */
  readonly #context = new AsyncResource('DebateSpaceJobs');
  #timer: NodeJS.Timeout | undefined;
  #isStarted = false;
  #isWorking = false;
  #again = false;
  #lastRun: Promise<void> = Promise.resolve();
  /** When `work` last succeeded, or the loop was started. */
  #succeededAt = 0;

  /** @param onFault takes an error of `work`; must not throw */
  constructor(
    private readonly work: () => Promise<void>,
    private readonly onFault: (error: unknown) => void,
  ) {}

  get isStarted(): boolean {
    return this.#isStarted;
  }

  /** Whether `work` runs. */
  get isWorking(): boolean {
    return this.#isWorking;
  }

  /** Milliseconds since `work` last succeeded; `Infinity` when the loop is stopped. */
  get stalledMs(): number {
    return this.#isStarted ? performance.now() - this.#succeededAt : Infinity;
  }

  start(): void {
    this.#isStarted = true;
    this.#succeededAt = performance.now();
    this.wake();
  }

  wake(): void {
    this.#again = true;
    if (this.#isWorking || !this.#isStarted) return;
    this.#isWorking = true;
    this.#context.runInAsyncScope(() => {
      void this.#run();
    });
  }

  /** Replaces the time of an earlier call. */
  wakeIn(ms: number): void {
    clearTimeout(this.#timer);
    this.#timer = setTimeout(this.wake.bind(this), Math.ceil(ms)).unref();
  }

  /** A run that has begun continues to its end. */
  stop(): void {
    this.#isStarted = false;
    clearTimeout(this.#timer);
  }

  /** Resolves when the current run has ended. Never rejects. */
  async idle(): Promise<void> {
    await this.#lastRun;
  }

  async #run(): Promise<void> {
    while (this.#again && this.#isStarted) {
      this.#lastRun = this.#runOnce();
      await this.#lastRun;
    }
    this.#isWorking = false; // in the tick that last looked at `#again`
  }

  async #runOnce(): Promise<void> {
    await nextTurn();
    this.#again = false;
    try {
      await this.work();
      this.#succeededAt = performance.now();
    } catch (error) {
      this.onFault(error);
      this.wakeIn(RETRY_MS);
    }
  }
}
