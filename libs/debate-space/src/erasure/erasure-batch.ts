import type { ErasureMode, ErasureState, ErasureStatus } from './erasure.js';
import type { Draft } from './draft.js';
import { batchKey, finishedKey, listKey, openKey, scheduleKey, warningKey } from './erasure-keys.js';
import { waitingOf, type StoredBatch } from './stored-erasure.js';

/** All erasures of one reference, as a part of a change. */
export class ErasureBatch {
  readonly reference: string;
  readonly stored: StoredBatch;
  readonly #draft: Draft;

  private constructor(draft: Draft, reference: string, stored: StoredBatch) {
    this.#draft = draft;
    this.reference = reference;
    this.stored = stored;
  }

  static async find(draft: Draft, reference: string): Promise<ErasureBatch | undefined> {
    const stored = await draft.get<StoredBatch>(batchKey(reference));
    return stored && new ErasureBatch(draft, reference, stored);
  }

  static begin(
    draft: Draft,
    reference: string,
    mode: ErasureMode,
    requestedBy: string | undefined,
    now: number,
    warnAt: number | undefined,
  ): ErasureBatch {
    const counts = { total: 0, done: 0, notFound: 0, vetoed: 0, cancelled: 0, failed: 0 };
    const flags = { revision: 0, complete: false, paused: false, cancelling: false };
    const batch = new ErasureBatch(draft, reference, {
      mode,
      requestedBy,
      askedAt: now,
      ...flags,
      ...counts,
    });
    draft.put(listKey(now, reference), '');
    draft.put(openKey(now, reference), '');
    batch.warnAt(warnAt);
    return batch;
  }

  /** Whether something may be carried out. */
  get runs(): boolean {
    const { complete, paused, cancelling } = this.stored;
    return (complete || cancelling) && !paused && waitingOf(this.stored) > 0;
  }

  /** Not later than this there is something to do. */
  dueBy(at: number): void {
    this.dueAt(Math.min(at, this.stored.dueAt ?? Infinity));
  }

  /** At this moment there is something to do, and not before. */
  dueAt(at: number | undefined): void {
    const wanted = this.runs ? at : undefined;
    const { stored } = this;
    if (stored.dueAt === wanted) return;
    if (stored.dueAt !== undefined) this.#draft.remove(scheduleKey(stored.dueAt, this.reference));
    if (wanted !== undefined) this.#draft.put(scheduleKey(wanted, this.reference), '');
    stored.dueAt = wanted;
  }

  warnAt(at: number | undefined): void {
    const { stored } = this;
    if (stored.warnAt !== undefined) this.#draft.remove(warningKey(stored.warnAt, this.reference));
    if (at !== undefined) this.#draft.put(warningKey(at, this.reference), '');
    stored.warnAt = at;
  }

  /** Puts it into the change, and, when nothing is left to do, to what is finished. @returns whether it is finished now */
  save(now: number): boolean {
    const { stored } = this;
    const isRead = stored.complete || stored.cancelling;
    const isOver = isRead && waitingOf(stored) === 0 && stored.failed === 0;
    const finishes = isOver && stored.finishedAt === undefined;
    if (finishes) {
      stored.finishedAt = now;
      this.#draft.put(finishedKey(now, this.reference), '');
      this.#draft.remove(openKey(stored.askedAt, this.reference));
      this.warnAt(undefined);
    } else if (!isOver && stored.finishedAt !== undefined) {
      this.#draft.remove(finishedKey(stored.finishedAt, this.reference));
      this.#draft.put(openKey(stored.askedAt, this.reference), '');
      delete stored.finishedAt;
    }
    if (!this.runs) this.dueAt(undefined);
    stored.revision += 1;
    this.#draft.put(batchKey(this.reference), stored);
    return finishes;
  }

  /** One that is finished is forgotten. */
  remove(): void {
    const { askedAt, finishedAt = 0 } = this.stored;
    const { reference } = this;
    for (const key of [batchKey(reference), listKey(askedAt, reference), finishedKey(finishedAt, reference)])
      this.#draft.remove(key);
  }
}

/** @param overdueAfterMs after how long a reference that is not finished is overdue */
export function statusOf(
  reference: string,
  stored: StoredBatch,
  overdueAfterMs: number,
  now: number,
): ErasureStatus {
  const { mode, requestedBy, complete, askedAt, finishedAt } = stored;
  const { total, done, notFound, vetoed, cancelled, failed } = stored;
  return {
    reference,
    mode,
    ...(requestedBy === undefined ? {} : { requestedBy }),
    state: stateOf(stored, now - askedAt > overdueAfterMs),
    complete,
    askedAt: new Date(askedAt),
    ...(finishedAt === undefined ? {} : { finishedAt: new Date(finishedAt) }),
    total,
    done,
    notFound,
    vetoed,
    cancelled,
    failed,
    waiting: waitingOf(stored),
  };
}

function stateOf(stored: StoredBatch, isLate: boolean): ErasureState {
  if (stored.finishedAt !== undefined)
    return stored.cancelling && stored.cancelled > 0 ? 'cancelled' : 'done';
  if (stored.paused) return 'paused';
  if (isLate || stored.failed > 0) return 'overdue';
  return stored.startedAt === undefined ? 'waiting' : 'running';
}
