import { isReadable, UnreadableRecord } from '../storage/record-type.js';
import { rangePages } from '../storage/range-pages.js';
import type { ErasureChange } from './erasure-change.js';
import * as keys from './erasure-keys.js';
import type { ErasureRegister } from './erasure-register.js';
import { USERS_PER_COMMIT } from './erasure-requests.js';
import type { ErasureStorage } from './erasure-storage.js';
import type { ErasureStatus } from './erasure.js';
import { ENTRY, type StoredBatch } from './stored-erasure.js';

type ChangeUser = (change: ErasureChange, batch: StoredBatch, row: string) => Promise<void>;

/** Stops the work on a reference, and continues it. Rejects with an `ErasureError` when there is no such reference. */
export class ErasureControl {
  readonly #storage: ErasureStorage;
  readonly #register: ErasureRegister;

  constructor(storage: ErasureStorage, register: ErasureRegister) {
    this.#storage = storage;
    this.#register = register;
  }

  async pause(reference: string): Promise<ErasureStatus> {
    return this.#change(reference, (_, batch) => {
      batch.paused = batch.finishedSince === undefined;
    });
  }

  /** After a pause; the parked ones stay parked. */
  async resume(reference: string): Promise<ErasureStatus> {
    return this.#change(reference, (change, batch) => {
      if (batch.paused) batch.resumedSince = change.now;
      batch.paused = false;
      change.dueBy(batch, change.now);
    });
  }

  /** Makes the parked ones due again, as far as their records can be read. */
  async retry(reference: string): Promise<ErasureStatus> {
    await this.#register.status(reference); // or it rejects
    await this.#forEach(reference, keys.parkedOf(reference), retryUser);
    return this.#register.status(reference);
  }

  /**
   * Gives up those of which nothing was sent, and the parked ones; what else may have been carried out is finished.
   */
  async cancel(reference: string): Promise<ErasureStatus> {
    const { finishedAt } = await this.#register.status(reference);
    if (!finishedAt)
      await this.#change(reference, (change, batch) => {
        Object.assign(batch, { cancelling: true, paused: false });
        change.dueBy(batch, change.now); // what may have been carried out
      });
    await this.#forEach(reference, keys.dueOf(reference), cancelUser);
    await this.#forEach(reference, keys.parkedOf(reference), cancelUser);
    return this.#register.status(reference);
  }

  async #change(
    reference: string,
    work: (change: ErasureChange, batch: StoredBatch) => void,
  ): Promise<ErasureStatus> {
    await this.#register.status(reference); // or it rejects
    await this.#storage.change(reference, async (change) => {
      work(change, change.edit(await change.batch(reference)));
    });
    return this.#register.status(reference);
  }

  async #forEach(reference: string, range: keys.KeyRange, work: ChangeUser): Promise<void> {
    for await (const rows of rangePages(this.#storage.view, ...range, { size: USERS_PER_COMMIT })) {
      await this.#storage.change(reference, async (change) => {
        const batch = change.edit(await change.batch(reference));
        for (const [row] of rows) await work(change, batch, row);
      });
    }
  }
}

async function retryUser(
  change: ErasureChange,
  { reference, mode }: StoredBatch,
  row: string,
): Promise<void> {
  const { now, transaction } = change;
  const uidHash = keys.lastPart(row);
  const entry = await change.findEntry(uidHash, mode);
  if (!entry || (await transaction.get(row)) === undefined) return;
  await transaction.getAll(ENTRY.indexes(entry)); // some went when it was parked
  // The one that could not be read may have been replaced by another reference's.
  if (!entry.references.includes(reference)) entry.references = [...entry.references, reference];
  const batches = await change.batchesOf(entry);
  for (const batch of batches) {
    if (await change.unpark(batch, uidHash)) change.dueBy(batch, now);
  }
  // The one that has replaced it may be under way.
  const again = { parked: false, dueAt: now, lease: undefined, since: now, failures: 0, cause: undefined, hint: undefined }; // prettier-ignore
  await change.put(entry.parked ? { ...entry, ...again } : entry);
}

/** A user of whom nothing was sent – what is claimed but not sent among them –, or, with a receipt, who is parked. */
async function cancelUser(change: ErasureChange, batch: StoredBatch, row: string): Promise<void> {
  const { transaction } = change;
  const uidHash = keys.lastPart(row);
  const [entry] = await change.readEntries([uidHash], batch.mode);
  if (entry instanceof UnreadableRecord || !entry?.references.includes(batch.reference)) {
    if ((await transaction.get(row)) === undefined) return; // finished meanwhile
    if (row.startsWith('erasureparked:')) await change.unpark(batch, uidHash);
    else if (!isReadable(entry))
      transaction.set(keys.waitKey(keys.momentOf(row), uidHash, batch.mode), undefined);
    transaction.set(row, undefined);
    if (entry instanceof UnreadableRecord) transaction.set(entry.key, undefined);
    batch.cancelled += 1;
  } else if (!entry.unknown) {
    await change.unpark(batch, uidHash);
    batch.cancelled += 1;
    await change.leave(entry, batch.reference);
  } else if (entry.parked) {
    await change.settle(entry, batch, { outcome: 'cancelled', loggedOut: false });
  }
}
