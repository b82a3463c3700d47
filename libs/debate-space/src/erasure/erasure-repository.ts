import { ErasureError, invalidArgument } from '../errors.js';
import type { Emit, ErasureMode } from '../events.js';
import type { Keyring } from '../secrets/keyring.js';
import { referenceKey } from '../storage/rules.js';
import type {
  Added,
  Claim,
  EndedUser,
  Erasure,
  ErasureRequests,
  HostTransaction,
  Job,
  ListPart,
  Progress,
  Reference,
  ReferenceStatus,
  Storage,
} from '../storage/storage.js';
import type { ErasureEnd, ErasureReceipt, ErasureStatus, PendingErasure } from './erasure.js';
import { ErasureMarks } from './erasure-marks.js';
import { retryingOf, statusOf } from './erasure-status.js';

const NO_QUERY = 'must have a function query(text, values), which runs a statement in the open transaction';
const NO_TRANSACTIONS =
  "this storage cannot take part in the host's transactions; hint: use postgresStorage or mysqlStorage on the host's " +
  'database, or request the erasure without transaction after the commit';
const UNVERIFIED =
  'no storageKey vouches for the record of this reference: it was written with another storageKey, or somebody changed it in ' +
  'the database; cancel it, and give another reference';
const BUSY = 'other calls change this reference at the moment; repeat the call';

const PER_PAGE = 100;
const MAX_SUBJECTS = 1_000;
/** How often a change of a reference is tried while other processes change it as well. */
const MAX_TRIES = 10;

/** An erasure that has not ended. */
export interface OpenErasure {
  readonly uid: string;
  readonly reference: string;
  readonly mode: ErasureMode;
  /** Whether it will be executed as things stand: genuine, neither paused, parked, canceled nor part of an incomplete list. */
  readonly running: boolean;
}

/** The erasures that somebody should look at. */
export interface ErasureProblems {
  readonly parked: number;
  /** The age of the oldest reference that is not finished, in milliseconds, when it is overdue. */
  readonly overdueMs: number | undefined;
}

/** A request for the erasure of a user or a list, without the uids. */
export type NamedRequest = Pick<Reference, 'reference' | 'mode'> & {
  readonly requestedBy?: string | undefined;
};

/** The erasures of an application in its storage. Nobody else reads or writes their rows. */
export class ErasureRepository {
  readonly #marks: ErasureMarks;
  readonly #listeners = new Set<() => void>();
  /** The last reference that was verified. */
  #verified: Reference | undefined;

  /** @param overdueAfterMs the age at which a reference that is not finished is overdue, in milliseconds */
  constructor(
    private readonly storage: Storage,
    keyring: Keyring,
    emit: Emit,
    private readonly overdueAfterMs: number,
  ) {
    this.#marks = new ErasureMarks(keyring, emit);
  }

  /** Calls `listener` after each change by this process. @returns how to stop */
  onChange(listener: () => void): () => void {
    this.#listeners.add(listener);
    return () => this.#listeners.delete(listener);
  }

