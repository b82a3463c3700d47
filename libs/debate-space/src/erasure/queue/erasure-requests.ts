import { BatchRequest } from './erasure-records.js';
import { randomUUID } from 'node:crypto';
import type { NewJob } from 'durable-jobs';
import { ErasureError, invalidArgument } from '../../errors.js';
import type { ErasureMode } from '../../events.js';
import { isHeld, type ErasureChange } from './erasure-batch.js';
import * as records from './erasure-records.js';
import type { StoredBatch, StoredErasure } from './erasure-records.js';
import type { ErasureStorage } from './erasure-storage.js';
import { chunksOf } from '../uid-source.js';

/** The number of users that are added, canceled or retried in one commit. */
export const USERS_PER_COMMIT = 250;

const UNTRIED = { attempts: 0, failures: 0, rejections: 0 } as const;
/** A single user goes before the lists. */
const PRIORITY = { single: 0, list: 1 } as const;

/** Adds the users to be erased. */
export class ErasureRequests {
  constructor(private readonly storage: ErasureStorage) {}

  /** One user. @returns whether it was added */
  add(request: BatchRequest, uid: string): Promise<boolean> {
    return this.#add(request, [uid], 'single', true, (batch) => {
      if (!batch.complete && batch.reader !== undefined)
        throw conflict('the list of this reference is not read to its end; give another reference');
    });
  }

  /**
   * A list, of which nothing is carried out before all is durable. The last of several calls reads it to its end.
   * @returns whether it has added a user, or the end of the list
   * @throws {@link InvalidArgumentError} when the list has no user: then nothing is stored
   */
  async addList(request: BatchRequest, uids: AsyncIterable<string>): Promise<boolean> {
    const reader = randomUUID();
    const takeOver = (batch: StoredBatch): void => {
      batch.reader = reader;
    };
    const readByOther = (batch: StoredBatch): void => {
      if (batch.reader !== reader) throw conflict('another call has begun to read a list for this reference');
    };
    let isBegun = false;
    let isChange = false;
    for await (const some of chunksOf(uids, USERS_PER_COMMIT)) {
      const isAdded = await this.#add(request, some, 'list', false, isBegun ? readByOther : takeOver);
      isBegun = true;
      isChange ||= isAdded;
    }
    if (!isBegun) throw invalidArgument('requestErasure', 'the list has no user');
    return (await this.#add(request, [], 'list', true, readByOther)) || isChange;
  }

  /** The reference for which this erasure is requested already, and needs nobody's help. */
  async openReference(uid: string, mode: ErasureMode): Promise<string | undefined> {
    return (await this.storage.running(uid, mode))[0];
  }

  /** How many of these users' erasures are not finished. */
  async countRequested(uids: readonly string[], modes: readonly ErasureMode[]): Promise<number> {
    const found = await Promise.all(
      uids.map((uid) => this.storage.jobs.find(this.storage.uids.hashes(uid), this.storage.view)),
    );
    return found.filter((some) => some.some(({ job }) => !job || modes.includes(job.value.mode))).length;
  }

  /**
   * Users that the reference has already, done or not, are left as they are.
   * @param isLast whether these are all: from then on they are carried out
   * @returns whether it has added a user, or the end of a list
   * @throws {@link ErasureError} when the reference stands for something else, or when its record cannot be read
   */
  #add(
    request: BatchRequest,
    uids: readonly string[],
    kind: keyof typeof PRIORITY,
    isLast: boolean,
    check: (batch: StoredBatch) => void,
  ): Promise<boolean> {
    const users = [...new Set(uids)].map((uid) => ({ uid, hashes: this.storage.uids.hashes(uid) }));
    const { reference, mode, requestedBy } = request;
    return this.storage.change(reference, async (change) => {
      const hashes = users.flatMap((user) => user.hashes);
      await change.prefetch(hashes.map((hash) => records.jobIdOf(reference, hash)));
      const batch = await change.editFor(request);
      if (batch.mode !== mode)
        throw conflict(`this reference stands for another mode (${batch.mode}); give another reference`);
      if (batch.canceling) throw conflict('this reference was canceled; give another reference');
      check(batch);
      const added = await this.#missing(change, users);
      if (added.length > 0 && batch.complete && !isLast)
        throw conflict('this reference has another list, which is complete; give another reference');
      // It was finished: what is requested now is not as old, nor by the same person.
      if (added.length > 0 && batch.finishedSince !== undefined)
        Object.assign(batch, {
          requestedBy,
          requestedAt: Date.now(),
          since: change.now,
          finishedAt: undefined,
          finishedSince: undefined,
        });
      const isChange = added.length > 0 || (isLast && !batch.complete);
      batch.complete ||= isLast;
      batch.total += added.filter(({ isReplaced }) => !isReplaced).length;
      if (added.length > 0) batch.overdueAt ??= change.now + this.storage.overdueAfterMs;
      const isAside = isHeld(batch);
      const jobs = added.map(({ uid, uidHash, isReplaced }): NewJob<StoredErasure> => {
        const sealed = this.storage.seal(uid, reference, uidHash, mode);
        const value = { ...UNTRIED, mode, sealed, since: change.now, unknown: isReplaced };
        const id = records.jobIdOf(reference, uidHash);
        return { id, key: uidHash, priority: PRIORITY[kind], isAside, value };
      });
      await this.storage.jobs.addIn(change.transaction, jobs);
      return isChange;
    });
  }

  /** Those that the reference does not have. One that cannot be read is replaced: whatever it says, the user is to be erased. */
  async #missing(
    { transaction, reference }: ErasureChange,
    users: readonly { readonly uid: string; readonly hashes: readonly string[] }[],
  ): Promise<readonly { readonly uid: string; readonly uidHash: string; readonly isReplaced: boolean }[]> {
    const { jobs, view } = this.storage;
    const hashes = users.flatMap((user) => user.hashes);
    const found = await jobs.findIn(
      transaction,
      hashes.map((hash) => records.jobIdOf(reference, hash)),
    );
    // Not checked by the commit: whatever changes a receipt changes the batch, too.
    const receipts = await view.get(hashes.map((hash) => records.receiptKey(reference, hash)));
    const known = new Map(hashes.map((hash, n) => [hash, { job: found[n], receipt: receipts[n] }]));
    const missing = users.filter(({ hashes: own }) =>
      own.every((hash) => known.get(hash)?.receipt === undefined && known.get(hash)?.job?.job === undefined),
    );
    const added: { uid: string; uidHash: string; isReplaced: boolean }[] = [];
    for (const { uid, hashes: own } of missing) {
      const damaged = own.find((hash) => known.get(hash)?.job);
      const uidHash = damaged ?? own[0] ?? '';
      if (damaged !== undefined) await jobs.removeIn(transaction, records.jobIdOf(reference, damaged));
      added.push({ uid, uidHash, isReplaced: damaged !== undefined });
    }
    return added;
  }
}

function conflict(problem: string): ErasureError {
  return new ErasureError('ERR_DEBATE_SPACE_ERASURE_CONFLICT', problem);
}
