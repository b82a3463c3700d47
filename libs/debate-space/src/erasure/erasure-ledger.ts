import { ErasureError } from '../errors.js';
import type { Draft } from './draft.js';
import type { ErasureMode, ErasureReceipt, ErasureStatus } from './erasure.js';
import { ErasureBatch, statusOf } from './erasure-batch.js';
import { ErasureEntry } from './erasure-entry.js';
import * as keys from './erasure-keys.js';
import type { ErasureRecords } from './erasure-records.js';
import type { StoredBatch, StoredEntry, StoredReceipt } from './stored-erasure.js';

/** So many users are noted, cancelled or revived in one change. */
export const AT_ONCE = 250;

export interface AskedErasures {
  readonly reference: string;
  readonly mode: ErasureMode;
  readonly requestedBy?: string;
}

/** What was asked for, how it stands, and the receipts of what is done. */
export class ErasureLedger {
  readonly #records: ErasureRecords;
  readonly #overdueAfterMs: number;

  /** @param overdueAfterMs after how long a reference that is not finished is overdue */
  constructor(records: ErasureRecords, overdueAfterMs: number) {
    this.#records = records;
    this.#overdueAfterMs = overdueAfterMs;
  }

  /**
   * Notes that these users are to be erased. Those that the reference has already, done or not, are left as they are.
   * @param isLast whether these are all: from then on they are carried out
   * @returns how many of them were under way for another reference: they are done once
   * @throws {ErasureError} when the reference stands for something else
   */
  async add(asked: AskedErasures, uids: Iterable<string>, isLast: boolean): Promise<number> {
    const { reference, mode, requestedBy } = asked;
    const byHash = new Map([...uids].map((uid) => [this.#records.uidHash(uid), uid]));
    const hashes = [...byHash.keys()];
    return this.#records.change(async (draft) => {
      const now = Date.now();
      const begin = () =>
        ErasureBatch.begin(draft, reference, mode, requestedBy, now, now + this.#overdueAfterMs);
      const batch = (await ErasureBatch.find(draft, reference)) ?? begin();
      assertFits(batch.stored, mode);
      const receipts = await draft.getAll(hashes.map((hash) => keys.receiptKey(reference, hash)));
      const entries = await ErasureEntry.findAll(draft, hashes, mode);
      let underWay = 0;
      for (const [n, hash] of hashes.entries()) {
        const known = entries[n];
        if (receipts[n] !== undefined || known?.stored.references.includes(reference)) continue;
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
    const [batch] = await this.#records.get<StoredBatch>([keys.batchKey(reference)]);
    if (!batch) throw unknown();
    return statusOf(reference, batch, this.#overdueAfterMs, Date.now());
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

  async *receipts(reference: string): AsyncGenerator<ErasureReceipt> {
    await this.status(reference);
    for await (const chunk of this.#records.walk(keys.receiptsOf(reference))) {
      yield* await this.#receipts(chunk.map((key) => ({ reference, uidHash: keys.lastPart(key) })));
    }
  }

  async *receiptsOf(uid: string): AsyncGenerator<ErasureReceipt> {
    const uidHash = this.#records.uidHash(uid);
    for await (const chunk of this.#records.walk(keys.referencesOf(uidHash))) {
      yield* await this.#receipts(chunk.map((key) => ({ reference: keys.lastPart(key), uidHash })));
    }
  }

  async pause(reference: string): Promise<ErasureStatus> {
    return this.#change(reference, (batch) => {
      batch.stored.paused = batch.stored.finishedAt === undefined;
      return Promise.resolve();
    });
  }

  /** Goes on, also with those that were given up. */
  async resume(reference: string): Promise<ErasureStatus> {
    const resumed = await this.#change(reference, (batch) => {
      batch.stored.paused = false;
      batch.dueBy(Date.now());
      return Promise.resolve();
    });
    if (resumed.failed === 0) return resumed;
    for await (const chunk of this.#records.walk(keys.parkedOf(reference), AT_ONCE)) {
      await this.#records.change((draft) => this.#revive(draft, chunk.map(keys.lastPart), resumed.mode));
    }
    return this.status(reference);
  }

  /** Gives up those of which nothing was sent; what may have been carried out goes on. */
  async cancel(reference: string): Promise<ErasureStatus> {
    const { mode, finishedAt } = await this.status(reference);
    if (finishedAt) return this.status(reference);
    const goOn = (batch: ErasureBatch): Promise<void> => {
      Object.assign(batch.stored, { cancelling: true, complete: true, paused: false });
      batch.dueBy(Date.now()); // what may have been carried out
      return Promise.resolve();
    };
    await this.#change(reference, goOn);
    for (const range of [keys.dueOf(reference), keys.parkedOf(reference)]) {
      for await (const chunk of this.#records.walk(range, AT_ONCE)) {
        await this.#change(reference, (batch, draft) =>
          cancelSome(draft, batch, chunk.map(keys.lastPart), mode),
        );
      }
    }
    return this.#change(reference, goOn);
  }

  async #revive(draft: Draft, hashes: readonly string[], mode: ErasureMode): Promise<void> {
    const now = Date.now();
    const batches = new Map<string, ErasureBatch>();
    for (const entry of await ErasureEntry.findAll(draft, hashes, mode)) {
      if (!entry?.stored.parked) continue;
      entry.change({ parked: false, dueAt: now, since: now, failures: 0 });
      for (const reference of entry.stored.references) {
        const batch = batches.get(reference) ?? (await ErasureBatch.find(draft, reference));
        if (!batch) continue;
        batches.set(reference, batch);
        batch.stored.failed -= 1;
        batch.dueBy(now);
      }
    }
    for (const batch of batches.values()) batch.save(now);
  }

  async #change(
    reference: string,
    work: (batch: ErasureBatch, draft: Draft) => Promise<void>,
  ): Promise<ErasureStatus> {
    return this.#records.change(async (draft) => {
      const batch = await ErasureBatch.find(draft, reference);
      if (!batch) throw unknown();
      await work(batch, draft);
      const now = Date.now();
      batch.save(now);
      return statusOf(reference, batch.stored, this.#overdueAfterMs, now);
    });
  }

  async #receipts(
    found: readonly { readonly reference: string; readonly uidHash: string }[],
  ): Promise<readonly ErasureReceipt[]> {
    const receipts = await this.#records.get<StoredReceipt>(
      found.map(({ reference, uidHash }) => keys.receiptKey(reference, uidHash)),
    );
    const batches = await this.#records.get<StoredBatch>(
      found.map(({ reference }) => keys.batchKey(reference)),
    );
    return found.flatMap(({ reference, uidHash }, n) => {
      const [receipt, batch] = [receipts[n], batches[n]];
      if (!receipt || !batch) return []; // its time was over just now
      const { askedAt, doneAt, ...rest } = receipt;
      const { mode, requestedBy } = batch;
      const asked = { reference, mode, ...(requestedBy === undefined ? {} : { requestedBy }), uidHash };
      return [{ ...asked, askedAt: new Date(askedAt), doneAt: new Date(doneAt), ...rest }];
    });
  }
}

