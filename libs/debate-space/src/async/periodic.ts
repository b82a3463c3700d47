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
