import * as v from 'valibot';
import { ErasureError, invalidArgument } from '../errors.js';
import type { DebateSpaceEvent, ErasureMode } from '../events.js';
import type { UidCipher } from '../secrets/uid-cipher.js';
import {
  erasureId,
  type Claim,
  type Erasure,
  type ErasureRequests,
  type HostTransaction,
  type Job,
  type NewErasure,
  type Reference,
  type ReferenceStatus,
  type Storage,
} from '../storage/storage.js';
import type {
  ErasureReceipt,
  ErasureState,
  ErasureStatus,
  PendingErasure,
  RetryingErasure,
} from './erasure.js';

const NO_QUERY = 'must have a function query(text, values), which runs a statement in the open transaction';
const NO_TRANSACTIONS =
  "this storage cannot take part in the host's transactions; hint: use postgresStorage or mysqlStorage on the host's " +
  'database, or request the erasure without transaction after the commit';

const PER_PAGE = 100;
const MAX_SUBJECTS = 1_000;

/** How one user's erasure ends. */
export type ErasureEnd = Readonly<Pick<ErasureReceipt, 'outcome' | 'status' | 'loggedOut' | 'reason'>>;

/** An erasure that has not ended. */
export interface OpenErasure {
  readonly uid: string;
  readonly reference: string;
  readonly mode: ErasureMode;
  /** Whether it will be carried out as things stand: neither paused, parked, canceled nor part of an incomplete list. */
  readonly running: boolean;
}

/** The erasures that somebody should look at. */
export interface ErasureProblems {
  readonly parked: number;
  /** The age of the oldest reference that is not finished, in milliseconds, when it is overdue. */
  readonly overdueMs: number | undefined;
}

/** What a receipt says that its job has no column for. The reference may be requested again later, by somebody else. */
const DETAILS = v.object({
  status: v.optional(v.number()),
  loggedOut: v.boolean(),
  reason: v.optional(v.string()),
  requestedBy: v.optional(v.string()),
  requestedAt: v.number(),
});
const DETAILS_JSON = v.pipe(v.string(), v.parseJson(), DETAILS);

/** The erasures of an application: seals and opens their uids, and reads them as hosts know them. */
export class ErasureRepository {
  readonly #listeners = new Set<() => void>();

  /** @param overdueAfterMs the age at which a reference that is not finished is overdue, in milliseconds */
  constructor(
    readonly storage: Storage,
    private readonly uids: UidCipher,
    private readonly overdueAfterMs: number,
  ) {}

  /** Calls `listener` after each change by this process. @returns how to stop */
  onChange(listener: () => void): () => void {
    this.#listeners.add(listener);
    return () => this.#listeners.delete(listener);
  }

