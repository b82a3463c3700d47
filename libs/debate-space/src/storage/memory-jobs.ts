import { randomUUID } from 'node:crypto';
import { DueHeap } from './due-heap.js';
import type {
  Claim,
  Erasure,
  ErasureOutcome,
  Job,
  JobKind,
  LogoutOutcome,
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
  /** Of an erasure. */
  readonly reference: ReferenceRow | undefined;
  readonly queue: JobQueue;
  token: string | undefined;
}

export interface ReferenceRow {
  readonly values: Mutable<Reference> & { counts: Record<ErasureOutcome, number> };
  readonly jobs: Map<string, JobRow>;
  /** Its users wait in a queue of their own if it is a list. */
  readonly queue: JobQueue;
  reader: string | undefined;
  resumedAt: number;
  /** The greatest age that was reported as overdue. */
  overdueMs: number;
}

/** Drops jobs from a queue that are due at another moment now, or were paused. */
export const isDue = ({ job, reference }: JobRow, at: number): boolean =>
  job.dueAt === at && reference?.values.paused !== true;

export const byId = (one: JobRow, other: JobRow): number => (one.job.id < other.job.id ? -1 : 1);
export const byDue = (one: JobRow, other: JobRow): number => (one.job.dueAt ?? 0) - (other.job.dueAt ?? 0);
export const byEnd = (one: JobRow, other: JobRow): number =>
  (one.job.settledAt ?? 0) - (other.job.settledAt ?? 0);

export const isBefore = (one: Reference, other: Reference): boolean =>
  one.requestedAt < other.requestedAt || (one.requestedAt === other.requestedAt && one.key < other.key);

export const jobOf = ({ job }: JobRow): Job => ({ ...job });

export function claimOf(row: JobRow, now: number): Claim {
  row.token = randomUUID();
  const { token, reference } = row;
  const ageMs = now - Math.max(row.job.since, reference?.resumedAt ?? 0);
  return { ...jobOf(row), token, ageMs, reference: reference && structuredClone(reference.values) };
}

export const erasureOf = (row: JobRow): Erasure[] =>
  row.reference ? [{ job: jobOf(row), reference: structuredClone(row.reference.values) }] : [];

export const parkedOf = ({ jobs }: ReferenceRow): JobRow[] =>
  [...jobs.values()].filter(({ job }) => job.state === 'parked');

export function statusOf(row: ReferenceRow): ReferenceStatus {
  let retrying: JobRow | undefined;
  for (const each of row.jobs.values())
    if (each.job.failures > 0 && each.job.state === 'waiting' && each.token === undefined)
      if (!retrying || (each.job.dueAt ?? 0) < (retrying.job.dueAt ?? 0)) retrying = each;
  const parked = parkedOf(row).length;
  return { ...structuredClone(row.values), parked, retrying: retrying && jobOf(retrying) };
}

/** When some of the users have ended. @returns the reference if it is finished by this */
export function settle({ values }: ReferenceRow, now: number): Reference | undefined {
  const { total, counts } = values;
  const isOver = Object.values(counts).reduce((sum, each) => sum + each, 0) >= total;
  if (!isOver) return undefined;
  values.finishedAt = now;
  return structuredClone(values);
}

/** The caller may give a whole claim. */
export const progressOf = ({ attempts, failures, rejections, uncertain, cause }: Progress): Progress => ({
  attempts,
  failures,
  rejections,
  uncertain,
  cause,
});

/** Without a spread: an object that is merged from several is ten times as slow. */
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
    settledAt: undefined,
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
    values: { key, reference, mode, requestedBy, isList, requestedAt, mark, ...state, total: 0, counts },
    jobs: new Map(),
    queue: isList ? new DueHeap() : singles,
    reader: undefined,
    resumedAt: 0,
    overdueMs: 0,
  };
}

/** The jobs of an application, and their indexes. */
export class MemoryJobs {
  readonly #byId = { logout: new Map<string, JobRow>(), erasure: new Map<string, JobRow>() };
  /** Those that have not ended, in the order in which they were added. */
  readonly #open = { logout: new Set<JobRow>(), erasure: new Set<JobRow>() };
  readonly #bySubject = new Map<string, Set<JobRow>>();
  /** Finished logouts, the oldest first. */
  readonly #history = new Set<JobRow>();

  /** @param maxHistory how many finished logouts are kept: memory has an end */
  constructor(private readonly maxHistory: number) {}

  find(kind: JobKind, id: string): JobRow | undefined {
    return this.#byId[kind].get(id);
  }

  parkedLogout(id: string): JobRow | undefined {
    const row = this.find('logout', id);
    return row?.job.state === 'parked' ? row : undefined;
  }

  /** Those that have not ended, in the order in which they were added. */
  open(kind: JobKind): ReadonlySet<JobRow> {
    return this.#open[kind];
  }

  /** Finished logouts, the oldest first. */
  get history(): ReadonlySet<JobRow> {
    return this.#history;
  }

  ofSubjects(subjects: readonly string[], kind: JobKind): JobRow[] {
    const rows = subjects.flatMap((subject) => [...(this.#bySubject.get(subject) ?? [])]);
    return rows.filter(({ job }) => job.kind === kind);
  }

  /** The rows of claims whose leases were not lost. */
  held(claims: readonly Claim[]): readonly JobRow[] {
    return claims.flatMap(({ id, kind, token }) => {
      const row = this.find(kind, id);
      return row?.token === token ? [row] : [];
    });
  }

  add(job: Job, reference: ReferenceRow | undefined, queue: JobQueue): void {
    const row: JobRow = { job, reference, queue, token: undefined };
    this.#byId[job.kind].set(job.id, row);
    this.#open[job.kind].add(row);
    reference?.jobs.set(job.id, row);
    const ofSubject = this.#bySubject.get(job.subject) ?? new Set();
    this.#bySubject.set(job.subject, ofSubject.add(row));
    setDue(row, job.since);
  }

  end(row: JobRow, outcome: LogoutOutcome | ErasureOutcome, settledAt: number): void {
    row.token = undefined;
    Object.assign(row.job, { state: 'done', sealed: '', hint: undefined, settledAt, outcome });
    setDue(row, undefined);
    this.#open[row.job.kind].delete(row);
    if (row.job.kind !== 'logout') return;
    this.#history.add(row);
    const [oldest] = this.#history;
    if (oldest && this.#history.size > this.maxHistory) this.remove(oldest);
  }

  remove(row: JobRow): void {
    const { id, kind, subject } = row.job;
    setDue(row, undefined);
    this.#byId[kind].delete(id);
    this.#open[kind].delete(row);
    row.reference?.jobs.delete(id);
    this.#history.delete(row);
    const ofSubject = this.#bySubject.get(subject);
    ofSubject?.delete(row);
    if (ofSubject?.size === 0) this.#bySubject.delete(subject);
  }
}

/** @param at `undefined` for a job that does not wait */
export function setDue(row: JobRow, at: number | undefined): void {
  row.job.dueAt = at;
  if (at !== undefined) row.queue.push(at, row);
}

export function retryParked(row: JobRow, progress: Partial<Progress>, now: number): void {
  const untried = { failures: 0, cause: undefined, settledAt: undefined, hint: undefined };
  Object.assign(row.job, progress, untried, { state: 'waiting', since: now });
  setDue(row, now);
}