  changed(): void {
    for (const listener of this.#listeners) listener();
  }

  // ---- requests

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

  /**
   * Adds users to a reference, each once.
   * @param known the reference as the last part of the list has left it
   * @throws {@link ErasureError} if the record of the reference was changed by somebody else
   */
  async add(
    requests: ErasureRequests,
    { reference, mode, requestedBy }: NamedRequest,
    uids: readonly string[],
    list?: ListPart,
    known?: Reference,
  ): Promise<Added> {
    const requestedAt = Date.now();
    const given = { reference, mode, requestedBy, requestedAt };
    const users = [...new Set(uids)].map((uid) => this.#marks.seal(reference, mode, uid));
    const isNew = {
      ...{ ...given, key: referenceKey(reference), isList: list !== undefined },
      ...{ complete: list?.isLast ?? true, paused: false, canceled: false },
    };
    for (let tries = 1; ; tries += 1) {
      if (known && !this.#marks.isUsable(known)) throw conflictError(UNVERIFIED);
      // A list is completed, a finished reference begins anew.
      const next = known
        ? { ...known, ...(list ? { complete: true } : { requestedBy, requestedAt }) }
        : isNew;
      const mark = this.#marks.mark(next);
      const added = await requests.addErasures({ ...given, list, known, mark }, users);
      if (added.conflict !== 'changed' || tries === MAX_TRIES) return added;
      known = added.reference;
    }
  }

  /** The unfinished erasures of these users, under all storage keys. @param requests see {@link within} */
  async openErasures(
    uids: readonly string[],
    requests: ErasureRequests = this.storage,
  ): Promise<readonly OpenErasure[]> {
    const uidOf = new Map(uids.flatMap((uid) => this.#marks.subjectsOf(uid).map((hash) => [hash, uid])));
    const subjects = [...uidOf.keys()];
    const found: OpenErasure[] = [];
    for (let from = 0; from < subjects.length; from += MAX_SUBJECTS) {
      const some = await requests.erasuresOf(subjects.slice(from, from + MAX_SUBJECTS), 'open');
      for (const { job, reference: of } of some) {
        const isDue = job.state === 'waiting' && of.complete && !of.paused && !of.canceled;
        const running = isDue && this.#marks.open(job, of) !== undefined;
        found.push({ uid: uidOf.get(job.subject) ?? '', reference: of.reference, mode: of.mode, running });
      }
    }
    return found;
  }

  // ---- work

  /** @returns what to erase; `undefined` if no storage key vouches for the record: then nothing may be sent */
  open(claim: Claim): PendingErasure | undefined {
    const { reference: of } = claim;
    // Nobody claims users of a list that is not complete, unless somebody moves them to another queue.
    return of && (of.complete || of.canceled) ? this.#marks.open(claim, of) : undefined;
  }

  /**
   * Whether an anonymization has to wait for the deletion of the same user. Anonymized first, nobody could delete the
   * contributions any more: the service would not know the uid.
   */
  async waitsForDeletion({ mode, uid }: PendingErasure): Promise<boolean> {
    if (mode === 'delete') return false;
    const open = await this.openErasures([uid]);
    return open.some((erasure) => erasure.mode === 'delete' && erasure.running);
  }

  /** Immediately before the request is sent. @returns `false` if nothing may be sent: it was paused or canceled since */
  markSending(claim: Claim): Promise<boolean> {
    return this.storage.markSending(claim, this.#marks.uncertain(claim));
  }

  /** Ends an erasure with its receipt. */
  async finish(claim: Claim, end: ErasureEnd, attempts: number): Promise<EndedUser> {
    const { reference } = claim;
    if (!reference) throw new TypeError('An erasure without a reference is never executed');
    const ended = await this.#finish(claim, reference, end, attempts);
    this.changed();
    return ended;
  }

  #finish(job: Job, of: Reference, end: ErasureEnd, attempts: number): Promise<EndedUser> {
    const { mode, requestedBy, requestedAt } = of;
    const isDone = end.outcome === 'erased' || end.outcome === 'not-found';
    const receipt = this.#marks.receiptText(job, {
      ...{ mode, ...(requestedBy !== undefined && { requestedBy }) },
      ...{ requestedAt, doneAt: Date.now(), attempts, ...end },
      ...(job.uncertain !== undefined && !isDone && { uncertain: true }),
    });
    return this.storage.finishErasure(job, end.outcome, attempts, receipt);
  }

  /** Makes a claimed user due later. */
  postpone(claim: Claim, delayMs: number, progress: Progress): Promise<void> {
    return this.storage.postpone(claim, delayMs, progress);
  }

  /** Does not try a claimed user again until somebody retries the reference. */
  async park(claim: Claim, hint: string, progress: Progress): Promise<void> {
    await this.storage.park(claim, hint, progress);
    this.changed();
  }

  /** Makes a claimed user due immediately, as if nothing had been tried. */
  giveBack(claim: Claim): Promise<void> {
    return this.storage.giveBack([claim]);
  }

  /** The mark of an attempt that may have erased the user although no answer came. */
  uncertainMark(claim: Claim): string {
    return this.#marks.uncertain(claim);
  }

  // ---- changes of a reference

  /** @returns whether this changed it: a finished or unverified reference stays as it is */
  async setPaused(reference: string, paused: boolean): Promise<boolean> {
    for (let tries = 1; tries <= MAX_TRIES; tries += 1) {
      const found = await this.#found(reference);
      if (found.finishedAt !== undefined || found.paused === paused) return false;
      if (!this.#marks.isUsable(found)) return false;
      const mark = this.#marks.markAfter(found, { paused });
      if (!(await this.storage.setPaused(found, paused, mark))) continue;
      this.changed();
      return true;
    }
    throw conflictError(BUSY);
  }

  /** Makes the parked users due again. */
  async retryParked(reference: string): Promise<void> {
    while ((await this.storage.retryErasures(reference)) > 0);
    this.changed();
  }

  /**
   * Cancels a reference, also if it is not genuine, or what a process that died has left of it.
   * @returns the reference if it is finished by this
   */
  async cancel(reference: string): Promise<Reference | undefined> {
    for (;;) {
      const found = await this.#found(reference);
      const mark = this.#marks.markAfter(found, { canceled: true, paused: false });
      const { more, uncertain, finished } = await this.storage.cancelErasures(found, mark);
      const ended = [{ finished }];
      for (const job of uncertain)
        ended.push(await this.#finish(job, found, { outcome: 'canceled', loggedOut: false }, job.attempts));
      const last = ended.find((each) => each.finished)?.finished;
      if (more && !last) continue;
      this.changed();
      return last;
    }
  }

  // ---- upkeep

  /** Unfinished references that have passed one of these ages, each once for each age over all processes. */
  claimOverdue(agesMs: readonly number[]): Promise<readonly Reference[]> {
    return this.storage.claimOverdue(agesMs);
  }

  /** Verifies some of the references, the newest first, and continues with the next call. */
  async verifySome(): Promise<void> {
    const page = await this.storage.references(PER_PAGE, this.#verified);
    for (const found of page) this.#marks.isUsable(found);
    this.#verified = page.length === PER_PAGE ? page.at(-1) : undefined;
  }

  /** How many unfinished references are known that nothing is done for, because their marks do not fit. */
  get unverified(): number {
    return this.#marks.unverified;
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

  // ---- what hosts see

  /**
   * @param requests see {@link within}
   * @throws {@link ErasureError} when there is no such reference
   */
  async status(reference: string, requests: ErasureRequests = this.storage): Promise<ErasureStatus> {
    const found = await this.#found(reference, requests);
    const retrying = found.paused || !found.retrying ? undefined : retryingOf(found.retrying);
    return { ...this.#statusOf(found), ...(retrying && { retrying }) };
  }

  async #found(reference: string, requests: ErasureRequests = this.storage): Promise<ReferenceStatus> {
    const found = isReference(reference) ? await requests.reference(reference) : undefined;
    if (found) return found;
    throw new ErasureError(
      'ERR_DEBATE_SPACE_UNKNOWN_ERASURE',
      'there is no erasure of this reference here; see DebateSpaceErasures.list()',
    );
  }

  async *list(): AsyncGenerator<ErasureStatus> {
    let page: readonly ReferenceStatus[] = [];
    do {
      page = await this.storage.references(PER_PAGE, page.at(-1));
      for (const found of page) yield this.#statusOf(found);
    } while (page.length === PER_PAGE);
  }

  #statusOf(found: ReferenceStatus): ErasureStatus {
    const isOverdue = Date.now() - found.requestedAt > this.overdueAfterMs;
    return statusOf({ ...found, isGenuine: this.#marks.isUsable(found), isOverdue });
  }

  async *receipts(reference: string): AsyncGenerator<ErasureReceipt> {
    let page: readonly Erasure[] = [];
    do {
      page = await this.storage.receipts(reference, PER_PAGE, page.at(-1)?.job.id);
      for (const erasure of page) yield this.#marks.receiptOf(erasure);
    } while (page.length === PER_PAGE);
  }

  /** Under all storage keys. */
  async *receiptsOf(uid: string): AsyncGenerator<ErasureReceipt> {
    const erasures = await this.storage.erasuresOf(this.#marks.subjectsOf(uid), 'done');
    for (const erasure of erasures) yield this.#marks.receiptOf(erasure);
  }
}

export function conflictError(problem: string): ErasureError {
  return new ErasureError('ERR_DEBATE_SPACE_ERASURE_CONFLICT', problem);
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
