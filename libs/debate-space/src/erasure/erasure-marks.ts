import * as v from 'valibot';
import type { Emit } from '../events.js';
import type { Keyring, Part } from '../secrets/keyring.js';
import { erasureId } from '../storage/rules.js';
import type { Erasure, Job, NewErasure, Reference } from '../storage/storage.js';
import type { ErasureReceipt, PendingErasure } from './erasure.js';

/** How many unverified rows are remembered, so that each is reported once. */
const MAX_REPORTED = 1_000;
/** Of a reference that was requested before there were marks, or canceled although its mark did not fit. */
const NO_MARK = '';
const MARK_LENGTH = 22;

/** What the mark of a reference vouches for. */
type Meaning = Omit<Reference, 'mark' | 'started' | 'finishedAt' | 'total' | 'counts'>;

/** What a receipt says. It is kept with the job, because its reference may be requested again later, by somebody else. */
const RECEIPT = v.object({
  mode: v.picklist(['anonymize', 'delete']),
  requestedBy: v.exactOptional(v.string()),
  requestedAt: v.number(),
  doneAt: v.number(),
  attempts: v.number(),
  outcome: v.picklist(['erased', 'not-found', 'vetoed', 'canceled']),
  status: v.exactOptional(v.number()),
  loggedOut: v.boolean(),
  reason: v.exactOptional(v.string()),
  uncertain: v.exactOptional(v.literal(true)),
});
const RECEIPT_JSON = v.pipe(v.string(), v.parseJson(), RECEIPT);

/**
 * Seals and marks all that an erasure is executed by and proven with, and verifies it when it is read: a database has other
 * writers.
 */
export class ErasureMarks {
  readonly #reported = new Set<string>();
  readonly #unverified = new Set<string>();

  constructor(
    private readonly keyring: Keyring,
    private readonly emit: Emit,
  ) {}

  /** How many unfinished references are known whose marks do not fit: nothing is done for them. */
  get unverified(): number {
    return this.#unverified.size;
  }

  // ---- references

  mark(meaning: Meaning): string {
    return this.keyring.mark('reference', ...partsOf(meaning));
  }

  /** The mark of a reference after a change. A reference that no key vouches for does not become genuine by it. */
  markAfter(found: Reference, change: Partial<Meaning>): string {
    return found.mark !== NO_MARK && this.#isGenuine(found) ? this.mark({ ...found, ...change }) : NO_MARK;
  }

  /** Nobody vouches for a reference without a mark: only its users whose seals are from before marks existed are erased. */
  isUsable(found: Reference): boolean {
    if (found.mark !== NO_MARK) return this.#isGenuine(found);
    this.#unverified.delete(found.key);
    return true;
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

  #report(record: 'reference' | 'receipt', id: string, reference: string): void {
    if (this.#reported.has(id) || this.#reported.size === MAX_REPORTED) return;
    this.#reported.add(id);
    this.emit({ type: 'record-unverified', record, reference });
  }

  // ---- users

  /** The row of a user. Its uid opens in this reference and mode only. */
  seal(reference: string, mode: Reference['mode'], uid: string): NewErasure {
    const [subject = '', ...former] = this.subjectsOf(uid);
    const id = erasureId(reference, subject);
    const sealed = this.keyring.seal(uid, 'erasure', id, subject, mode);
    return { id, subject, formerIds: former.map((hash) => erasureId(reference, hash)), sealed };
  }

  /** @returns `undefined` if no key vouches for the job and its reference, or opens the uid */
  open({ id, subject, sealed, uncertain }: Job, of: Reference): PendingErasure | undefined {
    const { mode, reference, requestedBy } = of;
    if (id !== erasureId(reference, subject) || !this.isUsable(of)) return undefined;
    const isSent = uncertain === undefined || this.keyring.isMarked(uncertain, 'uncertain', id);
    const isMarked = isSent && of.mark !== NO_MARK;
    const row = ['erasure', id, subject, mode] as const;
    // A user who was requested before there were marks has a seal that no process makes any more.
    const uid =
      (isMarked ? this.keyring.open(sealed, ...row) : undefined) ?? this.keyring.openFormer(sealed, ...row);
    return uid === undefined
      ? undefined
      : { uid, mode, reference, ...(requestedBy !== undefined && { requestedBy }) };
  }

  /** Keyed hashes of a uid under all storage keys, the first key first. */
  subjectsOf(uid: string): readonly string[] {
    return [...this.keyring.hashes('erasure', uid), ...this.keyring.formerHashes(uid)];
  }

  /** Says that the service may have erased the user. */
  uncertain({ id }: Pick<Job, 'id'>): string {
    return this.keyring.mark('uncertain', id);
  }

  // ---- receipts

  /** The text of a receipt, with its mark in front. */
  receiptText({ id, subject }: Job, receipt: v.InferOutput<typeof RECEIPT>): string {
    const text = JSON.stringify(receipt);
    return `${this.keyring.mark('receipt', id, subject, text)}${text}`;
  }

  /** Reads a receipt. Without a mark that fits it is shown as `unverified`, as the row has it. */
  receiptOf({ job, reference: of }: Erasure): ErasureReceipt {
    const { id, subject, details } = job;
    const { reference, mode, requestedBy, requestedAt } = of;
    const [mark, text] = [details.slice(0, MARK_LENGTH), details.slice(MARK_LENGTH)];
    const isGenuine =
      id === erasureId(reference, subject) && this.keyring.isMarked(mark, 'receipt', id, subject, text);
    const { success, output } = v.safeParse(RECEIPT_JSON, text);
    if (isGenuine && success) {
      const dates = { requestedAt: new Date(output.requestedAt), doneAt: new Date(output.doneAt) };
      return { reference, subject, ...output, ...dates };
    }
    this.#report('receipt', id, reference);
    return {
      ...{ reference, subject, mode, ...(requestedBy !== undefined && { requestedBy }) },
      ...{ requestedAt: new Date(requestedAt), doneAt: new Date(job.settledAt ?? 0) },
      ...{ attempts: job.attempts, outcome: 'unverified', loggedOut: false },
    };
  }
}

const partsOf = (of: Meaning): readonly Part[] => [
  ...[of.key, of.reference, of.mode, of.requestedBy, of.isList, of.requestedAt],
  ...[of.complete, of.paused, of.canceled],
];
