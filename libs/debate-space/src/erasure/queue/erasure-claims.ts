import { isReadable, LEASE_MS, UnreadableRecord } from 'durable-jobs';
import { isRunning, MAX_WAIT_MS, randomId, type ErasureChange } from './erasure-change.js';
import * as records from './erasure-records.js';
import type { StoredBatch, StoredEntry } from './erasure-records.js';
import type { ErasureStorage } from './erasure-storage.js';

const AFTER_THE_DELETION_MS = 60_000;
const UNREADABLE_BATCH_MS = 60_000;
const MAX_ROUNDS = 100;
const MAX_USERS = 250;
const UNREADABLE_HINT =
  'the record of this user cannot be read: it is damaged, or was written by a newer version of nestjs-debate-space or ' +
  'with another storageKey. Run that version or restore that key and retry the reference, or cancel it';
const UNREADABLE = {
  id: '',
  lease: '',
  attempts: 0,
  failures: 0,
  unknown: false,
  rejections: 0,
  hint: UNREADABLE_HINT,
};

type ClaimedEntry = Omit<StoredEntry, 'sealed' | 'sealedFor' | 'since' | 'dueAt' | 'parked' | 'cause'>;

/** One user's erasure that this process carries out before its lease ends: its entry as it was then. */
export interface ErasureClaim extends Readonly<ClaimedEntry> {
  readonly lease: string;
  /** Absent when it cannot be read: then it is to be parked, with the hint. */
  readonly uid?: string | undefined;
  /** Who asked, of the earliest reference. */
  readonly requestedBy?: string | undefined;
  /** Milliseconds since it was requested, retried or resumed, by the clock of the storage; `erasure.giveUpAfterMs` bounds it. */
  readonly ageMs: number;
}

/** Hears of references that get no claim. */
export interface ClaimReports {
  /** Its last users were given up instead: it was canceled. */
  reportEnd(batch: StoredBatch): void;
  /** Its record cannot be read. */
  reportUnreadable(reference: string, record: UnreadableRecord): void;
}

/** Takes at most `limit`. All references that are due get a share, and then stand behind those that got none. */
export async function claimErasures(
  storage: ErasureStorage,
  limit: number,
  reports: ClaimReports,
): Promise<readonly ErasureClaim[]> {
  const claims: ErasureClaim[] = [];
  for (let round = 0; round < MAX_ROUNDS && claims.length < limit; round += 1) {
    const left = Math.min(limit - claims.length, MAX_USERS);
    const due = records.timesOf('due', 0, storage.now() + 1);
    const rows = await storage.view.range(...due, { limit: left });
    if (rows.length === 0) break;
    const share = (n: number) => Math.floor(left / rows.length) + Number(n < left % rows.length);
    const taken = await Promise.allSettled(rows.map(([row], n) => claimOf(storage, row, share(n))));
    for (const result of taken) {
      if (result.status === 'rejected') continue;
      claims.push(...result.value.claims);
      for (const batch of result.value.finished) reports.reportEnd(batch);
      const { reference, unreadable } = result.value;
      if (unreadable) reports.reportUnreadable(reference, unreadable);
    }
    const failed = taken.find((result) => result.status === 'rejected');
    if (failed && claims.length === 0) throw failed.reason;
    if (failed) break; // what is claimed must not wait for what failed
  }
  return claims;
}

interface Claimed {
  readonly reference: string;
  readonly claims: readonly ErasureClaim[];
  readonly finished: readonly StoredBatch[];
  readonly unreadable?: UnreadableRecord;
}

/** @param row leads to the reference */
function claimOf(storage: ErasureStorage, row: string, limit: number): Promise<Claimed> {
  const reference = records.lastPart(row);
  const nothing = { reference, claims: [], finished: [] };
  return storage.change(reference, async (change) => {
    const { transaction, now } = change;
    const [isThere] = await transaction.getAll([row, records.batchKey(reference)]);
    if (isThere === undefined) return nothing; // another process was faster
    transaction.set(row, undefined);
    const batch = await change.readBatch(reference);
    if (batch instanceof UnreadableRecord) {
      transaction.set(records.timeKey('due', now + UNREADABLE_BATCH_MS, reference), '');
      return { ...nothing, unreadable: batch };
    }
    if (!batch) return nothing;
    // The row may be one that was left while the batch could not be read: then its own may be missing.
    if (batch.dueAt !== undefined) await transaction.get(records.timeKey('due', batch.dueAt, reference));
    change.edit(batch);
    const claims = isRunning(batch) ? await claimUsers(change, batch, limit) : [];
    return { reference, claims, finished: await change.save() };
  });
}

