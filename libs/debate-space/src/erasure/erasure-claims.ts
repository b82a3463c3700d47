import { LEASE_MS } from '../jobs/job-queue.js';
import { isReadable, type ReadRecord, UnreadableRecord } from '../storage/record-type.js';
import { isRunning } from './erasure-batch.js';
import { randomId, type ErasureChange } from './erasure-change.js';
import type { ErasureClaim } from './erasure-claim.js';
import * as keys from './erasure-keys.js';
import type { ErasureStorage } from './erasure-storage.js';
import { BATCH, type StoredBatch, type StoredEntry } from './stored-erasure.js';

/** Nothing waits longer: a moment that is farther ahead, or a lease that ended longer ago, is of a clock that was wrong. */
export const MAX_WAIT_MS = 86_400_000;
const AFTER_THE_DELETION_MS = 60_000;
const UNREADABLE_BATCH_MS = 60_000;
const MAX_ROUNDS = 100;
const MAX_USERS = 250;
const UNREADABLE_HINT =
  'the record of this user cannot be read: it is damaged, or was written by a newer version of nestjs-debate-space or ' +
  'with another storageKey. Run that version or restore that key and retry the reference, or cancel it';

interface Due {
  readonly row: string;
  readonly uidHash: string;
  readonly at: number;
}

/** Takes what is due. */
export class ErasureClaims {
  readonly #storage: ErasureStorage;

  constructor(storage: ErasureStorage) {
    this.#storage = storage;
  }

  /** At most `limit`. All references that are due get a share, and then stand behind those that got none. */
  async claim(limit: number): Promise<readonly ErasureClaim[]> {
    const claims: ErasureClaim[] = [];
    for (let round = 0; round < MAX_ROUNDS && claims.length < limit; round += 1) {
      const left = Math.min(limit - claims.length, MAX_USERS);
      const due = keys.until('erasureschedule', this.#storage.now());
      const rows = await this.#storage.view.range(...due, { limit: left });
      if (rows.length === 0) break;
      const share = (n: number) => Math.floor(left / rows.length) + Number(n < left % rows.length);
      const taken = await Promise.allSettled(rows.map(([row], n) => this.#ofReference(row, share(n))));
      for (const result of taken) if (result.status === 'fulfilled') claims.push(...result.value);
      const failed = taken.find((result) => result.status === 'rejected');
      if (failed && claims.length === 0) throw failed.reason;
      if (failed) break; // what is claimed must not wait for what failed
    }
    return claims;
  }

  #ofReference(row: string, limit: number): Promise<readonly ErasureClaim[]> {
    const reference = keys.lastPart(row);
    return this.#storage.change(reference, async (change) => {
      const { transaction, now } = change;
      const batchKey = keys.batchKey(reference);
      const [isThere] = await transaction.getAll([row, batchKey]);
      if (isThere === undefined) return []; // another process was faster
      transaction.set(row, undefined);
      const found = await transaction.read(BATCH, batchKey);
      if (found instanceof UnreadableRecord)
        transaction.set(keys.momentKey('erasureschedule', now + UNREADABLE_BATCH_MS, reference), '');
      const batch = await change.findBatch(reference);
      if (!batch) return [];
      // The row may be one that was left while the batch could not be read: then its own may be missing.
      if (batch.dueAt !== undefined) await transaction.get(keys.momentKey('erasureschedule', batch.dueAt, reference)); // prettier-ignore
      change.edit(batch);
      return isRunning(batch) ? this.#ofBatch(change, batch, limit) : [];
    });
  }

  async #ofBatch(change: ErasureChange, batch: StoredBatch, limit: number): Promise<readonly ErasureClaim[]> {
    const { now } = change;
    const rows = await this.#storage.view.range(...keys.dueOf(batch.reference), { limit: limit + 1 });
    const waiting = rows.map(([row]) => ({ row, uidHash: keys.lastPart(row), at: keys.momentOf(row) }));
    const isDue = ({ at }: Due): boolean => at <= now || at > now + MAX_WAIT_MS;
    const due = waiting.slice(0, limit).filter(isDue);
    const entries = await change.readEntries(due.map(({ uidHash }) => uidHash), batch.mode); // prettier-ignore
    const deletions = batch.mode === 'anonymize' ? await this.#deletions(change, entries) : undefined;
    const claims: ErasureClaim[] = [];
    const next = waiting.filter((one) => !due.includes(one)).map(({ at }) => at);
    for (const [n, one] of due.entries()) {
      const entry = entries[n];
      if (!isReadable(entry) || !entry.references.includes(batch.reference)) {
        if (await this.#parkUnreadable(change, batch, one)) claims.push(unreadable(batch, one.uidHash));
        continue;
      }
      if (entry.parked || entry.dueAt !== one.at) {
        await this.#removeLeftover(change, batch, one);
        continue;
      }
      const claim = await this.#take(change, batch, entry, deletions?.get(entry) ?? []);
      if (claim) claims.push(claim);
      if (entry.references.includes(batch.reference)) next.push(entry.dueAt);
    }
    batch.dueAt = next.length === 0 ? undefined : Math.max(now, Math.min(...next)); // behind the others that are due
    return claims;
  }

