import { ErasureError } from '../errors.js';
import { isReference } from './asked-erasures.js';
import type { ErasureMode, ErasureStatus } from './erasure.js';
import { ErasureBatch, statusOf } from './erasure-batch.js';
import { ErasureEntry } from './erasure-entry.js';
import * as keys from './erasure-keys.js';
import type { ErasureRecords } from './erasure-records.js';
import type { StoredBatch, StoredEntry } from './stored-erasure.js';

/** So many users are noted, cancelled or revived in one change. */
export const AT_ONCE = 250;

export interface AskedErasures {
  readonly reference: string;
  readonly mode: ErasureMode;
  readonly requestedBy?: string;
}

/** What was asked for, and how it stands. */
export class ErasureLedger {
  readonly #records: ErasureRecords;
  readonly #overdueAfterMs: number;

  /** @param overdueAfterMs after how long a reference that is not finished is overdue */
  constructor(records: ErasureRecords, overdueAfterMs: number) {
    this.#records = records;
    this.#overdueAfterMs = overdueAfterMs;
  }

  /** One user. @returns whether the same was under way for another reference: it is done once */
  async add(asked: AskedErasures, uid: string): Promise<boolean> {
    return (
      (await this.#add(asked, [uid], true, (batch) => {
        if (!batch.complete && batch.reader !== undefined) throw conflict('this reference has a list that is not read to its end; give another one'); // prettier-ignore
      })) > 0
    );
  }

  /** From now on `reader` reads the list of the reference, and nobody else. */
  async beginList(asked: AskedErasures, reader: string): Promise<void> {
    await this.#add(asked, [], false, (batch) => {
      batch.reader = reader;
    });
  }

  /** Some of a list; nothing of it is carried out before the end. */
  async addSome(asked: AskedErasures, reader: string, uids: readonly string[]): Promise<void> {
    await this.#add(asked, uids, false, readBy(reader));
  }

  async endList(asked: AskedErasures, reader: string): Promise<void> {
    await this.#add(asked, [], true, readBy(reader));
  }

  /**
   * Those that the reference has already, done or not, are left as they are.
   * @param isLast whether these are all: from then on they are carried out
   * @param check what the batch must be
   * @returns how many of them were under way for another reference
   * @throws {ErasureError} when the reference stands for something else
   */
  async #add(
    asked: AskedErasures,
    uids: readonly string[],
    isLast: boolean,
    check: (batch: StoredBatch) => void,
  ): Promise<number> {
    const { reference, mode, requestedBy } = asked;
    const byHash = new Map(uids.map((uid) => [this.#records.uidHash(uid), uid]));
    const hashes = [...byHash.keys()];
    return this.#records.change(async (draft) => {
      const now = Date.now();
      const begin = () =>
        ErasureBatch.begin(draft, reference, mode, requestedBy, now, now + this.#overdueAfterMs);
      const batch = (await ErasureBatch.find(draft, reference)) ?? begin();
      assertFits(batch.stored, mode);
      check(batch.stored);
      const receipts = await draft.getAll(hashes.map((hash) => keys.receiptKey(reference, hash)));
      const entries = await ErasureEntry.findAll(draft, hashes, mode);
      let underWay = 0;
      for (const [n, hash] of hashes.entries()) {
        const known = entries[n];
        if (receipts[n] !== undefined || known?.stored.references.includes(reference)) continue;
        if (batch.stored.complete && !isLast) throw conflict('this reference has another list, which is complete; give a new one'); // prettier-ignore
        if (known) underWay += 1;
        const entry =
          known ?? ErasureEntry.begin(draft, hash, mode, this.#records.seal(byHash.get(hash) ?? ''), now);
        entry.change({ references: [...entry.stored.references, reference] });
        batch.stored.total += 1;
        if (entry.stored.parked) batch.stored.failed += 1;
        if (batch.stored.warnAt === undefined) batch.warnAt(now + this.#overdueAfterMs); // it was finished
      }
      batch.stored.complete ||= isLast;
      batch.dueBy(now);
      batch.save(now);
      return underWay;
    });
  }

  /** The reference for which this is under way and will be done without anybody's help. */
  async underWay(uid: string, mode: ErasureMode): Promise<string | undefined> {
    const [entry] = await this.#records.get<StoredEntry>([keys.entryKey(this.#records.uidHash(uid), mode)]);
    if (!entry || entry.parked) return undefined;
    const batches = await this.#records.get<StoredBatch>(entry.references.map(keys.batchKey));
    return entry.references.find((_, n) => {
      const batch = batches[n];
      return batch?.complete && !batch.paused && !batch.cancelling;
    });
  }

  /** How many of these users' erasures are under way. */
  async countUnderWay(uids: readonly string[], modes: readonly ErasureMode[]): Promise<number> {
    const hashes = uids.map((uid) => this.#records.uidHash(uid));
    const entries = hashes.flatMap((hash) => modes.map((mode) => keys.entryKey(hash, mode)));
    const found = await this.#records.get(entries);
    return hashes.filter((_, n) => modes.some((_mode, m) => found[n * modes.length + m] !== undefined))
      .length;
  }

  /** @throws {ErasureError} when there is no such reference */
  async status(reference: string): Promise<ErasureStatus> {
    if (!isReference(reference)) throw unknownErasure();
    const [batch] = await this.#records.get<StoredBatch>([keys.batchKey(reference)]);
    if (!batch) throw unknownErasure();
    return statusOf(reference, batch, this.#overdueAfterMs, Date.now());
  }

  /** When the oldest reference that is not over was asked for; `undefined` when all are. */
  async oldestOpen(): Promise<number | undefined> {
    const [key] = await this.#records.keys(keys.startingWith('o/'), 1);
    return key === undefined ? undefined : keys.atAndReference(key).at;
  }

  /** The newest first. */
  async *list(): AsyncGenerator<ErasureStatus> {
    for await (const chunk of this.#records.walk(keys.startingWith('l/'))) {
      const references = chunk.map((key) => keys.atAndReference(key).reference);
      const batches = await this.#records.get<StoredBatch>(references.map(keys.batchKey));
      for (const [n, batch] of batches.entries()) {
        if (batch) yield statusOf(references[n] ?? '', batch, this.#overdueAfterMs, Date.now());
      }
    }
  }
}

function readBy(reader: string): (batch: StoredBatch) => void {
  return (batch) => {
    if (batch.reader !== reader) throw conflict('another call has begun to read a list for this reference');
  };
}

function assertFits(batch: StoredBatch, mode: ErasureMode): void {
  if (batch.mode !== mode) {
    throw conflict(`this reference stands for another mode (${batch.mode}); give a reference of its own`);
  }
  if (batch.cancelling) throw conflict('this reference was cancelled; give a new one');
}

function conflict(problem: string): ErasureError {
  return new ErasureError('ERR_DEBATE_SPACE_ERASURE_CONFLICT', problem);
}

function unknownErasure(): ErasureError {
  return new ErasureError(
    'ERR_DEBATE_SPACE_UNKNOWN_ERASURE',
    'there is no erasure of this reference here; see DebateSpaceErasures.list()',
  );
}
