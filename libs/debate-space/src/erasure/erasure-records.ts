import { z } from 'zod';
import type { RecordType } from '../storage/record-type.js';
import type { StorageRow } from '../storage/storage.js';
import type { ErasureMode } from '../events.js';

const RECORDS = ['erasurebatch', 'erasureentry', 'erasurereceipt'] as const;
const INDEXES = ['erasuredue', 'erasuretime', 'erasureuser'] as const;
export const ERASURE_FAMILIES = [...RECORDS, ...INDEXES];

export type KeyRange = readonly [from: string, to: string];
/** References are listed by these moments. */
type TimeKind = 'asked' | 'open' | 'due' | 'overdue' | 'finished';

export const MAX_REFERENCE_LENGTH = 128;
const LAST_MOMENT = 999_999_999_999_999;

/** Whether a value is text of this length, without control characters or lone surrogates. */
export function isText(value: unknown, maxLength: number): value is string {
  return (
    typeof value === 'string' && value !== '' && value.length <= maxLength && !/[\p{Cc}\p{Cs}]/u.test(value)
  );
}

/** A reference as part of a key: ASCII, at most 1,152 characters, and no colon. */
const part = (reference: string): string => encodeURIComponent(reference.toWellFormed());
/** The order of the texts is the order of the moments. */
const digits = (moment: number): string =>
  String(Math.min(Math.max(0, Math.floor(moment)), LAST_MOMENT)).padStart(15, '0');
/** All keys that begin with the prefix. */
const startingWith = (prefix: `${string}:`): KeyRange => [prefix, `${prefix.slice(0, -1)};`]; // ';' follows ':'

export const batchKey = (reference: string): string => `erasurebatch:${part(reference)}`;
export const entryKey = (uidHash: string, mode: ErasureMode): string => `erasureentry:${uidHash}:${mode}`;

export const receiptKey = (reference: string, uidHash: string): string =>
  `erasurereceipt:${part(reference)}:${uidHash}`;
export const receiptsOf = (reference: string): KeyRange => startingWith(`erasurereceipt:${part(reference)}:`);

/** Leads from a user to the receipts. */
export const userKey = (uidHash: string, reference: string): string =>
  `erasureuser:${uidHash}:${part(reference)}`;
export const referencesOf = (uidHash: string): KeyRange => startingWith(`erasureuser:${uidHash}:`);

export const timeKey = (kind: TimeKind, at: number, reference: string): string =>
  `erasuretime:${kind}:${digits(at)}:${part(reference)}`;
/** From one moment, inclusive, to another, exclusive. */
export const timesOf = (kind: TimeKind, from = 0, to = Infinity): KeyRange => [
  timeKey(kind, from, ''),
  timeKey(kind, to, ''),
];

/** When an entry is due, for one of its references. */
const dueKey = (reference: string, at: number, uidHash: string): string =>
  `erasuredue:${part(reference)}:${digits(at)}:${uidHash}`;
/** From one moment, inclusive, to another, exclusive. */
export const dueOf = (reference: string, from = 0, to = Infinity): KeyRange => [
  dueKey(reference, from, ''),
  dueKey(reference, to, ''),
];
/** There as long as the batch of the reference counts the entry as failed. */
export const parkedKey = (reference: string, uidHash: string): string =>
  `erasuredue:${part(reference)}:parked:${uidHash}`;
export const parkedOf = (reference: string): KeyRange =>
  startingWith(`erasuredue:${part(reference)}:parked:`);
/** All entries of a reference, due or parked. */
export const entriesOf = (reference: string): KeyRange => startingWith(`erasuredue:${part(reference)}:`);

/** The moment in the key of an index. */
export const momentOf = (key: string): number => Number(key.split(':').at(-2));

/** The last part of a key: a hash, or a reference. One that is damaged leads nowhere. */
export function lastPart(key: string): string {
  const last = key.slice(key.lastIndexOf(':') + 1);
  try {
    return decodeURIComponent(last);
  } catch {
    return last;
  }
}

/** The key of the batch to which an index row leads. */
export const batchOf = ([row]: StorageRow): string => batchKey(lastPart(row));

const MODE = z.enum(['anonymize', 'delete']);

/**
 * All erasures of one reference. Moments are those of the storage's clock, except `askedAt` and `finishedAt`, which
 * people read.
 */
