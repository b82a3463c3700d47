import type { Emit } from '../../events.js';

/** The pause that the service has requested: a 429 or 503 with `Retry-After`, from any of its routes. One event each. */
export class ServicePause {
  #until = 0;
  #unavailableUntil = 0;

  constructor(private readonly emit: Emit) {}

  /** Milliseconds until the pause ends; 0 when there is none. */
  get leftMs(): number {
    return Math.max(0, this.#until - performance.now());
  }

  /** Like `leftMs`, after a 503 only: that speaks of the service as a whole, a 429 of one of its limits. */
  get unavailableMs(): number {
    return Math.max(0, this.#unavailableUntil - performance.now());
  }

  /** @param pauseMs what the answer's `Retry-After` says */
  heard(status: number, pauseMs = 0): void {
    if ((status !== 429 && status !== 503) || pauseMs === 0) return;
    const isNew = this.leftMs === 0;
    const until = performance.now() + pauseMs;
    this.#until = Math.max(this.#until, until);
    if (status === 503) this.#unavailableUntil = Math.max(this.#unavailableUntil, until);
    if (isNew) this.emit({ type: 'service-pause-requested', status, pauseMs });
  }
}
