import type { ClaimedErasure, ErasureEnd, SettledErasure, Setback } from './claimed-erasure.js';
import type { Draft } from './draft.js';
import { ErasureBatch, statusOf } from './erasure-batch.js';
import { ErasureEntry } from './erasure-entry.js';
import * as keys from './erasure-keys.js';
import type { ErasureRecords } from './erasure-records.js';
import { settleReference } from './settle-reference.js';

const AFTER_THE_DELETION_MS = 60_000;
/** So many that cannot be carried out yet are put aside at a time. */
const MOST_STALE = 100;
const STALE = Symbol('stale');

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
    for (let stale = 0; stale < MOST_STALE; stale += 1) {
      const claimed = await this.#records.change((draft) => this.#claim(draft, leaseMs));
      if (claimed !== STALE) return claimed;
    }
    return undefined;
  }

  /**
   * To be asked immediately before the request: from now on the erasure may have been carried out, whatever is heard of it.
   * @returns whether it is still to be sent; not when it was cancelled or paused meanwhile, or taken over
   */
  async send(claimed: ClaimedErasure): Promise<boolean> {
    return this.#records.change(async (draft) => {
      const entry = await this.#claimedEntry(draft, claimed);
      if (!entry || !(await isWanted(draft, entry))) return false;
      entry.change({ attempts: entry.stored.attempts + 1, unknown: true });
      return true;
    });
  }

  async retry(claimed: ClaimedErasure, setback: Setback, delayMs: number): Promise<void> {
    const dueAt = Date.now() + delayMs;
    await this.#settle(claimed, (entry, batches) => {
      entry.change({ ...progress(entry, claimed, setback), dueAt });
      for (const batch of batches) batch.dueBy(dueAt);
    });
  }

  /** Gives it up, until somebody resumes it. */
  async park(claimed: ClaimedErasure, setback: Setback): Promise<void> {
    await this.#settle(claimed, (entry, batches) => {
      for (const batch of batches) batch.stored.failed += 1;
      entry.change({ ...progress(entry, claimed, setback), parked: true });
    });
  }

  /**
   * It is over: there is a receipt for each of its references. Also of a claim whose lease has run out meanwhile – done is
   * done. A veto holds for the references that the host was asked for.
   */
  async finish(claimed: ClaimedErasure, end: ErasureEnd): Promise<SettledErasure> {
    return this.#records.change(async (draft) => {
      const now = Date.now();
      const entry = await ErasureEntry.find(draft, claimed.uidHash, claimed.mode);
      if (entry?.stored.sealed !== claimed.sealed) return { references: [], attempts: 0, finished: [] };
      const { attempts, references: all } = entry.stored;
      const isVeto = end.outcome === 'vetoed';
      const references = isVeto ? all.filter((one) => claimed.references.includes(one)) : [...all];
      const found = await Promise.all(references.map((reference) => ErasureBatch.find(draft, reference)));
      const batches = found.filter((batch) => batch !== undefined);
      for (const batch of batches) settleReference(draft, entry, batch, end, now);
      const finished = batches.filter((batch) => batch.save(now));
      return {
        references,
        attempts,
        finished: finished.map(({ reference, stored }) => statusOf(reference, stored, Infinity, now)),
      };
    });
  }

  /** @returns none when it is over, or when another process has taken it over */
  async #claimedEntry(draft: Draft, claimed: ClaimedErasure): Promise<ErasureEntry | undefined> {
    const entry = await ErasureEntry.find(draft, claimed.uidHash, claimed.mode);
    const { sealed, dueAt, parked } = entry?.stored ?? {};
    return !parked && sealed === claimed.sealed && dueAt === claimed.leaseUntil ? entry : undefined;
  }

  async #settle(
    claimed: ClaimedErasure,
    work: (entry: ErasureEntry, batches: readonly ErasureBatch[]) => void,
  ): Promise<void> {
    await this.#records.change(async (draft) => {
      const entry = await this.#claimedEntry(draft, claimed);
      if (!entry) return;
      const found = entry.stored.references.map((reference) => ErasureBatch.find(draft, reference));
      const batches = (await Promise.all(found)).filter((batch) => batch !== undefined);
      work(entry, batches);
      for (const batch of batches) batch.save(Date.now());
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
    const entry = await ErasureEntry.find(draft, keys.lastPart(first), batch.stored.mode);
    if (
      entry?.stored.dueAt !== firstAt ||
      entry.stored.parked ||
      !entry.stored.references.includes(reference)
    ) {
      draft.remove(first);
      return STALE;
    }
    const claimed = await this.#take(draft, entry, batch, leaseMs);
    const secondAt = second === undefined ? Infinity : keys.dueAt(second);
    batch.dueAt(Math.max(now, Math.min(secondAt, entry.stored.dueAt))); // behind the other references that are due
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
    if (batch.stored.cancelling && !stored.unknown) {
      batch.stored.cancelled += 1;
      entry.leave(batch.reference);
      return STALE;
    }
    // Anonymised first, nobody could delete the contributions any more: the service would not know the uid.
    const deletion = mode === 'anonymize' ? await ErasureEntry.find(draft, uidHash, 'delete') : undefined;
    if (deletion && (await isWanted(draft, deletion))) {
      entry.change({ dueAt: now + AFTER_THE_DELETION_MS });
      return STALE;
    }
    batch.stored.startedAt ??= now;
    const leaseUntil = now + leaseMs;
    entry.change({ dueAt: leaseUntil });
    const { sealed, attempts, failures, unknown, rejections, since } = stored;
    const [earliest = ''] = stored.references;
    const asking = earliest === batch.reference ? batch : await ErasureBatch.find(draft, earliest);
    return {
      uidHash,
      uid: this.#records.unseal(sealed, uidHash),
      sealed,
      leaseUntil,
      mode,
      references: [...stored.references],
      requestedBy: asking?.stored.requestedBy,
      attempts,
      failures,
      unknownBefore: unknown,
      rejections,
      since: Math.max(since, batch.stored.resumedAt ?? 0),
    };
  }
}

/** Whether one of its references wants it carried out now; what may have been carried out is finished also if cancelled. */
async function isWanted(draft: Draft, { stored }: ErasureEntry): Promise<boolean> {
  if (stored.parked) return false;
  const batches = await Promise.all(stored.references.map((one) => ErasureBatch.find(draft, one)));
  return batches.some((batch) => batch?.runs === true && (stored.unknown || !batch.stored.cancelling));
}

function progress(
  { stored }: ErasureEntry,
  claimed: ClaimedErasure,
  { cause, unknown, sent, rejections }: Setback,
): Partial<ErasureEntry['stored']> {
  return {
    attempts: sent ? stored.attempts : claimed.attempts,
    failures: claimed.failures + 1,
    unknown: claimed.unknownBefore || unknown,
    rejections,
    cause,
  };
}
