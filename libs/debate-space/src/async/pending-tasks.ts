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
