import { ErasureError, invalidArgument } from '../errors.js';
import type { Emit, ErasureMode } from '../events.js';
import type { Keyring, Part } from '../secrets/keyring.js';
import {
  erasureId,
  referenceKey,
  type Added,
  type Claim,
  type EndedUser,
  type Erasure,
  type ErasureRequests,
  type HostTransaction,
  type Job,
  type ListPart,
  type NewErasure,
  type Progress,
  type Reference,
  type ReferenceStatus,
  type Storage,
} from '../storage/storage.js';
import type { ErasureEnd, ErasureReceipt, ErasureStatus, PendingErasure } from './erasure.js';
import { receiptOf, receiptText } from './erasure-receipt.js';
import { retryingOf, statusOf } from './erasure-status.js';

const NO_QUERY = 'must have a function query(text, values), which runs a statement in the open transaction';
const NO_TRANSACTIONS =
  "this storage cannot take part in the host's transactions; hint: use postgresStorage or mysqlStorage on the host's " +
  'database, or request the erasure without transaction after the commit';

const PER_PAGE = 100;
const MAX_SUBJECTS = 1_000;
/** How often a change of a reference is tried while other processes change it as well. */
const MAX_TRIES = 10;
/** How many unverified rows are remembered, so that each is reported once. */
const MAX_REPORTED = 1_000;
/** Of a reference that was requested before there were marks, or canceled although its mark did not fit. */
const NO_MARK = '';

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

/** What the mark of a reference vouches for. */
type Meaning = Omit<Reference, 'mark' | 'started' | 'finishedAt' | 'total' | 'counts'>;

/**
 * The erasures of an application in its storage. Everything that an erasure is executed by is sealed or marked when it is
 * written, and verified when it is read.
 */
export class ErasureRepository {
  readonly #listeners = new Set<() => void>();
  /** Rows that were reported, and the unfinished references among them. */
  readonly #reported = new Set<string>();
  readonly #unverified = new Set<string>();
  #verified: Reference | undefined;

  /** @param overdueAfterMs the age at which a reference that is not finished is overdue, in milliseconds */
  constructor(
    readonly storage: Storage,
    private readonly keyring: Keyring,
    private readonly emit: Emit,
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
   * Adds users to a reference, each once. Their uids open in this reference and mode only.
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
    const users = [...new Set(uids)].map((uid) => this.#sealed(reference, mode, uid));
    const isNew = {
      ...{ ...given, key: referenceKey(reference), isList: list !== undefined },
      ...{ complete: list?.isLast ?? true, paused: false, canceled: false },
    };
    for (let tries = 1; ; tries += 1) {
      if (known && !this.#isUsable(known)) throw conflictError(UNVERIFIED);
      // A list is completed, a finished reference begins anew.
      const next = known
        ? { ...known, ...(list ? { complete: true } : { requestedBy, requestedAt }) }
        : isNew;
      const added = await requests.addErasures({ ...given, list, known, mark: this.#mark(next) }, users);
      if (added.conflict !== 'changed' || tries === MAX_TRIES) return added;
      known = added.reference;
    }
  }

  #sealed(reference: string, mode: ErasureMode, uid: string): NewErasure {
    const [subject = '', ...former] = this.#subjectsOf(uid);
    const id = erasureId(reference, subject);
    const sealed = this.keyring.seal(uid, 'erasure', id, subject, mode);
    return { id, subject, formerIds: former.map((hash) => erasureId(reference, hash)), sealed };
  }

  #subjectsOf(uid: string): readonly string[] {
    return [...this.keyring.hashes('erasure', uid), ...this.keyring.formerHashes(uid)];
  }

  // ---- genuine rows

  #mark(meaning: Meaning): string {
    return this.keyring.mark('reference', ...partsOf(meaning));
  }

  /** Whether a process with a storage key has written what this reference means. Reports it, if not. */
  #isGenuine(found: Reference): boolean {
    const { key, reference, mark } = found;
    const isGenuine = this.keyring.isMarked(mark, 'reference', ...partsOf(found));
    if (isGenuine || found.finishedAt !== undefined) this.#unverified.delete(key);
    else this.#unverified.add(key);
    if (!isGenuine) this.#report('reference', key, reference);
    return isGenuine;
  }