  changed(): void {
    for (const listener of this.#listeners) listener();
  }

  /**
   * What requests change: the storage, or its part in a transaction that the host has open.
   * @throws {@link InvalidArgumentError} when the storage has no transactions of the host's
   */
  within(transaction: HostTransaction | undefined): ErasureRequests {
    if (transaction === undefined) return this.storage;
    if (typeof (transaction as Partial<HostTransaction> | null)?.query !== 'function')
      throw invalidArgument('requestErasure', `transaction ${NO_QUERY}`);
    const requests = this.storage.within?.(transaction);
    if (!requests) throw invalidArgument('requestErasure', `transaction: ${NO_TRANSACTIONS}`);
    return requests;
  }

  /** Users to be added, each once. Their uids open in this reference and mode only. */
  seal(reference: string, mode: ErasureMode, uids: readonly string[]): readonly NewErasure[] {
    return [...new Set(uids)].map((uid) => {
      const [subject = '', ...former] = this.uids.hashes(uid);
      const id = erasureId(reference, subject);
      const sealed = this.uids.seal(uid, { kind: 'erasure', id, uidHash: subject, mode });
      return { id, subject, formerIds: former.map((hash) => erasureId(reference, hash)), sealed };
    });
  }

  /** @returns `undefined` when no key opens the uid, or when somebody without a key has changed the row */
  open({ id, subject, sealed, reference: of }: Claim): PendingErasure | undefined {
    if (!of || id !== erasureId(of.reference, subject)) return undefined;
    const { mode, reference, requestedBy } = of;
    const uid = this.uids.open(sealed, { kind: 'erasure', id, uidHash: subject, mode });
    if (uid === undefined) return undefined;
    return { uid, mode, reference, ...(requestedBy !== undefined && { requestedBy }) };
  }

  /** The unfinished erasures of these users, under all storage keys. @param requests see {@link within} */
  async openErasures(
    uids: readonly string[],
    requests: ErasureRequests = this.storage,
  ): Promise<readonly OpenErasure[]> {
    const uidOf = new Map(uids.flatMap((uid) => this.uids.hashes(uid).map((hash) => [hash, uid] as const)));
    const subjects = [...uidOf.keys()];
    const found: OpenErasure[] = [];
    for (let from = 0; from < subjects.length; from += MAX_SUBJECTS) {
      const some = await requests.erasuresOf(subjects.slice(from, from + MAX_SUBJECTS), 'open');
      for (const { job, reference: of } of some) {
        const running = job.state === 'waiting' && of.complete && !of.paused && !of.canceled;
        found.push({ uid: uidOf.get(job.subject) ?? '', reference: of.reference, mode: of.mode, running });
      }
    }
    return found;
  }

  /**
   * @param requests see {@link within}
   * @throws {@link ErasureError} when there is no such reference
   */
  async status(reference: string, requests: ErasureRequests = this.storage): Promise<ErasureStatus> {
    const found = isReference(reference) ? await requests.reference(reference) : undefined;
    if (!found)
      throw new ErasureError(
        'ERR_DEBATE_SPACE_UNKNOWN_ERASURE',
        'there is no erasure of this reference here; see DebateSpaceErasures.list()',
      );
    const retrying = found.paused || !found.retrying ? undefined : retryingOf(found.retrying);
    return { ...this.statusOf(found), ...(retrying && { retrying }) };
  }

  async *list(): AsyncGenerator<ErasureStatus> {
    let page: readonly ReferenceStatus[] = [];
    do {
      page = await this.storage.references(PER_PAGE, page.at(-1));
      for (const found of page) yield this.statusOf(found);
    } while (page.length === PER_PAGE);
  }

  async *receipts(reference: string): AsyncGenerator<ErasureReceipt> {
    let page: readonly Erasure[] = [];
    do {
      page = await this.storage.receipts(reference, PER_PAGE, page.at(-1)?.job.id);
      yield* page.map(receiptOf);
    } while (page.length === PER_PAGE);
  }

  /** Under all storage keys. */
  async *receiptsOf(uid: string): AsyncGenerator<ErasureReceipt> {
    yield* (await this.storage.erasuresOf(this.uids.hashes(uid), 'done')).map(receiptOf);
  }

  /** How many users are not erased yet. */
  async count(): Promise<number> {
    const { waiting, parked } = await this.storage.counts('erasure');
    return waiting + parked;
  }

  /** The erasures that somebody should look at; `undefined` when the storage does not answer. Never rejects. */
  async problems(): Promise<ErasureProblems | undefined> {
    try {
      const { parked, oldestAt = Infinity } = await this.storage.counts('erasure');
      const ageMs = Date.now() - oldestAt;
      return { parked, overdueMs: ageMs > this.overdueAfterMs ? ageMs : undefined };
    } catch {
      return undefined; // the outbox reports a storage that cannot be reached
    }
  }

  statusOf(found: Reference & { readonly parked: number }): ErasureStatus {
    const { reference, mode, requestedBy, complete, requestedAt, finishedAt, total, counts } = found;
    const open = openOf(found);
    const failed = Math.min(found.parked, open);
    return {
      reference,
      mode,
      ...(requestedBy !== undefined && { requestedBy }),
      state: stateOf(found, failed > 0 || this.#isOverdue(found)),
      complete,
      requestedAt: new Date(requestedAt),
      ...(finishedAt !== undefined && { finishedAt: new Date(finishedAt) }),
      total,
      done: counts.erased,
      notFound: counts['not-found'],
      vetoed: counts.vetoed,
      canceled: counts.canceled,
      failed,
      waiting: open - failed,
    };
  }

  #isOverdue({ requestedAt }: Reference): boolean {
    return Date.now() - requestedAt > this.overdueAfterMs;
  }
}

/** What the storage keeps as the details of a finished erasure. */
export function receiptDetails({ reference }: Claim, { status, loggedOut, reason }: ErasureEnd): string {
  const { requestedBy, requestedAt } = reference ?? {};
  return JSON.stringify({ status, loggedOut, reason, requestedBy, requestedAt });
}

export function finishedEvent(found: Reference): DebateSpaceEvent {
  const { reference, mode, total, counts } = found;
  const { erased: done, 'not-found': notFound, vetoed, canceled } = counts;
  return { type: 'erasure-finished', reference, mode, total, done, notFound, vetoed, canceled };
}

/** How many are not finished: they wait, or are parked. */
export function openOf({ total, counts }: Reference): number {
  return total - counts.erased - counts['not-found'] - counts.vetoed - counts.canceled;
}

/** Whether a value is text of this length, without control characters or lone surrogates. */
export function isText(value: unknown, maxLength: number): value is string {
  return (
    typeof value === 'string' && value !== '' && value.length <= maxLength && !/[\p{Cc}\p{Cs}]/u.test(value)
  );
}

/** Whether a value can be a reference: it is shown beside others, and must not turn their text around. */
export function isReference(value: unknown): value is string {
  return isText(value, 128) && !/\p{Bidi_Control}/u.test(value);
}

function stateOf(found: Reference, isOverdue: boolean): ErasureState {
  if (found.finishedAt !== undefined)
    return found.canceled && found.counts.canceled > 0 ? 'canceled' : 'done';
  if (found.paused) return 'paused';
  if (isOverdue) return 'overdue';
  return found.started ? 'running' : 'waiting';
}

function retryingOf({ cause, dueAt = 0 }: Job): RetryingErasure | undefined {
  if (cause === undefined) return undefined;
  return dueAt > Date.now() ? { cause, nextAttemptAt: new Date(dueAt) } : { cause };
}

/** A receipt without details is that of a parked user whose reference was canceled. */
function receiptOf({ job, reference: of }: Erasure): ErasureReceipt {
  const { success, output } = v.safeParse(DETAILS_JSON, job.details);
  const { requestedBy, requestedAt, status, loggedOut, reason } = success
    ? output
    : { ...of, loggedOut: false };
  const outcome = job.outcome as ErasureReceipt['outcome'];
  const isDone = outcome === 'erased' || outcome === 'not-found';
  return {
    reference: of.reference,
    mode: of.mode,
    ...(requestedBy !== undefined && { requestedBy }),
    uidHash: job.subject,
    requestedAt: new Date(requestedAt),
    doneAt: new Date(job.endedAt ?? 0),
    attempts: job.attempts,
    outcome,
    ...(status !== undefined && { status }),
    loggedOut,
    ...(reason !== undefined && { reason }),
    ...(job.uncertain && !isDone && { uncertain: true }),
  };
}
