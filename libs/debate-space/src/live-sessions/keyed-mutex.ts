/** Runs the work of one key in the order of the calls, and that of different keys concurrently. */
export class KeyedMutex {
  readonly #last = new Map<string, Promise<unknown>>();

  async run<T>(key: string, work: () => Promise<T>): Promise<T> {
    const result = (this.#last.get(key) ?? Promise.resolve()).then(work);
    const last = result.catch(() => undefined);
    this.#last.set(key, last);
    try {
      return await result;
    } finally {
      if (this.#last.get(key) === last) this.#last.delete(key);
    }
  }

  /** Resolves when nothing is running. */
  async idle(): Promise<void> {
    while (this.#last.size > 0) await Promise.all(this.#last.values());
  }
}
