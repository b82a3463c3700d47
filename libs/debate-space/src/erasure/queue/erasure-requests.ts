import * as v from 'valibot';
import { isReadable, UnreadableRecord } from 'durable-jobs';
import { ErasureError, invalidArgument } from '../../errors.js';
import { isRunning, randomId, type ErasureChange } from './erasure-change.js';
import * as records from './erasure-records.js';
import type { StoredBatch, StoredEntry } from './erasure-records.js';
import type { ErasureStorage } from './erasure-storage.js';
import type { ErasureMode } from '../../events.js';
import { chunksOf } from '../uid-source.js';

/** The number of users that are added, canceled or retried in one commit. */
export const USERS_PER_COMMIT = 250;

const BATCH_REQUEST = v.object({
  mode: v.picklist(['anonymize', 'delete'], "mode must be 'anonymize' or 'delete'"),
  reference: v.custom<string>(
    records.isReference,
    'reference must be a text of 1 to 128 characters, without control characters, controls of the text direction or ' +
      'lone surrogates',
  ),
  requestedBy: v.optional(
    v.custom<string>(
      (value) => records.isText(value, 256),
      'requestedBy must be a text of 1 to 256 characters, without control characters or lone surrogates',
    ),
  ),
});

/** What a request says beside the uids. */
export type BatchRequest = v.InferOutput<typeof BATCH_REQUEST>;

/** Checks what a request says beside the uids. @throws {@link InvalidArgumentError} */
export function batchRequest(request: BatchRequest): BatchRequest {
  const { mode, reference, requestedBy } = Object(request) as Partial<BatchRequest>;
  const { success, output, issues } = v.safeParse(BATCH_REQUEST, { mode, reference, requestedBy });
  if (!success) throw invalidArgument('requestErasure', issues[0].message);
  return output;
}

const UNTRIED = { attempts: 0, failures: 0, rejections: 0, parked: false } as const;

/** What a call has added. */
interface Added {
  /** Whether it has added a user, or the end of a list. */
  readonly isChange: boolean;
  /** How many of its users were under way for another reference: they are erased once. */
  readonly underWay: number;
}

/** Adds the users to be erased. */
export class ErasureRequests {
  constructor(private readonly storage: ErasureStorage) {}

  /** One user. */
  async add(request: BatchRequest, uid: string): Promise<Added> {
    return this.#add(request, [uid], true, (batch) => {
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
    const reader = randomId();
    const takeOver = (batch: StoredBatch): void => {
      batch.reader = reader;
    };
    const readByOther = (batch: StoredBatch): void => {
      if (batch.reader !== reader) throw conflict('another call has begun to read a list for this reference');
    };
    let isBegun = false;
    let isChange = false;
    for await (const some of chunksOf(uids, USERS_PER_COMMIT)) {
      const added = await this.#add(request, some, false, isBegun ? readByOther : takeOver);
      isBegun = true;
      isChange ||= added.isChange;
    }
    if (!isBegun) throw invalidArgument('requestErasure', 'the list has no user');
    return (await this.#add(request, [], true, readByOther)).isChange || isChange;
  }

  /** The reference for which this erasure is under way and needs nobody's help. */
  async underWay(uid: string, mode: ErasureMode): Promise<string | undefined> {
    const change = this.storage.look();
    for (const entry of await change.readEntries(this.storage.uids.hashes(uid), mode)) {
      for (const reference of isReadable(entry) && !entry.parked ? entry.references : []) {
        const batch = await change.findBatch(reference);
        if (batch && isRunning(batch) && !batch.canceling) return reference;
      }
    }
    return undefined;
  }

  /** How many of these users' erasures are under way. */
  async countUnderWay(uids: readonly string[], modes: readonly ErasureMode[]): Promise<number> {
    const { uids: cipher, view } = this.storage;
    const keysOf = uids.map((uid) =>
      cipher.hashes(uid).flatMap((hash) => modes.map((mode) => records.entryKey(hash, mode))),
    );
    const keys = keysOf.flat();
    const texts = await view.get(keys);
    const found = new Set(keys.filter((_, n) => texts[n] !== undefined));
    return keysOf.filter((some) => some.some((key) => found.has(key))).length;
  }

  /**
   * Users that the reference has already, done or not, are left as they are.
   * @param isLast whether these are all: from then on they are carried out
   * @throws {@link ErasureError} when the reference stands for something else, or when its record cannot be read
   */
  async #add(
    request: BatchRequest,
    uids: readonly string[],
    isLast: boolean,
    check: (batch: StoredBatch) => void,
  ): Promise<Added> {
    const users = [...new Set(uids)].map((uid) => ({ uid, hashes: this.storage.uids.hashes(uid) }));
    const hashes = users.flatMap((user) => user.hashes);
    const { reference, mode, requestedBy } = request;
    return this.storage.change(reference, async (change) => {
      const batch = await change.batchFor(request);
      if (batch.mode !== mode)
        throw conflict(`this reference stands for another mode (${batch.mode}); give another reference`);
      if (batch.canceling) throw conflict('this reference was canceled; give another reference');
      check(batch);
      await change.readEntries(hashes, mode); // all in one round trip
      // Not checked by the commit: whatever changes a receipt changes the batch, too.
      const receipts = await this.storage.view.get(hashes.map((hash) => records.receiptKey(reference, hash)));
      const finished = new Set(hashes.filter((_, n) => receipts[n] !== undefined));
      let underWay = 0;
      let isChange = isLast && !batch.complete;
      for (const user of users) {
        if (user.hashes.some((hash) => finished.has(hash))) continue;
        const added = await this.#addUser(change, batch, user.uid, user.hashes);
        if (added && batch.complete && !isLast)
          throw conflict('this reference has another list, which is complete; give another reference');
        // It was finished: what is requested now is not as old, nor by the same person.
        if (added && batch.finishedSince !== undefined)
          Object.assign(batch, { requestedBy, askedAt: Date.now(), since: change.now });
        if (added === 'joined') underWay += 1;
        isChange ||= added !== undefined;
      }
      batch.complete ||= isLast;
      change.dueBy(batch, change.now);
      return { isChange, underWay };
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
    batch.overdueAt ??= change.now + this.storage.overdueAfterMs; // it may have been finished
    if (known?.parked) await change.park(batch, uidHash);
    const added = known ?? {
      ...UNTRIED,
      uidHash,
      mode,
      id: randomId(),
      references: [],
      since: change.now,
      dueAt: change.now,
      unknown: at >= 0,
    };
    await change.put(this.storage.seal({ ...added, references: [...added.references, reference] }, uid));
    return known ? 'joined' : 'new';
  }
}

function conflict(problem: string): ErasureError {
  return new ErasureError('ERR_DEBATE_SPACE_ERASURE_CONFLICT', problem);
}