async function claimUsers(
  change: ErasureChange,
  batch: StoredBatch,
  limit: number,
): Promise<readonly ErasureClaim[]> {
  const { now, transaction, storage } = change;
  const { reference, mode, requestedBy } = batch;
  const latest = now + MAX_WAIT_MS;
  const [soon, wrong] = await Promise.all([
    storage.view.range(...records.dueOf(reference, 0, latest), { limit: limit + 1 }),
    storage.view.range(...records.dueOf(reference, latest), { limit: limit + 1 }),
  ]);
  // What a clock years ahead has put off for years is due, too.
  const waiting = [...soon, ...wrong].map(([row]) => ({
    row,
    uidHash: records.lastPart(row),
    at: records.momentOf(row),
  }));
  const isDue = ({ at }: { at: number }) => at <= now || at >= latest;
  const due = waiting.filter(isDue).slice(0, limit);
  const next = waiting.filter((one) => !due.includes(one)).map((one) => (isDue(one) ? now : one.at));
  const hashes = due.map(({ uidHash }) => uidHash);
  const entries = await change.readEntries(hashes, mode);
  const claims: ErasureClaim[] = [];
  for (const [n, { row, uidHash, at }] of due.entries()) {
    const entry = entries[n];
    const isOurs = isReadable(entry) && entry.references.includes(reference);
    if (!isOurs || entry.parked || entry.dueAt !== at) {
      if ((await transaction.get(row)) === undefined) continue; // another process was faster
      transaction.set(row, undefined);
      // What cannot be read cannot be claimed either. One that was replaced by another, which was counted as well, is not.
      if (isOurs || !(await change.park(batch, uidHash))) batch.total -= 1;
      else claims.push({ ...UNREADABLE, uidHash, mode, references: [reference], requestedBy, ageMs: 0 });
      continue;
    }
    await change.unpark(batch, uidHash); // its record was repaired
    const claim = await claimUser(change, batch, entry);
    if (claim) claims.push(claim);
    if (entry.references.includes(reference)) next.push(entry.dueAt);
  }
  batch.dueAt = next.length === 0 ? undefined : Math.max(now, Math.min(...next)); // behind the others that are due
  return claims;
}

async function claimUser(
  change: ErasureChange,
  batch: StoredBatch,
  entry: StoredEntry,
): Promise<ErasureClaim | undefined> {
  const { now, storage } = change;
  if (batch.canceling && !entry.unknown) {
    batch.canceled += 1;
    await change.leave(entry, batch.reference);
    return undefined;
  }
  const uid = storage.open(entry);
  const since = Math.min(entry.since, now);
  if (storage.isSteady()) entry.since = since;
  // Its process may be alive, by a clock that is years off.
  const isHeld = entry.lease !== undefined && Math.abs(entry.dueAt - now) > MAX_WAIT_MS;
  const isBehind = !isHeld && (await isToBeDeleted(change, { ...entry, uid }));
  const lease = randomId();
  entry.dueAt = now + (isBehind ? AFTER_THE_DELETION_MS : LEASE_MS);
  if (!isHeld) entry.lease = isBehind ? undefined : lease;
  await change.put(entry);
  if (isHeld || isBehind) return undefined;

  batch.started = true;
  const [earliest = ''] = entry.references;
  const requestedBy = (await change.findBatch(earliest))?.requestedBy;
  const begun = [since, batch.resumedSince ?? 0].filter((moment) => moment <= now);
  const hint = uid === undefined ? UNREADABLE_HINT : undefined;
  return { ...entry, lease, uid, hint, requestedBy, ageMs: now - Math.max(...begun) };
}

/**
 * Whether an anonymization has to wait for the deletion of the same user. Anonymized first, nobody could delete the
 * contributions any more: the service would not know the uid.
 */
export async function isToBeDeleted(
  change: ErasureChange,
  { mode, uid, uidHash }: Pick<ErasureClaim, 'mode' | 'uid' | 'uidHash'>,
): Promise<boolean> {
  if (mode === 'delete') return false;
  const hashes = uid === undefined ? [uidHash] : change.storage.uids.hashes(uid);
  for (const deletion of await change.readEntries(hashes, 'delete'))
    if (isReadable(deletion) && (await change.isWanted(deletion))) return true;
  return false;
}
