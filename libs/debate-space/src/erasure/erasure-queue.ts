import type { Draft } from './draft.js';
import type { ErasureMode, ErasureOutcome, ErasureStatus } from './erasure.js';
import { ErasureBatch, statusOf } from './erasure-batch.js';
import { ErasureEntry } from './erasure-entry.js';
import * as keys from './erasure-keys.js';
import type { ErasureRecords } from './erasure-records.js';
import type { StoredReceipt } from './stored-erasure.js';

/** One user's erasure that this process is to carry out before its lease ends. */
export interface ClaimedErasure {
  readonly uidHash: string;
  /** Absent when it cannot be decrypted any more. */
  readonly uid?: string;
  readonly mode: ErasureMode;
  /** All references that ask for it, the earliest first. */
  readonly references: readonly string[];
  readonly requestedBy?: string;
  /** This attempt included. */
  readonly attempts: number;
  /** How often in a row it came to nothing. */
  readonly failures: number;
  /** Whether an earlier attempt may have been carried out. */
  readonly unknownBefore: boolean;
  /** How many of the logouts before it the service has answered with 400. */
  readonly rejections: number;
  /** From when on `erasure.parkAfterMs` counts, in milliseconds since 1970. */
  readonly since: number;
}

/** What became of an attempt that did not bring the end. */
export interface Setback {
  readonly cause: string;
  /** Whether this attempt may have been carried out. */
  readonly unknown: boolean;
  /** Whether it was one: something was sent. */
  readonly sent: boolean;
  readonly rejections: number;
}

export interface ErasureEnd {
  readonly outcome: ErasureOutcome;
  readonly answer?: number;
  readonly loggedOut: boolean;
  readonly reason?: string;
}

const AFTER_THE_DELETION_MS = 60_000;
const STALE = Symbol('stale');
const COUNTED = { erased: 'done', 'already-gone': 'alreadyGone', vetoed: 'vetoed' } as const;

/** Gives out what is due, and takes in what became of it. */
export class ErasureQueue {
  readonly #records: ErasureRecords;

  constructor(records: ErasureRecords) {
    this.#records = records;
  }

  /** Milliseconds until something may be due; `undefined` when nothing is waiting. */
  async nextDueMs(): Promise<number | undefined> {
    const [key] = await this.#records.keys(keys.startingWith('s/'), 1);
    return key === undefined ? undefined : keys.atAndReference(key).at - Date.now();
  }

  /** The references take turns, so that one user does not wait for a hundred thousand others. */
  async claim(leaseMs: number): Promise<ClaimedErasure | undefined> {
    for (;;) {
      const claimed = await this.#records.change((draft) => this.#claim(draft, leaseMs));
      if (claimed !== STALE) return claimed;
    }
  }

