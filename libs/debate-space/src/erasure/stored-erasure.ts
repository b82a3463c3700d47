import type { RecordType } from '../storage/record-type.js';
import type { ErasureMode, ErasureOutcome } from './erasure.js';
import {
  batchKey,
  dueKey,
  entryKey,
  momentKey,
  parkedKey,
  receiptKey,
  userKey,
  waitKey,
} from './erasure-keys.js';

/**
 * All erasures of one reference. Moments are those of the storage's clock, except `askedAt` and `finishedAt`, which
 * people read.
 */
export interface StoredBatch {
  readonly reference: string;
  readonly mode: ErasureMode;
  readonly requestedBy?: string;
  /** Raised by every change, so that none goes unnoticed by another. */
  revision: number;
  readonly askedAt: number;
  /** When it was asked for. */
  since: number;
  complete: boolean;
  /** Which call reads the list; none for a single user. */
  reader?: string;
  paused: boolean;
  cancelling: boolean;
  started: boolean;
  /** When it was last resumed. */
  resumedSince?: number;
  finishedAt?: number;
  finishedSince?: number;
  /** When it has something to do, at the earliest; absent when it has not. */
  dueAt?: number;
  /** When it is reported as overdue. */
  overdueAt?: number;
  total: number;
  done: number;
  notFound: number;
  vetoed: number;
  cancelled: number;
  failed: number;
}

/** One user's erasure in one mode that is not finished. Moments are those of the storage's clock. */
export interface StoredEntry {
  readonly uidHash: string;
  readonly mode: ErasureMode;
  /** Random: a later erasure of the same user has another. */
  readonly id: string;
  /** The uid, encrypted. */
  readonly sealed: string;
  /** All references that ask for it, the earliest first; it is done once. */
  references: string[];
  /** When it was asked for, or retried: `erasure.giveUpAfterMs` counts from then on. */
  since: number;
  /** When it is due; while it is claimed, when the lease ends. */
  dueAt: number;
  /** The id of the claim. */
  lease?: string;
  attempts: number;
  /** How often in a row it failed, since it was asked for or retried. */
  failures: number;
  /** Whether one of the attempts may have been carried out. */
  unknown: boolean;
  /** How many of the logouts before it the service has answered with 400. */
  rejections: number;
  parked: boolean;
  cause?: string;
  /** Why it is parked, and what to do about it. */
  hint?: string;
}

/** What is kept of one user's erasure for one reference. Moments are those of the machine's clock. */
export interface StoredReceipt {
  readonly reference: string;
  readonly uidHash: string;
  readonly mode: ErasureMode;
  readonly requestedBy?: string;
  readonly askedAt: number;
  readonly doneAt: number;
  readonly attempts: number;
  readonly outcome: ErasureOutcome;
  readonly status?: number;
  readonly loggedOut: boolean;
  readonly reason?: string;
  readonly uncertain?: true;
}

/** `total` is the sum of the others and of those that wait. */
const COUNTS = ['total', 'done', 'notFound', 'vetoed', 'cancelled', 'failed'] as const;

export const BATCH: RecordType<StoredBatch> = {
  version: 1,
  key: ({ reference }) => batchKey(reference),
  indexes: ({ reference, since, finishedSince, dueAt, overdueAt }) => [
    momentKey('erasurelist', since, reference),
    finishedSince === undefined
      ? momentKey('erasureopen', since, reference)
      : momentKey('erasurefinished', finishedSince, reference),
    ...(dueAt === undefined ? [] : [momentKey('erasureschedule', dueAt, reference)]),
    ...(overdueAt === undefined ? [] : [momentKey('erasureoverdue', overdueAt, reference)]),
  ],
  isRecord: (value): value is StoredBatch =>
    isErasure(value) &&
    has(value, 'string', ['reference']) &&
    has(value, 'number', ['revision', 'askedAt', 'since', ...COUNTS]) &&
    has(value, 'boolean', ['complete', 'paused', 'cancelling', 'started']) &&
    mayHave(value, 'number', ['resumedSince', 'finishedAt', 'finishedSince', 'dueAt', 'overdueAt']) &&
    mayHave(value, 'string', ['requestedBy', 'reader']),
};

export const ENTRY: RecordType<StoredEntry> = {
  version: 1,
  key: ({ uidHash, mode }) => entryKey(uidHash, mode),
  indexes: ({ references, parked, dueAt, uidHash, mode }) =>
    parked
      ? references.map((reference) => parkedKey(reference, uidHash))
      : [waitKey(dueAt, uidHash, mode), ...references.map((reference) => dueKey(reference, dueAt, uidHash))],
  isRecord: (value): value is StoredEntry =>
    isErasure(value) &&
    has(value, 'string', ['uidHash', 'id', 'sealed']) &&
    has(value, 'number', ['since', 'dueAt', 'attempts', 'failures', 'rejections']) &&
    has(value, 'boolean', ['unknown', 'parked']) &&
    mayHave(value, 'string', ['lease', 'cause', 'hint']) &&
    'references' in value &&
    Array.isArray(value.references) &&
    value.references.every((reference) => typeof reference === 'string'),
};

export const RECEIPT: RecordType<StoredReceipt> = {
  version: 1,
  key: ({ reference, uidHash }) => receiptKey(reference, uidHash),
  indexes: ({ reference, uidHash }) => [userKey(uidHash, reference)],
  isRecord: (value): value is StoredReceipt =>
    isErasure(value) &&
    has(value, 'string', ['reference', 'uidHash', 'outcome']) &&
    has(value, 'number', ['askedAt', 'doneAt', 'attempts']) &&
    has(value, 'boolean', ['loggedOut']),
};

type Fields = Readonly<Record<string, unknown>>;
const typesOf = (value: object, names: readonly string[]): readonly string[] =>
  names.map((name) => typeof (value as Fields)[name]);

function has(value: object, type: string, names: readonly string[]): boolean {
  return typesOf(value, names).every((found) => found === type);
}

function mayHave(value: object, type: string, names: readonly string[]): boolean {
  return typesOf(value, names).every((found) => found === type || found === 'undefined');
}

function isErasure(value: object): boolean {
  return 'mode' in value && (value.mode === 'anonymize' || value.mode === 'delete');
}