  /** For each entry of an anonymization: the deletions of the same user, under the hashes of all storage keys. */
  async #deletions(
    change: ErasureChange,
    entries: readonly ReadRecord<StoredEntry>[],
  ): Promise<ReadonlyMap<StoredEntry, readonly StoredEntry[]>> {
    const { uids } = this.#storage;
    const users = entries.filter(isReadable<StoredEntry>).map((entry) => {
      const uid = uids.open(entry.sealed, 'erasure', entry.uidHash);
      return { entry, hashes: uid === undefined ? [entry.uidHash] : uids.hashes(uid) };
    });
    await change.readEntries(
      users.flatMap(({ hashes }) => hashes),
      'delete',
    ); // in one round trip
    const found = new Map<StoredEntry, readonly StoredEntry[]>();
    for (const { entry, hashes } of users)
      found.set(entry, (await change.readEntries(hashes, 'delete')).filter(isReadable<StoredEntry>));
    return found;
  }

  async #take(
    change: ErasureChange,
    batch: StoredBatch,
    entry: StoredEntry,
    deletions: readonly StoredEntry[],
  ): Promise<ErasureClaim | undefined> {
    const { now } = change;
    const { uidHash, mode, unknown, lease } = entry;
    if (batch.cancelling && !unknown) {
      batch.cancelled += 1;
      await change.leave(entry, batch.reference);
      return undefined;
    }
    entry.since = Math.min(entry.since, now);
    // Its process may be alive, by a clock that is years behind.
    const isHeld = lease !== undefined && entry.dueAt < now - MAX_WAIT_MS;
    // Anonymized first, nobody could delete the contributions any more: the service would not know the uid.
    const waitMs = isHeld ? LEASE_MS : (await anyWanted(change, deletions)) ? AFTER_THE_DELETION_MS : 0;
    entry.dueAt = now + (waitMs || LEASE_MS);
    if (waitMs === 0) entry.lease = randomId();
    else if (!isHeld) entry.lease = undefined;
    await change.put(entry);
    if (waitMs > 0) return undefined;

    batch.started = true;
    const [earliest = ''] = entry.references;
    const requestedBy = (await change.findBatch(earliest))?.requestedBy;
    const uid = this.#storage.uids.open(entry.sealed, 'erasure', uidHash);
    const since = [entry.since, batch.resumedSince ?? 0].filter((moment) => moment <= now);
    return {
      id: entry.id,
      uidHash,
      ...(uid === undefined ? { hint: UNREADABLE_HINT } : { uid }),
      lease: entry.lease ?? '',
      mode,
      references: [...entry.references],
      ...(requestedBy === undefined ? {} : { requestedBy }),
      attempts: entry.attempts,
      failures: entry.failures,
      unknownBefore: unknown,
      rejections: entry.rejections,
      ageMs: now - Math.max(...since),
    };
  }

  /** What cannot be read cannot be claimed either. @returns whether it was parked by this change */
  async #parkUnreadable(change: ErasureChange, batch: StoredBatch, { row, uidHash }: Due): Promise<boolean> {
    if ((await change.transaction.get(row)) === undefined) return false; // another process was faster
    change.transaction.set(row, undefined);
    await change.park(batch, uidHash);
    return true;
  }

  /** The row of an entry that could not be read and was replaced by another, which was counted as well. */
  async #removeLeftover(change: ErasureChange, batch: StoredBatch, { row }: Due): Promise<void> {
    if ((await change.transaction.get(row)) === undefined) return; // another process was faster
    change.transaction.set(row, undefined);
    batch.total -= 1;
  }
}

async function anyWanted(change: ErasureChange, deletions: readonly StoredEntry[]): Promise<boolean> {
  for (const deletion of deletions) if (await change.isWanted(deletion)) return true;
  return false;
}

function unreadable({ reference, mode, requestedBy }: StoredBatch, uidHash: string): ErasureClaim {
  return {
    id: '',
    uidHash,
    hint: UNREADABLE_HINT,
    lease: '',
    mode,
    references: [reference],
    ...(requestedBy === undefined ? {} : { requestedBy }),
    attempts: 0,
    failures: 0,
    unknownBefore: false,
    rejections: 0,
    ageMs: 0,
  };
}
