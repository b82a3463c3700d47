import { isReadable, rangePages, UnreadableRecord } from 'durable-jobs';
import type { ErasureChange } from './erasure-change.js';
import * as records from './erasure-records.js';
import { ENTRY, type StoredBatch } from './erasure-records.js';
import { USERS_PER_COMMIT } from './erasure-requests.js';
import type { ChangeBatch, ErasureStorage } from './erasure-storage.js';
import type { ErasureStatus } from '../erasure.js';

type OnStatus = (status: ErasureStatus) => void;
type ChangeUser = (change: ErasureChange, batch: StoredBatch, row: string) => Promise<void>;

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
    const status = await this.storage.status(reference); // or it rejects
    return this.#changeUsers(status, records.parkedOf(reference), retryUser);
  }

  /**
   * Gives up those of which nothing was sent, and the parked ones; what else may have been carried out is finished.
   * @param onEnd called when this call has finished the reference: the runner may have done it meanwhile
   */
  async cancel(reference: string, onEnd: OnStatus = () => undefined): Promise<ErasureStatus> {
    const begin: ChangeBatch = (batch, change) => {
      if (batch.finishedSince !== undefined) return;
      Object.assign(batch, { canceling: true, paused: false });
      change.dueBy(batch, change.now); // what may have been carried out
    };
    const status = await this.#change(reference, begin, onEnd);
    return this.#changeUsers(status, records.entriesOf(reference), cancelUser, onEnd);
  }

  async #setPaused(reference: string, paused: boolean, onChange: OnStatus): Promise<ErasureStatus> {
    let isChange = false as boolean; // the callback sets it
    const status = await this.storage.changeBatch(reference, (batch, change) => {
      isChange = batch.finishedSince === undefined && batch.paused !== paused;
      if (!isChange) return;
      batch.paused = paused;
      if (paused) return;
      batch.resumedSince = change.now;
      change.dueBy(batch, change.now);
    });
    if (isChange) onChange(status);
    return status;
  }

  /** @returns the status after the changes of all users that the index rows of a range lead to */
  async #changeUsers(
    status: ErasureStatus,
    range: records.KeyRange,
    work: ChangeUser,
    onEnd?: OnStatus,
  ): Promise<ErasureStatus> {
    let last = status;
    for await (const rows of rangePages(this.storage.view, ...range, { size: USERS_PER_COMMIT })) {
      const changeAll: ChangeBatch = async (batch, change) => {
        const keys = rows.flatMap(([row]) => [row, records.entryKey(records.lastPart(row), batch.mode)]);
        await change.transaction.getAll(keys); // all in one round trip
        for (const [row] of rows) await work(change, batch, row);
      };
      last = await this.#change(status.reference, changeAll, onEnd);
    }
    return last;
  }

  async #change(reference: string, work: ChangeBatch, onEnd?: OnStatus): Promise<ErasureStatus> {
    const finished: StoredBatch[] = [];
    const status = await this.storage.changeBatch(reference, async (batch, change) => {
      await work(batch, change);
      finished.splice(0, Infinity, ...(await change.save())); // it may be repeated
    });
    if (finished.length > 0) onEnd?.(status);
    return status;
  }
}

async function retryUser(
  change: ErasureChange,
  { reference, mode }: StoredBatch,
  row: string,
): Promise<void> {
  const { now, transaction, storage } = change;
  const uidHash = records.lastPart(row);
  let entry = await change.findEntry(uidHash, mode);
  if (!entry || (await transaction.get(row)) === undefined) return;
  await transaction.getAll(ENTRY.indexes(entry)); // some went when it was parked
  // The one that could not be read may have been replaced by another reference's.
  if (!entry.references.includes(reference)) {
    const uid = storage.open(entry);
    if (uid === undefined) return;
    entry = storage.seal({ ...entry, references: [...entry.references, reference] }, uid);
  }
  for (const batch of await change.batchesOf(entry)) {
    if (await change.unpark(batch, uidHash)) change.dueBy(batch, now);
  }
  // The one that has replaced it may be under way.
  const again = { parked: false, dueAt: now, since: now, failures: 0 };
  const forgotten = { lease: undefined, cause: undefined, hint: undefined };
  await change.put(entry.parked ? { ...entry, ...again, ...forgotten } : entry);
}

/** A user of whom nothing was sent – what is claimed but not sent among them –, or, with a receipt, who is parked. */
async function cancelUser(change: ErasureChange, batch: StoredBatch, row: string): Promise<void> {
  const { transaction } = change;
  const uidHash = records.lastPart(row);
  const [entry] = await change.readEntries([uidHash], batch.mode);
  if (!isReadable(entry) || !entry.references.includes(batch.reference)) {
    if ((await transaction.get(row)) === undefined) return; // finished meanwhile
    await change.unpark(batch, uidHash);
    transaction.set(row, undefined);
    if (entry instanceof UnreadableRecord) transaction.set(entry.key, undefined);
    batch.canceled += 1;
  } else if (!entry.unknown) {
    await change.unpark(batch, uidHash);
    batch.canceled += 1;
    await change.leave(entry, batch.reference);
  } else if (entry.parked) {
    await change.settle(entry, batch, { outcome: 'canceled', loggedOut: false });
  }
}