export type StoredBatch = z.infer<typeof STORED_BATCH>;
const STORED_BATCH = z.object({
  reference: z.string(),
  mode: MODE,
  requestedBy: z.string().optional(),
  /** Raised by every change, so that none goes unnoticed by another. */
  revision: z.number(),
  askedAt: z.number(),
  /** When it was requested. */
  since: z.number(),
  complete: z.boolean(),
  /** Which call reads the list; none for a single user. */
  reader: z.string().optional(),
  paused: z.boolean(),
  canceling: z.boolean(),
  started: z.boolean(),
  /** When it was last resumed. */
  resumedSince: z.number().optional(),
  finishedAt: z.number().optional(),
  finishedSince: z.number().optional(),
  /** When it has something to do, at the earliest; absent when it has not. */
  dueAt: z.number().optional(),
  /** When it is reported as overdue. */
  overdueAt: z.number().optional(),
  /** The sum of the other counts and of the users that wait. */
  total: z.number(),
  done: z.number(),
  notFound: z.number(),
  vetoed: z.number(),
  canceled: z.number(),
  failed: z.number(),
});

/** One user's erasure in one mode that is not finished. Moments are those of the storage's clock. */
export type StoredEntry = z.infer<typeof STORED_ENTRY>;
const STORED_ENTRY = z.object({
  uidHash: z.string(),
  mode: MODE,
  /** Random: a later erasure of the same user has another. */
  id: z.string(),
  /** The uid, encrypted. */
  sealed: z.string(),
  /** All references that ask for it, the earliest first; it is done once. */
  references: z.array(z.string()),
  /** When it was requested, or retried: `erasure.giveUpAfterMs` counts from then on. */
  since: z.number(),
  /** When it is due; while it is claimed, when the lease ends. */
  dueAt: z.number(),
  /** The id of the claim: a later claim of the same erasure has another. */
  lease: z.string().optional(),
  /** How many requests were sent. */
  attempts: z.number(),
  /** How often in a row it failed, since it was requested or retried. */
  failures: z.number(),
  /** Whether one of the attempts may have been carried out. */
  unknown: z.boolean(),
  /** How many of the logouts before it the service has answered with 400. */
  rejections: z.number(),
  parked: z.boolean(),
  cause: z.string().optional(),
  /** Why it is parked, and what to do about it. */
  hint: z.string().optional(),
});

/** What is kept of one user's erasure for one reference. Moments are those of the machine's clock. */
export type StoredReceipt = z.infer<typeof STORED_RECEIPT>;
const STORED_RECEIPT = z.object({
  reference: z.string(),
  uidHash: z.string(),
  mode: MODE,
  requestedBy: z.string().optional(),
  askedAt: z.number(),
  doneAt: z.number(),
  attempts: z.number(),
  outcome: z.enum(['erased', 'not-found', 'vetoed', 'canceled']),
  status: z.number().optional(),
  loggedOut: z.boolean(),
  reason: z.string().optional(),
  uncertain: z.literal(true).optional(),
});

export const BATCH: RecordType<StoredBatch> = {
  version: 1,
  key: ({ reference }) => batchKey(reference),
  indexes: ({ reference, since, finishedSince, dueAt, overdueAt }) => [
    timeKey('asked', since, reference),
    finishedSince === undefined
      ? timeKey('open', since, reference)
      : timeKey('finished', finishedSince, reference),
    ...(dueAt === undefined ? [] : [timeKey('due', dueAt, reference)]),
    ...(overdueAt === undefined ? [] : [timeKey('overdue', overdueAt, reference)]),
  ],
  isRecord: (value): value is StoredBatch => STORED_BATCH.safeParse(value).success,
};

export const ENTRY: RecordType<StoredEntry> = {
  version: 1,
  key: ({ uidHash, mode }) => entryKey(uidHash, mode),
  indexes: ({ references, parked, dueAt, uidHash }) =>
    references.map((reference) =>
      parked ? parkedKey(reference, uidHash) : dueKey(reference, dueAt, uidHash),
    ),
  isRecord: (value): value is StoredEntry => STORED_ENTRY.safeParse(value).success,
};

export const RECEIPT: RecordType<StoredReceipt> = {
  version: 1,
  key: ({ reference, uidHash }) => receiptKey(reference, uidHash),
  indexes: ({ reference, uidHash }) => [userKey(uidHash, reference)],
  isRecord: (value): value is StoredReceipt => STORED_RECEIPT.safeParse(value).success,
};
