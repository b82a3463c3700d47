import { type JobQueue, LEASE_MS } from 'durable-jobs';
import type { ErasureChange, ErasureEnd } from './erasure-change.js';
import { claimErasures, isToBeDeleted, type ErasureClaim } from './erasure-claims.js';
import type { ErasureMaintenance } from './erasure-maintenance.js';
import * as records from './erasure-records.js';
import type { StoredBatch, StoredEntry } from './erasure-records.js';
import type { ErasureStorage } from './erasure-storage.js';
import { GatheredChanges } from './gathered-changes.js';

/** What became of an attempt that did not bring the end. */
export interface Setback {
  readonly cause: string;
  /** Whether this attempt may have been carried out. */
  readonly unknown: boolean;
  /** Whether the operation was sent. */
  readonly sent: boolean;
  /** How many of the logouts before it the service has answered with 400. */
  readonly rejections: number;
}

export interface FinishedErasure {
  readonly attempts: number;
  readonly references: readonly string[];
  readonly finished: readonly StoredBatch[];
}

/** The erasures to carry out. A claim whose lease was lost changes nothing – except by {@link finish}. */
export class ErasureQueue implements JobQueue<ErasureClaim> {
  readonly #changes: GatheredChanges;

  constructor(
    private readonly storage: ErasureStorage,
    private readonly maintenance: ErasureMaintenance,
  ) {
    this.#changes = new GatheredChanges(storage);
  }

  claim(limit: number): Promise<readonly ErasureClaim[]> {
    return claimErasures(this.storage, limit, this.maintenance);
  }

  renew(claims: readonly ErasureClaim[]): Promise<void> {
    return this.#changeAll(claims, (change, entry) => {
      entry.dueAt = change.now + LEASE_MS;
    });
  }

  giveBack(claims: readonly ErasureClaim[]): Promise<void> {
    return this.#changeAll(claims, (change, entry) => release(change, entry, 0));
  }

  async nextDueMs(): Promise<number | undefined> {
    const [first] = await this.storage.view.range(...records.timesOf('due'), { limit: 1 });
    return first && records.momentOf(first[0]) - this.storage.now();
  }

  maintain(): Promise<void> {
    return this.maintenance.run();
  }

  onChange(listener: () => void): () => void {
    return this.storage.onChange(({ isMoreDue }) => {
      if (isMoreDue) listener();
    });
  }

  /** Whether a claim is as old, by a clock that can be trusted. */
  isLate(ageMs: number, limitMs: number): boolean {
    return ageMs >= limitMs && this.storage.isSteady(limitMs);
  }

  /**
   * To be called immediately before the request is sent: from then on the erasure may have been carried out, whatever is
   * heard of it.
   * @returns whether it may be sent; `false` when it was canceled or paused meanwhile, when the same user is to be deleted
   * now, or when the lease was lost
   */
  markSending(claim: ErasureClaim): Promise<boolean> {
    return this.#changes.make(referenceOf(claim), keysOf(claim), async (change) => {
      const entry = await claimedEntry(change, claim);
      if (!entry || !(await change.isWanted(entry)) || (await isToBeDeleted(change, claim))) return false;
      await change.put({ ...entry, attempts: entry.attempts + 1, unknown: true });
      return true;
    });
  }

  /** Makes it due again after the delay. */
  retry(claim: ErasureClaim, setback: Setback, delayMs: number): Promise<void> {
    return this.#changeAll([claim], (change, entry) => {
      note(entry, claim, setback);
      return release(change, entry, delayMs);
    });
  }

  /** Stops trying, until somebody retries or cancels it. */
  park(claim: ErasureClaim, setback: Setback, hint: string): Promise<void> {
    return this.#changeAll([claim], async (change, entry) => {
      note(entry, claim, setback);
      for (const batch of await change.batchesOf(entry)) await change.park(batch, entry.uidHash);
      Object.assign(entry, { parked: true, hint, lease: undefined });
    });
  }

  /**
   * Ends it, with a receipt for each of its references – also when the lease was lost: what is done is done. A veto holds
   * for the references of the claim only.
   * @returns how many requests were sent, the references that have a receipt now, and the batches that are finished by it
   */
  finish(claim: ErasureClaim, end: ErasureEnd): Promise<FinishedErasure> {
    return this.#changes.make(referenceOf(claim), keysOf(claim), async (change) => {
      const entry = await change.findEntry(claim.uidHash, claim.mode);
      if (entry?.id !== claim.id) return { attempts: 0, references: [], finished: [] };
      const references: string[] = [];
      for (const batch of await change.batchesOf(entry)) {
        if (end.outcome === 'vetoed' && !claim.references.includes(batch.reference)) continue;
        await change.settle(entry, batch, end);
        references.push(batch.reference);
      }
      // A reference that joined after the veto, or one whose record cannot be read now.
      if (entry.references.length > 0) {
        await release(change, entry, 0);
        await change.put(entry);
      }
      return { attempts: entry.attempts, references, finished: await change.save() };
    });
  }

  /** Changes those that are still claimed, in one commit. */
  async #changeAll(
    claims: readonly ErasureClaim[],
    work: (change: ErasureChange, entry: StoredEntry) => void | Promise<void>,
  ): Promise<void> {
    const [first] = claims;
    if (!first) return;
    await this.storage.change(referenceOf(first), async (change) => {
      for (const claim of claims) {
        const entry = await claimedEntry(change, claim);
        if (!entry) continue;
        await work(change, entry);
        await change.put(entry);
      }
    });
  }
}

const referenceOf = ({ references: [reference = ''] }: ErasureClaim): string => reference;

/** The entry, the deletion that an anonymization waits for, and the batches. */
const keysOf = ({ uidHash, mode, references }: ErasureClaim): readonly string[] => [
  records.entryKey(uidHash, mode),
  records.entryKey(uidHash, 'delete'),
  ...references.map(records.batchKey),
];

/** @returns `undefined` when it is finished, or when the lease was lost */
async function claimedEntry(change: ErasureChange, claim: ErasureClaim): Promise<StoredEntry | undefined> {
  const entry = await change.findEntry(claim.uidHash, claim.mode);
  return entry?.lease === claim.lease ? entry : undefined;
}

/** Ends the claim; the erasure is due again after the delay. */
async function release(change: ErasureChange, entry: StoredEntry, delayMs: number): Promise<void> {
  entry.lease = undefined;
  entry.dueAt = change.now + delayMs;
  for (const batch of await change.batchesOf(entry)) change.dueBy(batch, entry.dueAt);
}

function note(entry: StoredEntry, claim: ErasureClaim, { cause, unknown, sent, rejections }: Setback): void {
  if (!sent) entry.attempts = claim.attempts;
  entry.failures = claim.failures + 1;
  entry.unknown = claim.unknown || unknown;
  entry.rejections = rejections;
  entry.cause = cause;
}
