import { randomUUID } from 'node:crypto';
import { DueHeap } from './due-heap.js';
import type {
  Claim,
  Conflict,
  ErasureOutcome,
  Job,
  LiveSession,
  NewErasure,
  NewLogout,
  NewReference,
  Progress,
  Receipt,
  Reference,
  ReferenceStatus,
} from './storage.js';

type Mutable<T> = { -readonly [K in keyof T]: T[K] };

export type JobQueue = DueHeap<JobRow>;

export interface JobRow {
  readonly job: Mutable<Job>;
  readonly list: ReferenceRow | undefined;
  readonly queue: JobQueue;
  token: string | undefined;
}

export interface ReferenceRow {
  readonly reference: Mutable<Reference> & { counts: Record<ErasureOutcome, number> };
  readonly jobs: JobsByState;
  /** Its users wait in a queue of their own if it is a list. */
  readonly queue: JobQueue;
  reader: string | undefined;
  resumedAt: number;
  /** The greatest age that was reported as overdue. */
  overdueMs: number;
}

export interface SessionRow {
  readonly session: LiveSession;
  readonly expiresAt: number;
  dueAt: number;
  token: string | undefined;
  endedAt: number | undefined;
}

/** Rows by id, in the order in which they came into their state. */
export class JobsByState {
  readonly waiting = new Map<string, JobRow>();
  readonly parked = new Map<string, JobRow>();
  readonly done = new Map<string, JobRow>();

  get(id: string): JobRow | undefined {
    return this.waiting.get(id) ?? this.parked.get(id) ?? this.done.get(id);
  }

  /** Puts a row where its state belongs. */
  put(row: JobRow): void {
    this.delete(row.job.id);
    this[row.job.state].set(row.job.id, row);
  }

  delete(id: string): void {
    for (const rows of [this.waiting, this.parked, this.done]) rows.delete(id);
  }
}

export const isDue = ({ job, list }: JobRow, at: number): boolean =>
  job.dueAt === at && list?.reference.paused !== true;

export const byId = (one: JobRow, other: JobRow): number => (one.job.id < other.job.id ? -1 : 1);

export const isBefore = (one: Reference, other: Reference): boolean =>
  one.requestedAt < other.requestedAt || (one.requestedAt === other.requestedAt && one.key < other.key);

export const jobOf = ({ job, list }: JobRow): Job => ({
  ...job,
  dueAt: list?.reference.paused === true ? undefined : job.dueAt,
});

export function claimOf(row: JobRow, now: number): Claim {
  row.token = randomUUID();
  const { token, list } = row;
  const ageMs = now - Math.max(row.job.since, list?.resumedAt ?? 0);
  return { ...jobOf(row), token, ageMs, reference: list && structuredClone(list.reference) };
}

export const receiptOf = (row: JobRow): Receipt[] =>
  row.list ? [{ job: jobOf(row), reference: structuredClone(row.list.reference) }] : [];

export function statusOf({ reference, jobs }: ReferenceRow): ReferenceStatus {
  let retrying: JobRow | undefined;
  for (const row of jobs.waiting.values())
    if (row.job.failures > 0 && row.token === undefined)
      if ((row.job.dueAt ?? 0) < (retrying?.job.dueAt ?? Infinity)) retrying = row;
  return { ...structuredClone(reference), parked: jobs.parked.size, retrying: retrying && jobOf(retrying) };
}

export function conflictOf(
  { reference, reader }: ReferenceRow,
  { mode, list }: NewReference,
  hasNew: boolean,
): Conflict | undefined {
  if (reference.mode !== mode) return 'mode';
  if (reference.canceled) return 'canceled';
  if (!list) return reference.complete ? undefined : 'incomplete';
  if (!list.isFirst && list.reader !== reader) return 'other-reader';
  return hasNew && reference.complete ? 'complete' : undefined;
}

/** When some of the users have ended. @returns the reference if it is finished by this */
export function settle({ reference }: ReferenceRow, now: number): Reference | undefined {
  const { total, counts } = reference;
  const isOver = Object.values(counts).reduce((sum, each) => sum + each, 0) >= total;
  if (!isOver) return undefined;
  reference.finishedAt = now;
  return structuredClone(reference);
}

/** The caller may give a whole claim. */
export const progressOf = ({ attempts, failures, rejections, uncertain, cause }: Progress): Progress => ({
  attempts,
  failures,
  rejections,
  uncertain,
  cause,
});

export const newLogoutJob = (logout: NewLogout, now: number): Job => newJob('logout', logout, now);

export const newErasureJob = (erasure: NewErasure, now: number): Job =>
  newJob('erasure', { ...erasure, details: '' }, now);

/** Without a spread: an object that is made by several is ten times as slow. */
function newJob(kind: Job['kind'], { id, subject, sealed, details }: NewLogout, now: number): Job {
  return {
    id,
    kind,
    subject,
    sealed,
    details,
    attempts: 0,
    failures: 0,
    rejections: 0,
    uncertain: false,
    cause: undefined,
    state: 'waiting',
    dueAt: now,
    since: now,
    endedAt: undefined,
    outcome: undefined,
    hint: undefined,
  };
}

export function newReference(
  request: NewReference,
  key: string,
  now: number,
  singles: JobQueue,
): ReferenceRow {
  const { reference, mode, requestedBy, list } = request;
  const isList = list !== undefined;
  const state = { complete: !isList, paused: false, canceled: false, started: false, finishedAt: undefined };
  const counts = { erased: 0, 'not-found': 0, vetoed: 0, canceled: 0 };
  return {
    reference: { key, reference, mode, requestedBy, isList, requestedAt: now, ...state, total: 0, counts },
    jobs: new JobsByState(),
    queue: isList ? new DueHeap() : singles,
    reader: undefined,
    resumedAt: 0,
    overdueMs: 0,
  };
}
