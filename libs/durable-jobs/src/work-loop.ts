import { AsyncResource } from 'node:async_hooks';
import { setImmediate as nextTurn } from 'node:timers/promises';
import type { Containment } from './containment.js';

const RETRY_MS = 1_000;
const MAX_TIMER_MS = 2 ** 31 - 1;

/**
 * Runs `work` serially, in the next turn of the event loop: what wakes it in one turn is one run. `wake()` during a run
 * schedules one more run. After a failure, which is reported, it runs again one second later. Its timer never
 * keeps the process alive.
 */
export class WorkLoop {
  /** Not as part of the call that brought the change, such as a request: its context is none of what is done from here. */
  readonly #context = new AsyncResource('DurableJobs');
  #timer: NodeJS.Timeout | undefined;
  #running = false;
  #working = false;
  #again = false;
  /** The last time that `work` was called. */
  #last: Promise<void> = Promise.resolve();

  /** When `work` last came to its end without a failure, or the loop was started. */
  #doneAt = 0;

  /** @param where names the work in the report of a failure */
  constructor(
    private readonly work: () => Promise<void>,
    private readonly containment: Containment,
    private readonly where: string,
  ) {}

  get running(): boolean {
    return this.#running;
  }

  /** For how long `work` has not come to its end without a failure, in milliseconds; `Infinity` when it does not run. */
  get stalledMs(): number {
    return this.#running ? performance.now() - this.#doneAt : Infinity;
  }

  /** Whether `work` is under way. */
  get isWorking(): boolean {
    return this.#working;
  }

  start(): void {
    this.#running = true;
    this.#doneAt = performance.now();
    this.wake();
  }

  wake(): void {
    this.#again = true;
    if (this.#working || !this.#running) return;
    this.#working = true;
    this.#context.runInAsyncScope(() => {
      void this.#run();
    });
  }

  /** Instead of any time that was given before. */
  wakeIn(ms: number): void {
    clearTimeout(this.#timer);
    const wake = (): void => {
      this.wake();
    };
    this.#timer = setTimeout(wake, Math.min(Math.ceil(ms), MAX_TIMER_MS)).unref();
  }

  /** What is at work goes on to its end. */
  stop(): void {
    this.#running = false;
    clearTimeout(this.#timer);
  }

  /** Resolves when the current call of `work` has returned. Never rejects. */
  async idle(): Promise<void> {
    await this.#last;
  }

  async #run(): Promise<void> {
    while (this.#again && this.#running) {
      this.#last = this.#contained();
      await this.#last;
    }
    this.#working = false; // in the same tick as the last look at what is to be done again
  }

  async #contained(): Promise<void> {
    await nextTurn();
    this.#again = false;
    try {
      await this.work();
      this.#doneAt = performance.now();
    } catch (error) {
      this.containment.report(this.where, error);
      this.wakeIn(RETRY_MS);
    }
  }
}
