import type { FoundJob, JobState } from 'durable-jobs';
import type { ErasureChange } from './erasure-batch.js';
import * as records from './erasure-records.js';
import type { StoredBatch, StoredErasure } from './erasure-records.js';
import { USERS_PER_COMMIT } from './erasure-requests.js';
import type { ErasureStorage } from './erasure-storage.js';
import type { ErasureStatus } from '../erasure.js';

type OnStatus = (status: ErasureStatus) => void;
/** @returns whether the job has left its state */
type ChangeUser = (change: ErasureChange, found: FoundJob<StoredErasure>) => Promise<boolean>;
type OnChange = (finished: StoredBatch | undefined) => void;

/** Stops the work on a reference, and continues it. Rejects with an `ErasureError` when there is no such reference. */
export class ErasureControl {
  constructor(private readonly storage: ErasureStorage) {}

  /** @param onChange called when it was running before: not of what is paused or finished already */
  pause(reference: string, onChange: OnStatus = () => undefined): Promise<ErasureStatus> {
    return this.#setPaused(reference, true, onChange);
  }

  /** After a pause; the parked ones stay parked. @param onChange called when it was paused before */
  resume(reference: string, onChange: OnStatus = () => undefined): Promise<ErasureStatus> {
    return this.#setPaused(reference, false, onChange);
  }

  /** Makes the parked ones due again, as far as their records can be read. */
  async retry(reference: string): Promise<ErasureStatus> {
    await this.storage.status(reference); // or it rejects
    await this.#changeUsers(reference, 'parked', async (change, { id }) => {
      const again = { since: change.now, failures: 0, cause: undefined };
      return this.storage.jobs.retryParkedIn(change.transaction, id, ({ value }) => ({ ...value, ...again }));
    });
    return this.storage.status(reference);
  }

  /**
   * Gives up those of which nothing was sent, and the parked ones; what else may have been carried out is finished.
   * @param onCanceled called once, before the end of the reference is reported
   */
  async cancel(
    reference: string,
    onCanceled: (count: number) => void = () => undefined,
  ): Promise<ErasureStatus> {
    let isTold = false;
    const tell = ({ canceled }: Pick<StoredBatch, 'canceled'>): void => {
      if (!isTold) onCanceled(canceled);
      isTold = true;
    };
    const onChange: OnChange = (finished) => {
      if (finished) tell(finished);
    };
    const begin = async (change: ErasureChange): Promise<void> => {
      const batch = await change.edit();
      if (batch.finishedSince === undefined) Object.assign(batch, { canceling: true, paused: false });
    };
    await this.storage.change(reference, begin, (_, finished) => {
      onChange(finished);
    });
    const cancelUser = this.#cancelUser.bind(this);
    for (const state of ['parked', 'pending'] as const)
      await this.#changeUsers(reference, state, cancelUser, onChange);
    const status = await this.storage.status(reference);
    tell(status);
    return status;
  }

  async #setPaused(reference: string, paused: boolean, onChange: OnStatus): Promise<ErasureStatus> {
    const isChange = await this.storage.change(reference, async (change) => {
      const batch = await change.edit();
      if (batch.finishedSince !== undefined || batch.paused === paused) return false;
      batch.paused = paused;
      if (!paused) batch.resumedSince = change.now;
      return true;
    });
    const status = await this.storage.status(reference);
    if (isChange) onChange(status);
    return status;
  }

  /** Changes all users of a reference that are in a state, some of them in each commit. */
  async #changeUsers(
    reference: string,
    state: JobState,
    work: ChangeUser,
    onChange: OnChange = () => undefined,
  ): Promise<void> {
    const { jobs } = this.storage;
    const group = records.groupOf(reference);
    for (let skip = 0; ;) {
      const found = await jobs.list(state, { group, skip, limit: USERS_PER_COMMIT });
      if (found.length === 0) return;
      const ids = found.map(({ id }) => id);
      const left = await this.storage.change(
        reference,
        async (change) => {
          let count = 0;
          await change.prefetch(ids); // the batch, too: two calls must not change the users of a reference at once
          for (const one of await jobs.findIn(change.transaction, ids))
            if (one?.state === state && !(await work(change, one))) count += 1;
          return count;
        },
        (_, finished) => {
          onChange(finished);
        },
      );
      skip += left;
    }
  }

  /** A user of whom nothing was sent – what is claimed but not sent among them –, or, with a receipt, who is parked. */
  async #cancelUser(change: ErasureChange, found: FoundJob<StoredErasure>): Promise<boolean> {
    const { jobs } = this.storage;
    const { id, job, state } = found;
    if (job?.value.unknown && state === 'pending') return false;
    await jobs.removeIn(change.transaction, id);
    if (job?.value.unknown)
      await change.settle(job.key, job.value, { outcome: 'canceled', loggedOut: false });
    else (await change.edit()).canceled += 1;
    return true;
  }
}
