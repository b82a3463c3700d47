/** Renews the leases of holds for as long as their ends are undecided, however long a response takes. */
export class Leases {
  readonly #renew: (id: string) => unknown;
  readonly #everyMs: number;
  /** When each was held, by `performance.now()`. */
  readonly #held = new Map<string, number>();
  #timer: NodeJS.Timeout | undefined;

  /** @param renew never throws */
  constructor(renew: (id: string) => unknown, leaseMs: number) {
    this.#renew = renew;
    this.#everyMs = leaseMs / 3;
  }

  add(id: string): void {
    this.#held.set(id, performance.now());
    this.#timer ??= setInterval(() => {
      const before = performance.now() - this.#everyMs;
      // Most ends are decided by the next time; what is younger has its whole lease then.
      for (const [held, at] of this.#held) if (at <= before) this.#renew(held);
    }, this.#everyMs).unref();
  }

  delete(id: string): void {
    this.#held.delete(id);
    if (this.#held.size > 0) return;
    clearInterval(this.#timer);
    this.#timer = undefined;
  }
}