  async retry(claimed: ClaimedErasure, setback: Setback, delayMs: number): Promise<void> {
    const now = Date.now();
    await this.#settle(claimed, now, (entry, batches) => {
      const dueAt = now + delayMs;
      entry.change({ ...progress(entry, claimed, setback), dueAt });
      for (const batch of batches) batch.dueBy(dueAt);
    });
  }

  /** Gives it up, until somebody resumes it. */
  async park(claimed: ClaimedErasure, setback: Setback): Promise<void> {
    await this.#settle(claimed, Date.now(), (entry, batches) => {
      if (!entry.stored.parked) for (const batch of batches) batch.stored.failed += 1;
      entry.change({ ...progress(entry, claimed, setback), parked: true });
    });
  }

  /**
   * It is over: the entry gives way to a receipt for each of its references.
   * @returns the references that are finished by it
   */
  async finish(claimed: ClaimedErasure, end: ErasureEnd): Promise<readonly ErasureStatus[]> {
    const now = Date.now();
    const { uidHash } = claimed;
    return this.#settle(claimed, now, (entry, batches, draft) => {
      const { parked } = entry.stored;
      // Nothing was sent at the attempt that met with a veto.
      const attempts = entry.stored.attempts - (end.outcome === 'vetoed' ? 1 : 0);
      for (const { reference, stored } of batches) {
        if (parked) stored.failed -= 1;
        stored[COUNTED[end.outcome]] += 1;
        const receipt: StoredReceipt = { askedAt: stored.askedAt, doneAt: now, attempts, ...end };
        draft.put(keys.receiptKey(reference, uidHash), receipt);
        draft.put(keys.userKey(uidHash, reference), '');
      }
      entry.remove();
    });
  }

  async #settle(
    { uidHash, mode }: ClaimedErasure,
    now: number,
    work: (entry: ErasureEntry, batches: readonly ErasureBatch[], draft: Draft) => void,
  ): Promise<readonly ErasureStatus[]> {
    return this.#records.change(async (draft) => {
      const entry = await ErasureEntry.find(draft, uidHash, mode);
      if (!entry) return []; // its lease was over, and another process has done it
      const found = entry.stored.references.map((reference) => ErasureBatch.find(draft, reference));
      const batches = (await Promise.all(found)).filter((batch) => batch !== undefined);
      work(entry, batches, draft);
      return batches
        .filter((batch) => batch.save(now))
        .map(({ reference, stored }) => statusOf(reference, stored, Infinity, now));
    });
  }

  async #claim(draft: Draft, leaseMs: number): Promise<ClaimedErasure | typeof STALE | undefined> {
    const now = Date.now();
    const [scheduled] = await this.#records.keys(keys.until('s', now), 1);
    if (scheduled === undefined) return undefined;
    const { at, reference } = keys.atAndReference(scheduled);
    const batch = await ErasureBatch.find(draft, reference);
    if (batch?.stored.dueAt !== at) {
      draft.remove(scheduled);
      return STALE;
    }
    const [first, second] = await this.#records.keys(keys.dueOf(reference), 2);
    const firstAt = first === undefined ? undefined : keys.dueAt(first);
    if (first === undefined || firstAt === undefined || firstAt > now) {
      batch.dueAt(firstAt);
      batch.save(now);
      return STALE;
    }
    const { mode } = batch.stored;
    const entry = await ErasureEntry.find(draft, keys.lastPart(first), mode);
    if (
      entry?.stored.dueAt !== firstAt ||
      entry.stored.parked ||
      !entry.stored.references.includes(reference)
    ) {
      draft.remove(first);
      return STALE;
    }
    const claimed = await this.#take(draft, entry, batch, leaseMs);
    // Behind the other references that are due.
    batch.dueAt(
      Math.max(now, Math.min(second === undefined ? Infinity : keys.dueAt(second), entry.stored.dueAt)),
    );
    batch.save(now);
    return claimed;
  }

  async #take(
    draft: Draft,
    entry: ErasureEntry,
    batch: ErasureBatch,
    leaseMs: number,
  ): Promise<ClaimedErasure | typeof STALE> {
    const now = Date.now();
    const { uidHash, mode, stored } = entry;
    const { attempts, failures, unknown: unknownBefore, rejections, since } = stored;
    if (batch.stored.cancelling && !unknownBefore) {
      batch.stored.cancelled += 1;
      entry.leave(batch.reference);
      return STALE;
    }
    // Anonymised first, nobody could delete the contributions any more: the service would not know the uid.
    if (mode === 'anonymize' && (await ErasureEntry.find(draft, uidHash, 'delete'))) {
      entry.change({ dueAt: now + AFTER_THE_DELETION_MS });
      return STALE;
    }
    batch.stored.startedAt ??= now;
    entry.change({ attempts: attempts + 1, unknown: true, dueAt: now + leaseMs });
    return {
      uidHash,
      uid: this.#records.unseal(stored.sealed),
      mode,
      references: [...stored.references],
      requestedBy: batch.stored.requestedBy,
      attempts: attempts + 1,
      failures,
      unknownBefore,
      rejections,
      since,
    };
  }
}

function progress(
  { stored }: ErasureEntry,
  { unknownBefore }: ClaimedErasure,
  { cause, unknown, sent, rejections }: Setback,
): Partial<ErasureEntry['stored']> {
  return {
    attempts: sent ? stored.attempts : Math.max(0, stored.attempts - 1),
    failures: stored.failures + 1,
    unknown: unknownBefore || unknown,
    rejections,
    cause,
  };
}
