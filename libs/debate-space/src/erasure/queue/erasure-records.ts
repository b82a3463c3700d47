import { invalidArgument } from '../../errors.js';
import * as v from 'valibot';
import { type JobCodec, jobFamilies, type RecordType, type StorageRow } from 'durable-jobs';

/** The name of the jobs: one for each reference and user. */
export const ERASURE_JOBS = 'erasure';
export const ERASURE_FAMILIES: readonly string[] = [
  ...jobFamilies(ERASURE_JOBS),
  'erasurebatch',
  'erasurereceipt',
  'erasuretime',
  'erasureuser',
];

export type KeyRange = readonly [from: string, to: string];
/** References are listed by these moments. */
type TimeKind = 'asked' | 'open' | 'overdue' | 'finished';

const LAST_MOMENT = 999_999_999_999_999;

/** Whether a value is text of this length, without control characters or lone surrogates. */
function isText(value: unknown, maxLength: number): value is string {
  return (
    typeof value === 'string' && value !== '' && value.length <= maxLength && !/[\p{Cc}\p{Cs}]/u.test(value)
  );
}

/** Whether a value can be a reference: it is shown beside others, and must not turn their text around. */
export function isReference(value: unknown): value is string {
  return isText(value, 128) && !/\p{Bidi_Control}/u.test(value);
}

/** A reference as the group of its jobs, and as part of a key: ASCII, at most 1,152 characters, no colon and no slash. */
export const groupOf = (reference: string): string => encodeURIComponent(reference.toWellFormed());
export const jobIdOf = (reference: string, uidHash: string): string => `${groupOf(reference)}/${uidHash}`;
export const referenceOf = (jobId: string): string => textOf(jobId.slice(0, jobId.indexOf('/')));

/** The order of the texts is the order of the moments. */
const digits = (moment: number): string =>
  String(Math.min(Math.max(0, Math.floor(moment)), LAST_MOMENT)).padStart(15, '0');
/** All keys that begin with the prefix. */
const startingWith = (prefix: `${string}:`): KeyRange => [prefix, `${prefix.slice(0, -1)};`]; // ';' follows ':'

export const batchKey = (reference: string): string => `erasurebatch:${groupOf(reference)}`;
export const receiptKey = (reference: string, uidHash: string): string =>
  `erasurereceipt:${groupOf(reference)}:${uidHash}`;
export const receiptsOf = (reference: string): KeyRange =>
  startingWith(`erasurereceipt:${groupOf(reference)}:`);

/** Leads from a user to the receipts. */
export const userKey = (uidHash: string, reference: string): string =>
  `erasureuser:${uidHash}:${groupOf(reference)}`;
export const referencesOf = (uidHash: string): KeyRange => startingWith(`erasureuser:${uidHash}:`);

const timeKey = (kind: TimeKind, at: number, reference: string): string =>
  `erasuretime:${kind}:${digits(at)}:${groupOf(reference)}`;
/** From one moment, inclusive, to another, exclusive. */
export const timesOf = (kind: TimeKind, from = 0, to = Infinity): KeyRange => [
  timeKey(kind, from, ''),
  timeKey(kind, to, ''),
];

/** The moment in the key of an index. */
export const momentOf = (key: string): number => Number(key.split(':').at(-2));

/** The last part of a key: a hash, or a reference. */
export const lastPart = (key: string): string => textOf(key.slice(key.lastIndexOf(':') + 1));

/** One that is damaged leads nowhere. */
function textOf(part: string): string {
  try {
    return decodeURIComponent(part);
  } catch {
    return part;
  }
}

/** The key of the batch to which an index row leads. */
export const batchOf = ([row]: StorageRow): string => batchKey(lastPart(row));

const MODE = v.picklist(['anonymize', 'delete']);

/**
 * All erasures of one reference. Moments are those of the storage's clock, except `requestedAt` and `finishedAt`, which
 * people read.
 */
