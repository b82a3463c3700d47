import * as v from 'valibot';
import type { RecordType, StorageRow } from 'durable-jobs';
import type { ErasureMode } from '../../events.js';

const RECORDS = ['erasurebatch', 'erasureentry', 'erasurereceipt'] as const;
const INDEXES = ['erasuredue', 'erasuretime', 'erasureuser'] as const;
export const ERASURE_FAMILIES = [...RECORDS, ...INDEXES];

export type KeyRange = readonly [from: string, to: string];
/** References are listed by these moments. */
type TimeKind = 'asked' | 'open' | 'due' | 'overdue' | 'finished';

const LAST_MOMENT = 999_999_999_999_999;

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

const MODE = v.picklist(['anonymize', 'delete']);

/**
 * All erasures of one reference. Moments are those of the storage's clock, except `askedAt` and `finishedAt`, which
 * people read.
 */
export type StoredBatch = v.InferOutput<typeof STORED_BATCH>;
const STORED_BATCH = v.object({
  reference: v.string(),
  mode: MODE,
  requestedBy: v.optional(v.string()),
  /** Raised by every change, so that none goes unnoticed by another. */
  revision: v.number(),
  askedAt: v.number(),
  /** When it was requested. */
  since: v.number(),
  complete: v.boolean(),
  /** Which call reads the list; none for a single user. */
  reader: v.optional(v.string()),
  paused: v.boolean(),
  canceling: v.boolean(),
  started: v.boolean(),
  /** When it was last resumed. */
  resumedSince: v.optional(v.number()),
  finishedAt: v.optional(v.number()),
  finishedSince: v.optional(v.number()),
  /** When it has something to do, at the earliest; absent when it has not. */
  dueAt: v.optional(v.number()),
  /** When it is reported as overdue. */
  overdueAt: v.optional(v.number()),
  /** The sum of the other counts and of the users that wait. */
  total: v.number(),
  done: v.number(),
  notFound: v.number(),
  vetoed: v.number(),
  canceled: v.number(),
  failed: v.number(),
});

/** One user's erasure in one mode that is not finished. Moments are those of the storage's clock. */
export type StoredEntry = v.InferOutput<typeof STORED_ENTRY>;
const STORED_ENTRY = v.object({
  uidHash: v.string(),
  mode: MODE,
  /** Random: a later erasure of the same user has another. */
  id: v.string(),
  /** The uid, encrypted for this entry and these references. */
  sealed: v.string(),
  sealedFor: v.array(v.string()),
  /** All references that ask for it, the earliest first; it is done once. Some that it is sealed for may have left. */
  references: v.array(v.string()),
  /** When it was requested, or retried: `erasure.giveUpAfterMs` counts from then on. */
  since: v.number(),
  /** When it is due; while it is claimed, when the lease ends. */
  dueAt: v.number(),
  /** The id of the claim: a later claim of the same erasure has another. */
  lease: v.optional(v.string()),
  /** How many requests were sent. */
  attempts: v.number(),
  /** How often in a row it failed, since it was requested or retried. */
  failures: v.number(),
  /** Whether one of the attempts may have been carried out. */
  unknown: v.boolean(),
  /** How many of the logouts before it the service has answered with 400. */
  rejections: v.number(),
  parked: v.boolean(),
  cause: v.optional(v.string()),
  /** Why it is parked, and what to do about it. */
  hint: v.optional(v.string()),
});

/** What is kept of one user's erasure for one reference. Moments are those of the machine's clock. */
export type StoredReceipt = v.InferOutput<typeof STORED_RECEIPT>;
const STORED_RECEIPT = v.object({
  reference: v.string(),
  uidHash: v.string(),
  mode: MODE,
  requestedBy: v.optional(v.string()),
  askedAt: v.number(),
  doneAt: v.number(),
  attempts: v.number(),
  outcome: v.picklist(['erased', 'not-found', 'vetoed', 'canceled']),
  status: v.optional(v.number()),
  loggedOut: v.boolean(),
  reason: v.optional(v.string()),
  uncertain: v.optional(v.literal(true)),
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
  isRecord: (value): value is StoredBatch => v.is(STORED_BATCH, value),
};

export const ENTRY: RecordType<StoredEntry> = {
  version: 1,
  key: ({ uidHash, mode }) => entryKey(uidHash, mode),
  indexes: ({ references, parked, dueAt, uidHash }) =>
    references.map((reference) =>
      parked ? parkedKey(reference, uidHash) : dueKey(reference, dueAt, uidHash),
    ),
  isRecord: (value): value is StoredEntry => v.is(STORED_ENTRY, value),
};

export const RECEIPT: RecordType<StoredReceipt> = {
  version: 1,
  key: ({ reference, uidHash }) => receiptKey(reference, uidHash),
  indexes: ({ reference, uidHash }) => [userKey(uidHash, reference)],
  isRecord: (value): value is StoredReceipt => v.is(STORED_RECEIPT, value),
};