/** Those that nothing was sent of, and that are not under way. */
async function cancelSome(
  draft: Draft,
  batch: ErasureBatch,
  hashes: readonly string[],
  mode: ErasureMode,
): Promise<void> {
  for (const entry of await ErasureEntry.findAll(draft, hashes, mode)) {
    if (!entry || entry.stored.unknown || !entry.stored.references.includes(batch.reference)) continue;
    if (entry.stored.parked) batch.stored.failed -= 1;
    batch.stored.cancelled += 1;
    entry.leave(batch.reference);
  }
}

function assertFits(batch: StoredBatch, mode: ErasureMode): void {
  if (batch.mode !== mode) {
    throw new ErasureError(
      'ERR_DEBATE_SPACE_ERASURE_CONFLICT',
      `this reference stands for another mode (${batch.mode}); give a reference of its own`,
    );
  }
  if (batch.cancelling) {
    throw new ErasureError(
      'ERR_DEBATE_SPACE_ERASURE_CONFLICT',
      'this reference was cancelled; give a new one',
    );
  }
}

function unknown(): ErasureError {
  return new ErasureError(
    'ERR_DEBATE_SPACE_UNKNOWN_ERASURE',
    'there is no erasure of this reference here; see DebateSpaceErasures.list()',
  );
}