export type StoredBatch = v.InferOutput<typeof STORED_BATCH>;
const STORED_BATCH = v.object({
  reference: v.string(),
  mode: MODE,
  requestedBy: v.optional(v.string()),
  /** Raised by every change, so that none goes unnoticed by another. */
  revision: v.number(),
  requestedAt: v.number(),
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
  /** When it is reported as overdue. */
  overdueAt: v.optional(v.number()),
  /** The user whose attempt has failed last. */
  retrying: v.optional(v.string()),
  /** How many there are, and how many of them ended in which way. */
  total: v.number(),
  done: v.number(),
  notFound: v.number(),
  vetoed: v.number(),
  canceled: v.number(),
});

/** One user's erasure for one reference that is not finished, in its job; the key of the job is the hash of the uid. */
export type StoredErasure = v.InferOutput<typeof STORED_ERASURE>;
const STORED_ERASURE = v.object({
  mode: MODE,
  /** The uid, encrypted for this job and its mode. */
  sealed: v.string(),
  /** When it was requested, or retried, by the clock of the storage: `erasure.giveUpAfterMs` counts from then on. */
  since: v.number(),
  /** How many requests were sent. */
  attempts: v.number(),
  /** How often in a row it failed, since it was requested or retried. */
  failures: v.number(),
  /** Whether one of the attempts may have been carried out. */
  unknown: v.boolean(),
  /** How many of the logouts before it the service has answered with 400. */
  rejections: v.number(),
  cause: v.optional(v.string()),
});

/** What is kept of one user's erasure for one reference. Moments are those of the machine's clock. */
export type StoredReceipt = v.InferOutput<typeof STORED_RECEIPT>;
const STORED_RECEIPT = v.object({
  reference: v.string(),
  uidHash: v.string(),
  mode: MODE,
  requestedBy: v.optional(v.string()),
  requestedAt: v.number(),
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
  indexes: ({ reference, since, finishedSince, overdueAt }) => [
    timeKey('asked', since, reference),
    finishedSince === undefined
      ? timeKey('open', since, reference)
      : timeKey('finished', finishedSince, reference),
    ...(overdueAt === undefined ? [] : [timeKey('overdue', overdueAt, reference)]),
  ],
  isRecord: (value): value is StoredBatch => v.is(STORED_BATCH, value),
};

export const ERASURE: JobCodec<StoredErasure> = {
  encode: (erasure) => erasure,
  decode: (stored) => (v.is(STORED_ERASURE, stored) ? stored : undefined),
};

export const RECEIPT: RecordType<StoredReceipt> = {
  version: 1,
  key: ({ reference, uidHash }) => receiptKey(reference, uidHash),
  indexes: ({ reference, uidHash }) => [userKey(uidHash, reference)],
  isRecord: (value): value is StoredReceipt => v.is(STORED_RECEIPT, value),
};

const BATCH_REQUEST = v.object({
  mode: v.picklist(['anonymize', 'delete'], "mode must be 'anonymize' or 'delete'"),
  reference: v.custom<string>(
    isReference,
    'reference must be a text of 1 to 128 characters, without control characters, controls of the text direction or ' +
      'lone surrogates',
  ),
  requestedBy: v.optional(
    v.custom<string>(
      (value) => isText(value, 256),
      'requestedBy must be a text of 1 to 256 characters, without control characters or lone surrogates',
    ),
  ),
});

/** What a request says beside the uids. */
export type BatchRequest = v.InferOutput<typeof BATCH_REQUEST>;

/** Checks what a request says beside the uids. @throws {@link InvalidArgumentError} */
export function batchRequest(request: BatchRequest): BatchRequest {
  const { mode, reference, requestedBy } = Object(request) as Partial<BatchRequest>;
  const { success, output, issues } = v.safeParse(BATCH_REQUEST, { mode, reference, requestedBy });
  if (!success) throw invalidArgument('requestErasure', issues[0].message);
  return output;
}
