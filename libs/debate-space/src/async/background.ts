import { AsyncResource } from 'node:async_hooks';

/**
 * The async context in which the app booted. Work that the plugin does for itself runs there: in the context of a request it
 * would become part of a transaction that the host keeps in an `AsyncLocalStorage`, and be rolled back with it.
 */
export class BootContext {
  // AsyncLocalStorage.snapshot() would do the same, but is experimental in Node 20.
  readonly #resource = new AsyncResource('DebateSpace', { requireManualDestroy: true });

  /** Whoever awaits the result stays in its own context. */
  run<T>(work: () => T): T {
    return this.#resource.runInAsyncScope(work);
  }
}

/** Runs work every `ms`, one run at a time, until it is stopped. Its timer does not keep the process alive. */
export class Periodic {
  #timer: NodeJS.Timeout | undefined;
  #running: Promise<void> | undefined;

  /** @param work must not reject */
  constructor(
    private readonly ms: number,
    private readonly work: () => Promise<void>,
  ) {}

  start(): void {
    this.#timer ??= setInterval(() => void this.run(), this.ms).unref();
  }

  /** Runs the work now, unless it already runs. */
  run(): Promise<void> {
    this.#running ??= this.work().finally(() => {
      this.#running = undefined;
    });
    return this.#running;
  }

  /** Resolves when the current run has ended. */
  async stop(): Promise<void> {
    clearInterval(this.#timer);
    this.#timer = undefined;
    await this.#running;
  }
}
