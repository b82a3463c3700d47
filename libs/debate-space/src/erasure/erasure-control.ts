import type { Emit } from '../events.js';
import type { Reference } from '../storage/storage.js';
import type { ErasureStatus } from './erasure.js';
import { finishedEvent, type ErasureRepository } from './erasure-repository.js';

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
    const { repository } = this;
    await repository.status(reference); // or it rejects
    while ((await repository.storage.retryErasures(reference)) > 0);
    repository.changed();
    return repository.status(reference);
  }

  /** Gives up the users of whom nothing was sent, and the parked ones. */
  async cancel(reference: string): Promise<ErasureStatus> {
    const { repository, emit } = this;
    const before = await repository.status(reference);
    if (before.finishedAt) return before; // the events of its end were emitted then
    const finished = await cancelUsers(repository, reference);
    const status = finished
      ? repository.statusOf({ ...finished, parked: 0 })
      : await repository.status(reference);
    emit({ type: 'erasure-canceled', reference, mode: status.mode, count: status.canceled });
    if (finished) emit(finishedEvent(finished));
    return status;
  }

  async #setPaused(reference: string, paused: boolean): Promise<ErasureStatus> {
    const { repository } = this;
    const before = await repository.status(reference); // or it rejects
    if (!(await repository.storage.setPaused(reference, paused))) return before;
    repository.changed();
    this.emit({ type: paused ? 'erasure-paused' : 'erasure-resumed', reference, mode: before.mode });
    return repository.status(reference);
  }
}

/** Cancels a reference, or what a process that died meanwhile has left of it. @returns the reference if it is finished by this */
export async function cancelUsers(
  repository: ErasureRepository,
  reference: string,
): Promise<Reference | undefined> {
  for (;;) {
    const { more, finished } = await repository.storage.cancelErasures(reference);
    if (more && !finished) continue;
    repository.changed();
    return finished;
  }
}
