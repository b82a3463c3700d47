/** Waits that come to their end together when the app shuts down. Linear: thousands may be open. */
export class OpenWaits {
  readonly #open = new Set<() => void>();
  #isClosed = false;

  get isClosed(): boolean {
    return this.#isClosed;
  }

  /** Calls `listener` when the waits are closed, at once if they are. @returns how to stop */
  onClose(listener: () => void): () => void {
    if (this.#isClosed) listener();
    else this.#open.add(listener);
    return () => void this.#open.delete(listener);
  }

  /**
   * Waits for a promise, but no longer than `ms`, nor beyond the shutdown; the promise itself goes on.
   * @returns what the promise resolves to, or `late`
   */
  within<T, L>(promise: PromiseLike<T>, ms: number, late: L): Promise<T | L> {
    if (this.#isClosed) return Promise.resolve(late);
    return new Promise((resolve, reject) => {
      const end = (): void => {
        stop();
        resolve(late);
      };
      const timer = setTimeout(end, ms).unref();
      const stop = (): void => {
        clearTimeout(timer);
        this.#open.delete(end);
      };
      this.#open.add(end);
      promise.then(stop, stop);
      promise.then(resolve, reject);
    });
  }

  close(): void {
    this.#isClosed = true;
    for (const end of [...this.#open]) end();
    this.#open.clear();
  }
}

/** Work under way that a shutdown has to wait for. */
export class PendingTasks {
  readonly #pending = new Set<Promise<unknown>>();

  /** @returns the task */
  track<T>(task: Promise<T>): Promise<T> {
    const settle = (): unknown => this.#pending.delete(task);
    this.#pending.add(task);
    task.then(settle, settle);
    return task;
  }

  /** Resolves when no task is pending. */
  async onIdle(): Promise<void> {
    while (this.#pending.size > 0) await Promise.allSettled(this.#pending);
  }
}

/**
 * Waits for a promise, but no longer than `ms`; the promise itself goes on. Keeps neither the process alive nor a timer.
 * @returns what the promise resolves to, or `late`
 */
export function withTimeout<T, L>(promise: PromiseLike<T>, ms: number, late: L): Promise<T | L> {
  return new Promise((resolve, reject) => {
    const timer = setTimeout(resolve, ms, late).unref();
    const stop = (): void => {
      clearTimeout(timer);
    };
    promise.then(stop, stop);
    promise.then(resolve, reject);
  });
}
