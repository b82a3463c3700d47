/** Renews the leases of holds while their ends are undecided, but never without end: a hold that nobody settles becomes due. */
export class Leases {
  readonly #renew: (id: string) => unknown;
  readonly #everyMs: number;
  readonly #longestMs: number;
  readonly #held = new Map<string, Held>();
  #timer: NodeJS.Timeout | undefined;
  #isClosed = false;

  /**
   * @param renew never throws
   * @param longestMs how long after the hold its lease is renewed
   */
  constructor(renew: (id: string) => unknown, leaseMs: number, longestMs: number) {
    this.#renew = renew;
    this.#everyMs = leaseMs / 3;
    this.#longestMs = longestMs;
  }

  /** @param isOpen whether the request may still decide the end; never throws */
  add(id: string, isOpen: () => boolean): void {
    if (this.#isClosed) return;
    this.#held.set(id, { at: performance.now(), isOpen });
    this.#timer ??= setInterval(() => {
      this.#renewAll(performance.now());
    }, this.#everyMs).unref();
  }

  delete(id: string): void {
    this.#held.delete(id);
    if (this.#held.size === 0) this.#stop();
  }

  /** Renews nothing from now on. */
  close(): void {
    this.#isClosed = true;
    this.#held.clear();
    this.#stop();
  }

  #renewAll(now: number): void {
    for (const [id, { at, isOpen }] of this.#held) {
      const age = now - at;
      // Most ends are decided by the next time; what is younger has its whole lease then.
      if (age < this.#everyMs) continue;
      if (age < this.#longestMs && isOpen()) this.#renew(id);
      else this.delete(id);
    }
  }

  #stop(): void {
    clearInterval(this.#timer);
    this.#timer = undefined;
  }
}

interface Held {
  /** When, by `performance.now()`. */
  readonly at: number;
  readonly isOpen: () => boolean;
}
