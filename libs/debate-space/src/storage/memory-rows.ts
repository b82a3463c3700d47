import { randomUUID } from 'node:crypto';
import { DueHeap } from './due-heap.js';
import type {
  Claim,
  Erasure,
  ErasureOutcome,
  Job,
  LiveSession,
  NewErasure,
  NewLogout,
  NewReference,
  Progress,
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
  readonly jobs: Map<string, JobRow>;
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

/** Drops jobs from a queue that are due at another moment now, or were paused. */
export const isDue = ({ job, list }: JobRow, at: number): boolean =>
  job.dueAt === at && list?.reference.paused !== true;

export const byId = (one: JobRow, other: JobRow): number => (one.job.id < other.job.id ? -1 : 1);
export const byDue = (one: JobRow, other: JobRow): number => (one.job.dueAt ?? 0) - (other.job.dueAt ?? 0);
export const byEnd = (one: JobRow, other: JobRow): number =>
  (one.job.endedAt ?? 0) - (other.job.endedAt ?? 0);

export const isBefore = (one: Reference, other: Reference): boolean =>
  one.requestedAt < other.requestedAt || (one.requestedAt === other.requestedAt && one.key < other.key);

export const jobOf = ({ job }: JobRow): Job => ({ ...job });

export function claimOf(row: JobRow, now: number): Claim {
  row.token = randomUUID();
  const { token, list } = row;
  const ageMs = now - Math.max(row.job.since, list?.resumedAt ?? 0);
  return { ...jobOf(row), token, ageMs, reference: list && structuredClone(list.reference) };
}

export const erasureOf = (row: JobRow): Erasure[] =>
  row.list ? [{ job: jobOf(row), reference: structuredClone(row.list.reference) }] : [];

export const parkedOf = ({ jobs }: ReferenceRow): JobRow[] =>
  [...jobs.values()].filter(({ job }) => job.state === 'parked');

export function statusOf(row: ReferenceRow): ReferenceStatus {
  let retrying: JobRow | undefined;
  for (const each of row.jobs.values())
    if (each.job.failures > 0 && each.job.state === 'waiting' && each.token === undefined)
      if (!retrying || (each.job.dueAt ?? 0) < (retrying.job.dueAt ?? 0)) retrying = each;
  const parked = parkedOf(row).length;
  return { ...structuredClone(row.reference), parked, retrying: retrying && jobOf(retrying) };
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

/** Without a spread: an object that is made by several is ten times as slow. */
export function newJob(
  kind: Job['kind'],
  { id, subject, sealed }: NewLogout | NewErasure,
  details: string,
  now: number,
): Job {
  return {
    id,
    kind,
    subject,
    sealed,
    details,
    attempts: 0,
    failures: 0,
    rejections: 0,
    uncertain: undefined,
    cause: undefined,
    state: 'waiting',
    dueAt: undefined,
    since: now,
    endedAt: undefined,
    outcome: undefined,
    hint: undefined,
  };
}

export function newReference(request: NewReference, key: string, singles: JobQueue): ReferenceRow {
  const { reference, mode, requestedBy, requestedAt, list, mark } = request;
  const isList = list !== undefined;
  const state = { complete: !isList, paused: false, canceled: false, started: false, finishedAt: undefined };
  const counts = { erased: 0, 'not-found': 0, vetoed: 0, canceled: 0 };
  return {
    reference: { key, reference, mode, requestedBy, isList, requestedAt, mark, ...state, total: 0, counts },
    jobs: new Map(),
    queue: isList ? new DueHeap() : singles,
    reader: undefined,
    resumedAt: 0,
    overdueMs: 0,
  };
}
