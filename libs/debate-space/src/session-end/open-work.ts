/** Work under way that a shutdown has to wait for. */
export class OpenWork {
  readonly #open = new Set<Promise<void>>();

  add(work: Promise<unknown>): void {
    const open = work
      .then(() => undefined)
      .catch(() => undefined)
      .finally(() => this.#open.delete(open));
    this.#open.add(open);
  }

  /** Resolves when there is none. */
  async done(): Promise<void> {
    while (this.#open.size > 0) await Promise.all(this.#open);
  }
}
