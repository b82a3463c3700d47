import type { Emit } from '../events.js';
import type { ErasureStatus } from './erasure.js';
import type { ErasureRepository } from './erasure-repository.js';
import { finishedEvent } from './erasure-status.js';

/** Stops the work on a reference, and continues it. Rejects with an `ErasureError` when there is no such reference. */
export class ErasureControl {
  constructor(
    private readonly repository: ErasureRepository,
    private readonly emit: Emit,
  ) {}

  pause(reference: string): Promise<ErasureStatus> {
    return this.#setPaused(reference, true);
  }

  /** Parked users stay parked. */
  resume(reference: string): Promise<ErasureStatus> {
    return this.#setPaused(reference, false);
  }

  /** Makes the parked users due again. */
  async retry(reference: string): Promise<ErasureStatus> {
    await this.repository.status(reference); // or it rejects
    await this.repository.retryParked(reference);
    return this.repository.status(reference);
  }

  /** Discards the users of whom nothing was sent, and the parked ones. */
  async cancel(reference: string): Promise<ErasureStatus> {
    const before = await this.repository.status(reference);
    if (before.finishedAt) return before; // the events of its end were emitted then
    const finished = await this.repository.cancel(reference);
    const status = await this.repository.status(reference);
    this.emit({ type: 'erasure-canceled', reference, mode: status.mode, count: status.canceled });
    if (finished) this.emit(finishedEvent(finished));
    return status;
  }

  async #setPaused(reference: string, paused: boolean): Promise<ErasureStatus> {
    const isChange = await this.repository.setPaused(reference, paused);
    const status = await this.repository.status(reference);
    if (isChange)
      this.emit({ type: paused ? 'erasure-paused' : 'erasure-resumed', reference, mode: status.mode });
    return status;
  }
}
