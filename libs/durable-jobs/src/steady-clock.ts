import type { Storage } from './storage.js';

const STEADY_MS = 600_000;
const JUMP_MS = 60_000;

/**
 * Says whether the clock of a storage may be trusted to do what cannot be undone, such as to remove what is outdated: one
 * that is years ahead for seconds must not. It is steady when it has run like the machine's own for ten minutes.
 */
export class SteadyClock {
  readonly #storage: Pick<Storage, 'now'>;
  #skew: number;
  #since = performance.now();

  constructor(storage: Pick<Storage, 'now'>) {
    this.#storage = storage;
    this.#skew = this.#skewNow();
  }

  /**
   * To be called every few seconds: a jump is noticed by the difference to the calls before.
   * @param ageMs the age at which it is done: a clock that is steady for that long is enough
   */
  isSteady(ageMs = Infinity): boolean {
    const skew = this.#skewNow();
    // Compared with the beginning, not with the last call: a clock that was put back may run slowly instead of jumping.
    if (Math.abs(skew - this.#skew) > JUMP_MS) {
      this.#skew = skew;
      this.#since = performance.now();
    }
    return performance.now() - this.#since >= Math.min(STEADY_MS, ageMs);
  }

  #skewNow(): number {
    return this.#storage.now() - performance.now();
  }
}
