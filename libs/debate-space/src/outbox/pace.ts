import type { Emit } from '../debate-space-event.js';
import { fullJitter } from '../remote/backoff.js';

const FIRST_PROBE_MS = 1_000;
const MOST_PROBE_MS = 30_000;

/** When the service may be sent to, and how much at a time: one probe while it is down. */
export class Pace {
  readonly #concurrency: number;
  readonly #emit: Emit;
  #nextProbeAt = 0;
  /** Probes that failed since the service went down; 0 while it is up. */
  #failedProbes = 0;

  constructor(concurrency: number, emit: Emit) {
    this.#concurrency = concurrency;
    this.#emit = emit;
  }

  /** Milliseconds until something may be sent; 0 or less: now. */
  get waitMs(): number {
    return this.#nextProbeAt - performance.now();
  }

  /** Whether the last that was heard of the service is that it does not serve. */
  get down(): boolean {
    return this.#failedProbes > 0;
  }

  /** How many may be under way at the same time. */
  get most(): number {
    return this.#failedProbes > 0 ? 1 : this.#concurrency;
  }

  /** Nothing is sent for so long: the service serves, and wants fewer requests. */
  rest(ms: number): void {
    this.#nextProbeAt = Math.max(this.#nextProbeAt, performance.now() + ms);
  }

  /** Notes whether the service serves, and spaces the probes while it does not. */
  heard(down: boolean, cause: string): void {
    const now = performance.now();
    if (!down) {
      if (this.#failedProbes === 0) return;
      this.#emit({ type: 'service-up' });
      this.#failedProbes = 0;
      this.#nextProbeAt = 0;
      return;
    }
    if (this.#failedProbes === 0) this.#emit({ type: 'service-down', cause });
    else if (now < this.#nextProbeAt) return; // one of those that were under way when it went down
    this.#failedProbes += 1;
    this.#nextProbeAt =
      now + Math.max(FIRST_PROBE_MS / 4, fullJitter(this.#failedProbes, FIRST_PROBE_MS, MOST_PROBE_MS));
  }
}
