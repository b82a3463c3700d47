import { LEASE_MS } from '../jobs/job-queue.js';
import { isReadable, UnreadableRecord } from '../storage/record-type.js';
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
    const due = waiting.slice(0, limit).filter(({ at }) => at <= now || at > now + MAX_WAIT_MS);
    const entries = await change.readEntries(due.map(({ uidHash }) => uidHash), batch.mode); // prettier-ignore
    const claims: ErasureClaim[] = [];
    const next = waiting.filter((one) => !due.includes(one)).map(({ at }) => at);
    for (const [n, one] of due.entries()) {
      const entry = entries[n];
      const isOurs = isReadable(entry) && entry.references.includes(batch.reference);
      if (!isOurs || entry.parked || entry.dueAt !== one.at) {
        if ((await change.transaction.get(one.row)) === undefined) continue; // another process was faster
        change.transaction.set(one.row, undefined);
        if (!isReadable(entry) || entry.parked || entry.dueAt !== one.at)
          change.transaction.set(keys.waitKey(one.at, one.uidHash, batch.mode), undefined);
        // What cannot be read cannot be claimed either. One that was replaced by another, which was counted as well, is not.
        if (isOurs || !(await change.park(batch, one.uidHash))) batch.total -= 1;
        else claims.push(claimOf({ ...UNREAD, uidHash: one.uidHash, mode: batch.mode, references: [batch.reference] }, { requestedBy: batch.requestedBy, ageMs: 0 })); // prettier-ignore
        continue;
      }
      await change.unpark(batch, one.uidHash); // its record was repaired
      const claim = await this.#take(change, batch, entry);
      if (claim) claims.push(claim);
      if (entry.references.includes(batch.reference)) next.push(entry.dueAt);
    }
    batch.dueAt = next.length === 0 ? undefined : Math.max(now, Math.min(...next)); // behind the others that are due
    return claims;
  }

  async #take(
    change: ErasureChange,
    batch: StoredBatch,
    entry: StoredEntry,
  ): Promise<ErasureClaim | undefined> {
    // prettier-ignore
    const { now } = change;
    const uid = this.#storage.uids.open(entry.sealed, 'erasure', entry.uidHash);
    if (batch.cancelling && !entry.unknown) {
      batch.cancelled += 1;
      await change.leave(entry, batch.reference);
      return undefined;
    }
    const since = Math.min(entry.since, now);
    if (this.#storage.isSteady()) entry.since = since;
    // Its process may be alive, by a clock that is years off.
    const isHeld = entry.lease !== undefined && Math.abs(entry.dueAt - now) > MAX_WAIT_MS;
    const isBehind = !isHeld && (await this.#isToBeDeleted(change, entry, uid));
    entry.dueAt = now + (isBehind ? AFTER_THE_DELETION_MS : LEASE_MS);
    if (!isHeld) entry.lease = isBehind ? undefined : randomId();
    await change.put(entry);
    if (isHeld || isBehind) return undefined;

    batch.started = true;
    const [earliest = ''] = entry.references;
    const requestedBy = (await change.findBatch(earliest))?.requestedBy;
    const begun = [since, batch.resumedSince ?? 0].filter((moment) => moment <= now);
    return claimOf(entry, { uid, requestedBy, ageMs: now - Math.max(...begun) });
  }

  /** Anonymized first, nobody could delete the contributions any more: the service would not know the uid. */
  async #isToBeDeleted(
    change: ErasureChange,
    { mode, uidHash }: StoredEntry,
    uid?: string,
  ): Promise<boolean> {
    // prettier-ignore
    if (mode === 'delete') return false;
    const hashes = uid === undefined ? [uidHash] : this.#storage.uids.hashes(uid);
    for (const deletion of await change.readEntries(hashes, 'delete'))
      if (isReadable(deletion) && (await change.isWanted(deletion))) return true;
    return false;
  }
}

const UNREAD = { id: '', attempts: 0, failures: 0, unknown: false, rejections: 0 } as const;

function claimOf(
  entry: Omit<StoredEntry, 'sealed' | 'since' | 'dueAt' | 'parked'>,
  rest: Pick<ErasureClaim, 'uid' | 'requestedBy' | 'ageMs'>,
): ErasureClaim {
  const { id, uidHash, mode, lease = '', references, attempts, failures, unknown: unknownBefore, rejections } = entry; // prettier-ignore
  const claim = { id, uidHash, mode, lease, references, attempts, failures, unknownBefore, rejections, ...rest }; // prettier-ignore
  return rest.uid === undefined ? { ...claim, hint: UNREADABLE_HINT } : claim;
}
