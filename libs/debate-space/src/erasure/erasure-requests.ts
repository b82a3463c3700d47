import { ErasureError } from '../errors.js';
import { isReadable, UnreadableRecord } from '../storage/record-type.js';
import type { HostTransaction } from '../storage/storage.js';
import { Transaction } from '../storage/transaction.js';
import { isRunning, type BatchRequest } from './erasure-batch.js';
import { randomId, type ErasureChange } from './erasure-change.js';
import { batchKey, entryKey, receiptKey } from './erasure-keys.js';
import { ErasureRegister } from './erasure-register.js';
import type { ErasureStorage } from './erasure-storage.js';
import type { ErasureMode } from './erasure.js';
import { BATCH, ENTRY, type StoredBatch, type StoredEntry } from './stored-erasure.js';

/** The number of users that are added, cancelled or retried in one commit. */
export const USERS_PER_COMMIT = 250;

const UNTRIED = { attempts: 0, failures: 0, rejections: 0, parked: false } as const;

/** Adds the users to be erased. */
export class ErasureRequests {
  readonly register: ErasureRegister;
  readonly #storage: ErasureStorage;
  readonly #overdueAfterMs: number;

  /** @param overdueAfterMs the age at which a reference that is not finished is overdue */
  constructor(storage: ErasureStorage, overdueAfterMs: number) {
    this.register = new ErasureRegister(storage, overdueAfterMs);
    this.#storage = storage;
    this.#overdueAfterMs = overdueAfterMs;
  }

  /** The same in a transaction that the host has open. @throws {@link InvalidArgumentError} */
  within(transaction: HostTransaction | undefined): ErasureRequests {
    if (transaction === undefined) return this;
    return new ErasureRequests(this.#storage.within(transaction), this.#overdueAfterMs);
  }

  /** One user. @returns whether the same was under way for another reference: it is done once */
  async add(request: BatchRequest, uid: string): Promise<boolean> {
    const underWay = await this.#add(request, [uid], true, (batch) => {
      if (!batch.complete && batch.reader !== undefined)
        throw conflict('the list of this reference is not read to its end; give another reference');
    });
    return underWay > 0;
  }

  /** From now on `reader` reads the list of the reference, and nobody else. */
  async beginList(request: BatchRequest, reader: string): Promise<void> {
    await this.#add(request, [], false, (batch) => {
      batch.reader = reader;
    });
  }

  /** Some of a list; nothing of it is carried out before {@link endList}. */
  async addSome(request: BatchRequest, reader: string, uids: readonly string[]): Promise<void> {
    await this.#add(request, uids, false, readBy(reader));
  }

  async endList(request: BatchRequest, reader: string): Promise<void> {
    await this.#add(request, [], true, readBy(reader));
  }

  /** The reference for which this erasure is under way and needs nobody's help. */
  async underWay(uid: string, mode: ErasureMode): Promise<string | undefined> {
    const transaction = new Transaction(this.#storage.view);
    const entryKeys = this.#storage.uids.hashes(uid).map((hash) => entryKey(hash, mode));
    for (const entry of await transaction.readAll(ENTRY, entryKeys)) {
      if (!isReadable(entry) || entry.parked) continue;
      const batches = await transaction.readAll(BATCH, entry.references.map(batchKey));
      const running = batches
        .filter(isReadable<StoredBatch>)
        .find((batch) => isRunning(batch) && !batch.cancelling);
      if (running) return running.reference;
    }
    return undefined;
  }

  /** How many of these users' erasures are under way. */
  async countUnderWay(uids: readonly string[], modes: readonly ErasureMode[]): Promise<number> {
    const keysOf = uids.map((uid) =>
      this.#storage.uids.hashes(uid).flatMap((hash) => modes.map((mode) => entryKey(hash, mode))),
    );
    const keys = keysOf.flat();
    const texts = await this.#storage.view.get(keys);
    const found = new Set(keys.filter((_, n) => texts[n] !== undefined));
    return keysOf.filter((some) => some.some((key) => found.has(key))).length;
  }

  /**
   * Users that the reference has already, done or not, are left as they are.
   * @param isLast whether these are all: from then on they are carried out
   * @returns how many of them were under way for another reference
   * @throws {@link ErasureError} when the reference stands for something else, or when its record cannot be read
   */
  async #add(
    request: BatchRequest,
    uids: readonly string[],
    isLast: boolean,
    check: (batch: StoredBatch) => void,
  ): Promise<number> {
    const users = [...new Set(uids)].map((uid) => ({ uid, hashes: this.#storage.uids.hashes(uid) }));
    const hashes = users.flatMap((user) => user.hashes);
    const { reference, mode } = request;
    return this.#storage.change(reference, async (change) => {
      const batch = change.edit(await change.batchFor(request));
      assertFits(batch, mode);
      check(batch);
      await change.readEntries(hashes, mode); // all in one round trip
      // Not checked by the commit: whatever changes a receipt changes the batch, too.
      const receipts = await this.#storage.view.get(hashes.map((hash) => receiptKey(reference, hash)));
      const finished = new Set(hashes.filter((_, n) => receipts[n] !== undefined));
      let underWay = 0;
      for (const user of users) {
        if (user.hashes.some((hash) => finished.has(hash))) continue;
        const added = await this.#addUser(change, batch, user.uid, user.hashes);
        if (added && batch.complete && !isLast)
          throw conflict('this reference has another list, which is complete; give another reference');
        if (added === 'joined') underWay += 1;
      }
      batch.complete ||= isLast;
      change.dueBy(batch, change.now);
      return underWay;
    });
  }

  async #addUser(
    change: ErasureChange,
    batch: StoredBatch,
    uid: string,
    hashes: readonly string[],
  ): Promise<'new' | 'joined' | undefined> {
    const { reference, mode } = batch;
    const found = await change.readEntries(hashes, mode);
    const known = found.find(isReadable<StoredEntry>);
    if (known?.references.includes(reference)) return undefined;
    // One that cannot be read is replaced: whatever it says, this user is to be erased.
    const at = found.findIndex((entry) => entry instanceof UnreadableRecord);
    const uidHash = known?.uidHash ?? hashes[Math.max(0, at)] ?? '';
    const wasParked = await change.unpark(batch, uidHash);
    if (!wasParked) batch.total += 1;
    batch.overdueAt ??= change.now + this.#overdueAfterMs; // it may have been finished
    if (known?.parked) await change.park(batch, uidHash);
    await change.put(
      known
        ? { ...known, references: [...known.references, reference] }
        : {
            ...UNTRIED,
            uidHash,
            mode,
            id: randomId(),
            sealed: this.#storage.uids.seal(uid, 'erasure', uidHash),
            references: [reference],
            since: change.now,
            dueAt: change.now,
            unknown: at >= 0,
          },
    );
    return known ? 'joined' : 'new';
  }
}

function readBy(reader: string): (batch: StoredBatch) => void {
  return (batch) => {
    if (batch.reader !== reader) throw conflict('another call has begun to read a list for this reference');
  };
}

function assertFits(batch: StoredBatch, mode: ErasureMode): void {
  if (batch.mode !== mode)
    throw conflict(`this reference stands for another mode (${batch.mode}); give another reference`);
  if (batch.cancelling) throw conflict('this reference was cancelled; give another reference');
}

function conflict(problem: string): ErasureError {
  return new ErasureError('ERR_DEBATE_SPACE_ERASURE_CONFLICT', problem);
}