  /** Nobody vouches for a reference without a mark: of its users, those are erased whose seals are as old. */
  #isUsable(found: Reference): boolean {
    if (found.mark !== NO_MARK) return this.#isGenuine(found);
    this.#unverified.delete(found.key);
    return true;
  }

  #report(record: 'reference' | 'receipt', id: string, reference: string): void {
    if (this.#reported.has(id) || this.#reported.size === MAX_REPORTED) return;
    this.#reported.add(id);
    this.emit({ type: 'record-unverified', record, reference });
  }

  /** @returns `undefined` if no key vouches for the job and its reference, or opens the uid */
  #pending({ id, subject, sealed, uncertain }: Job, of: Reference): PendingErasure | undefined {
    const { mode, reference, requestedBy } = of;
    if (id !== erasureId(reference, subject)) return undefined;
    if (!this.#isUsable(of)) return undefined;
    const isSent = uncertain === undefined || this.keyring.isMarked(uncertain, 'uncertain', id);
    const row = ['erasure', id, subject, mode] as const;
    const isMarked = isSent && of.mark !== NO_MARK;
    // A user who was requested before there were marks has a seal that no process makes any more.
    const uid =
      (isMarked ? this.keyring.open(sealed, ...row) : undefined) ?? this.keyring.openFormer(sealed, ...row);
    return uid === undefined
      ? undefined
      : { uid, mode, reference, ...(requestedBy !== undefined && { requestedBy }) };
  }

  /** Verifies some of the references, the newest first, and continues with the next call. */
  async verifySome(): Promise<void> {
    const page = await this.storage.references(PER_PAGE, this.#verified);
    for (const found of page) this.#isUsable(found);
    this.#verified = page.length === PER_PAGE ? page.at(-1) : undefined;
  }

  /** How many unfinished references are known that nothing is done for, because their marks do not fit. */
  get unverified(): number {
    return this.#unverified.size;
  }

  // ---- work

  /** @returns what to erase; `undefined` if no storage key vouches for the record: then nothing may be sent */
  open(claim: Claim): PendingErasure | undefined {
    const { reference: of } = claim;
    // Nobody claims users of a list that is not complete, unless somebody moves them to another queue.
    return of && (of.complete || of.canceled) ? this.#pending(claim, of) : undefined;
  }

  /** Immediately before the request is sent. @returns `false` if nothing may be sent: it was paused or canceled since */
  markSending(claim: Claim): Promise<boolean> {
    return this.storage.markSending(claim, this.#uncertain(claim));
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
    const uncertain = job.uncertain !== undefined && !isDone ? (true as const) : undefined;
    const receipt = { mode, requestedBy, requestedAt, doneAt: Date.now(), attempts, ...end, uncertain };
    return this.storage.finishErasure(job, end.outcome, attempts, receiptText(this.keyring, job, receipt));
  }

  /** @param isUncertain whether an attempt of which no answer came may have erased the user */
  retry(claim: Claim, delayMs: number, progress: JobProgress): Promise<void> {
    return this.storage.retry(claim, delayMs, this.#progress(claim, progress));
  }

  async park(claim: Claim, hint: string, progress: JobProgress): Promise<void> {
    await this.storage.park(claim, hint, this.#progress(claim, progress));
    this.changed();
  }

  #progress(claim: Claim, { isUncertain, ...progress }: JobProgress): Progress {
    return { ...progress, uncertain: isUncertain ? (claim.uncertain ?? this.#uncertain(claim)) : undefined };
  }

  #uncertain({ id }: Job): string {
    return this.keyring.mark('uncertain', id);
  }

  /** The unfinished erasures of these users, under all storage keys. @param requests see {@link within} */
  async openErasures(
    uids: readonly string[],
    requests: ErasureRequests = this.storage,
  ): Promise<readonly OpenErasure[]> {
    const uidOf = new Map(uids.flatMap((uid) => this.#subjectsOf(uid).map((hash) => [hash, uid] as const)));
    const subjects = [...uidOf.keys()];
    const found: OpenErasure[] = [];
    for (let from = 0; from < subjects.length; from += MAX_SUBJECTS) {
      const some = await requests.erasuresOf(subjects.slice(from, from + MAX_SUBJECTS), 'open');
      for (const { job, reference: of } of some) {
        const isDue = job.state === 'waiting' && of.complete && !of.paused && !of.canceled;
        const running = isDue && this.#pending(job, of) !== undefined;
        found.push({ uid: uidOf.get(job.subject) ?? '', reference: of.reference, mode: of.mode, running });
      }
    }
    return found;
  }

  // ---- changes of a reference

  /** @returns whether this changed it: a finished or unverified reference stays as it is */
  async setPaused(reference: string, paused: boolean): Promise<boolean> {
    for (let tries = 1; tries <= MAX_TRIES; tries += 1) {
      const found = await this.#found(reference);
      if (found.finishedAt !== undefined || found.paused === paused || !this.#isUsable(found)) return false;
      const mark = found.mark === NO_MARK ? NO_MARK : this.#mark({ ...found, paused });
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
      const next = { ...found, canceled: true, paused: false };
      const mark = found.mark !== NO_MARK && this.#isGenuine(found) ? this.#mark(next) : NO_MARK;
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

  /** Unfinished references that have passed one of these ages, each once for each age over all processes. */
  claimOverdue(agesMs: readonly number[]): Promise<readonly Reference[]> {
    return this.storage.claimOverdue(agesMs);
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
    return statusOf({ ...found, isGenuine: this.#isUsable(found), isOverdue });
  }

  async *receipts(reference: string): AsyncGenerator<ErasureReceipt> {
    let page: readonly Erasure[] = [];
    do {
      page = await this.storage.receipts(reference, PER_PAGE, page.at(-1)?.job.id);
      for (const erasure of page) yield this.#receipt(erasure);
    } while (page.length === PER_PAGE);
  }

  /** Under all storage keys. */
  async *receiptsOf(uid: string): AsyncGenerator<ErasureReceipt> {
    for (const erasure of await this.storage.erasuresOf(this.#subjectsOf(uid), 'done'))
      yield this.#receipt(erasure);
  }

  #receipt(erasure: Erasure): ErasureReceipt {
    const receipt = receiptOf(this.keyring, erasure);
    if (receipt.outcome === 'unverified') this.#report('receipt', erasure.job.id, receipt.reference);
    return receipt;
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
}

/** How far the work on a job has come, without the mark that says so. */
export interface JobProgress extends Omit<Progress, 'uncertain'> {
  readonly isUncertain: boolean;
}

const UNVERIFIED =
  'no storageKey vouches for the record of this reference: it was written with another storageKey, or somebody changed it in ' +
  'the database; cancel it, and give another reference';
const BUSY = 'other calls change this reference at the moment; repeat the call';

export function conflictError(problem: string): ErasureError {
  return new ErasureError('ERR_DEBATE_SPACE_ERASURE_CONFLICT', problem);
}

const partsOf = (of: Meaning): readonly Part[] => [
  ...[of.key, of.reference, of.mode, of.requestedBy, of.isList, of.requestedAt],
  ...[of.complete, of.paused, of.canceled],
];

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
