/* eslint-disable @typescript-eslint/require-await -- the other storages wait, and what an operation throws must reject */
import { randomUUID } from 'node:crypto';
import { StorageError } from '../errors.js';
import { DueHeap } from './due-heap.js';
import {
  byDue,
  byEnd,
  byId,
  claimOf,
  erasureOf,
  isBefore,
  isDue,
  jobOf,
  newJob,
  newReference,
  parkedOf,
  progressOf,
  settle,
  statusOf,
  type JobQueue,
  type JobRow,
  type ReferenceRow,
  type SessionRow,
} from './memory-rows.js';
import {
  conflictOf,
  endedAtOf,
  ENDED_SESSION_MS,
  LEASE_MS,
  MAX_COUNTED,
  MAX_PAUSE_MS,
  referenceKey,
  type Added,
  type CanceledUsers,
  type Claim,
  type Claims,
  type Counts,
  type DueSession,
  type EndedUser,
  type Erasure,
  type ErasureOutcome,
  type Job,
  type JobKind,
  type LiveSession,
  type LogoutOutcome,
  type NewErasure,
  type NewLogout,
  type NewReference,
  type Progress,
  type Reference,
  type ReferenceStatus,
  type Storage,
  type StorageEngine,
} from './storage.js';

/** How many rows one call cancels, retries or prunes at most. */
const STEP = 1_000;

/**
 * Keeps everything in the memory of this process, for development and tests: each opened storage is empty, and what it
 * has ends with the process.
 */
export function memoryStorage(): StorageEngine {
  return {
    name: 'memory',
    guarantee: 'what is stored is lost when this process ends',
    durable: false,
    open: () => Promise.resolve({ storage: new MemoryStorage(), place: undefined, warnings: [] }),
  };
}

/** The operations in the memory of this process. Each is atomic, because none waits. */
export class MemoryStorage implements Storage {
  readonly #jobs = { logout: new Map<string, JobRow>(), erasure: new Map<string, JobRow>() };
  /** Those that have not ended, in the order in which they were added. */
  readonly #open = { logout: new Set<JobRow>(), erasure: new Set<JobRow>() };
  readonly #bySubject = new Map<string, Set<JobRow>>();
  /** Finished logouts, the oldest first. */
  readonly #history = new Set<JobRow>();
  /** Logouts, and single erasures. */
  readonly #queues = { logout: new DueHeap<JobRow>(), erasure: new DueHeap<JobRow>() };
  /** The oldest first. */
  readonly #references = new Map<string, ReferenceRow>();
  readonly #sessions = new Map<string, SessionRow>();
  readonly #pausedUntil = { logout: 0, erasure: 0 };
  #slotsTaken: number[] = [];
  readonly #birth = randomUUID();
  #isClosed = false;

  /** @param maxHistory how many finished logouts are kept: memory has an end */
  constructor(private readonly maxHistory = 100_000) {}

  // ---- logouts

  async addLogouts(logouts: readonly NewLogout[]): Promise<void> {
    const now = this.#now();
    for (const logout of logouts)
      if (!this.#jobs.logout.has(logout.id))
        this.#add(newJob('logout', logout, logout.details, now), undefined, this.#queues.logout);
  }

  async finishLogout({ id }: Claim, attempts: number): Promise<void> {
    const row = this.#jobs.logout.get(id);
    if (!row || row.job.state === 'done') return;
    row.job.attempts = attempts;
    this.#end(row, 'delivered');
  }

  async supersedeLogouts(subjects: readonly string[]): Promise<number> {
    const open = this.#ofSubjects(subjects, 'logout').filter(({ job }) => job.state !== 'done');
    for (const row of open) this.#end(row, 'superseded');
    return open.length;
  }

  async retryLogout(id: string): Promise<boolean> {
    const row = this.#parkedLogout(id);
    if (row) this.#retryParked(row, { attempts: 0, rejections: 0 });
    return row !== undefined;
  }

  async discardLogout(id: string): Promise<boolean> {
    const row = this.#parkedLogout(id);
    if (row) this.#end(row, 'discarded');
    return row !== undefined;
  }

  async listLogouts(state: 'waiting' | 'parked', limit: number, skip = 0): Promise<readonly Job[]> {
    const rows = [...this.#open.logout].filter(({ job }) => job.state === state);
    rows.sort(state === 'waiting' ? byDue : byEnd);
    return rows.slice(skip, skip + limit).map(jobOf);
  }

  async logoutsOf(subjects: readonly string[]): Promise<readonly Job[]> {
    return this.#ofSubjects(subjects, 'logout').sort(byId).slice(0, 1_000).map(jobOf);
  }

  // ---- work on jobs

  async claim(kind: JobKind, limit: number, leaseMs = LEASE_MS, only?: string): Promise<Claims> {
    const now = this.#now();
    const pauseMs = this.#pausedUntil[kind] - now;
    const queues = this.#runningQueues(kind, only);
    const claims: Claim[] = [];
    for (const queue of pauseMs > 0 ? [] : queues)
      for (let row = queue.first(isDue); row && claims.length < limit; row = queue.first(isDue)) {
        if ((row.job.dueAt ?? 0) > now) break;
        this.#setDue(row, now + leaseMs);
        claims.push(claimOf(row, now));
      }
    if (claims.length > 0 && claims.length === limit) return { claims, nextMs: 0 };
    const nextAt = Math.min(...queues.map((queue) => queue.first(isDue)?.job.dueAt ?? Infinity));
    const nextMs = nextAt === Infinity ? undefined : Math.max(0, nextAt - now, pauseMs);
    return { claims, nextMs };
  }

  async renew(claims: readonly Claim[], leaseMs = LEASE_MS): Promise<void> {
    for (const row of this.#held(claims)) this.#setDue(row, this.#now() + leaseMs);
  }

  async giveBack(claims: readonly Claim[]): Promise<void> {
    for (const row of this.#held(claims)) {
      row.token = undefined;
      this.#setDue(row, this.#now());
    }
  }

  async retry(claim: Claim, delayMs: number, progress: Progress): Promise<void> {
    for (const row of this.#held([claim])) {
      row.token = undefined;
      Object.assign(row.job, progressOf(progress));
      this.#setDue(row, this.#now() + delayMs);
    }
  }

  async park(claim: Claim, hint: string, progress: Progress): Promise<void> {
    for (const row of this.#held([claim])) {
      row.token = undefined;
      Object.assign(row.job, progressOf(progress), { state: 'parked', endedAt: this.#now(), hint });
      this.#setDue(row, undefined);
    }
  }

  async pause(kind: JobKind, ms: number): Promise<void> {
    const now = this.#now();
    this.#pausedUntil[kind] = Math.max(this.#pausedUntil[kind], now + Math.min(ms, MAX_PAUSE_MS));
  }

  async counts(kind: JobKind): Promise<Counts> {
    const counts = { waiting: 0, parked: 0, done: 0 };
    let oldestAt: number | undefined;
    for (const { job, list } of this.#open[kind]) {
      counts[job.state] += 1;
      const at = list ? list.reference.requestedAt : endedAtOf(job.id);
      if (list || job.state === 'waiting') oldestAt = Math.min(oldestAt ?? at, at);
      if (counts.waiting + counts.parked > MAX_COUNTED) break;
    }
    return { waiting: counts.waiting, parked: counts.parked, oldestAt };
  }

  // ---- erasures

  async addErasures(request: NewReference, erasures: readonly NewErasure[]): Promise<Added> {
    const now = this.#now();
    const key = referenceKey(request.reference);
    const { requestedAt, requestedBy, list, mark } = request;
    const known = this.#references.get(key);
    if (!known && (request.known ?? list?.isFirst === false))
      return { conflict: request.known ? 'changed' : 'other-reader', reference: undefined };
    const row = known ?? newReference(request, key, this.#queues.erasure);
    const { reference, jobs } = row;
    const isNew = ({ id, formerIds }: NewErasure): boolean =>
      ![id, ...formerIds].some((known) => jobs.has(known));
    const added = [...new Map(erasures.filter(isNew).map((erasure) => [erasure.id, erasure])).values()];
    const conflict = conflictOf(reference, row.reader, request, !known, added.length > 0);
    if (conflict) return { conflict, reference: structuredClone(reference) };
    if (list?.isFirst === true) row.reader = list.reader;
    const completed = list?.isLast === true && !reference.complete;
    if (completed) Object.assign(reference, { complete: true, mark });
    if (added.length > 0 && reference.finishedAt !== undefined) {
      Object.assign(reference, { finishedAt: undefined, requestedAt, requestedBy, mark });
      row.overdueMs = 0;
      this.#references.delete(key); // it is the newest now
    }
    this.#references.set(key, row);
    for (const erasure of added) this.#add(newJob('erasure', erasure, '', now), row, row.queue);
    reference.total += added.length;
    return { added: added.length, completed, reference: structuredClone(reference) };
  }

  async erasuresOf(subjects: readonly string[], which: 'open' | 'done'): Promise<readonly Erasure[]> {
    const rows = this.#ofSubjects(subjects, 'erasure').filter(
      ({ job }) => (job.state === 'done') === (which === 'done'),
    );
    return rows
      .sort(byEnd)
      .reverse()
      .slice(0, which === 'done' ? 1_000 : Infinity)
      .flatMap(erasureOf);
  }

  async markSending(claim: Claim, mark: string): Promise<boolean> {
    const [row] = this.#held([claim]);
    const reference = row?.list?.reference;
    if (!reference || reference.mark !== claim.reference?.mark) return false;
    row.job.uncertain = mark;
    reference.started = true;
    return true;
  }

  async finishErasure(
    { id }: Pick<Job, 'id'>,
    outcome: ErasureOutcome,
    attempts: number,
    details: string,
  ): Promise<EndedUser> {
    const now = this.#now();
    const row = this.#jobs.erasure.get(id);
    if (!row?.list || row.job.state === 'done') return { isNew: false, finished: undefined };
    Object.assign(row.job, { attempts, details });
    this.#end(row, outcome);
    row.list.reference.counts[outcome] += 1;
    return { isNew: true, finished: settle(row.list, now) };
  }

  async reference(reference: string): Promise<ReferenceStatus | undefined> {
    const row = this.#references.get(referenceKey(reference));
    return row && statusOf(row);
  }

  async setPaused({ key, mark: known }: Reference, paused: boolean, mark: string): Promise<boolean> {
    const now = this.#now();
    const row = this.#references.get(key);
    if (!row || row.reference.finishedAt !== undefined || row.reference.mark !== known) return false;
    Object.assign(row.reference, { paused, mark });
    if (!paused) this.#resume(row, now);
    return true;
  }

  async retryErasures(reference: string): Promise<number> {
    const row = this.#references.get(referenceKey(reference));
    const some = row ? parkedOf(row).slice(0, STEP) : [];
    for (const one of some) this.#retryParked(one, {});
    return some.length;
  }

  async cancelErasures({ key, mark: known }: Reference, mark: string): Promise<CanceledUsers> {
    const now = this.#now();
    const row = this.#references.get(key);
    if (!row || row.reference.finishedAt !== undefined)
      return { more: false, uncertain: [], finished: undefined };
    const { reference: canceled, jobs } = row;
    if (!canceled.canceled) {
      if (canceled.mark !== known) return { more: true, uncertain: [], finished: undefined };
      if (canceled.paused) this.#resume(row, now);
      Object.assign(canceled, { canceled: true, paused: false, mark });
    }
    const parked = parkedOf(row).slice(0, STEP);
    const waiting = [...jobs.values()].filter(({ job }) => job.state === 'waiting' && !job.uncertain);
    const removed = [...waiting.slice(0, STEP), ...parked.filter(({ job }) => !job.uncertain)];
    for (const one of removed) this.#remove(one);
    canceled.counts.canceled += removed.length;
    const uncertain = parked.filter(({ job }) => job.uncertain).map(jobOf);
    return { more: waiting.length >= STEP || parked.length > 0, uncertain, finished: settle(row, now) };
  }

  async references(limit: number, after?: Reference): Promise<readonly ReferenceStatus[]> {
    const newest = [...this.#references.values()].sort((one, other) =>
      isBefore(one.reference, other.reference) ? 1 : -1,
    );
    const rest = after ? newest.filter(({ reference }) => isBefore(reference, after)) : newest;
    return rest.slice(0, limit).map(statusOf);
  }

  async receipts(reference: string, limit: number, after = ''): Promise<readonly Erasure[]> {
    const jobs = [...(this.#references.get(referenceKey(reference))?.jobs.values() ?? [])];
    const rest = jobs.filter(({ job }) => job.state === 'done' && job.id > after).sort(byId);
    return rest.slice(0, limit).flatMap(erasureOf);
  }

  async claimOverdue(agesMs: readonly number[]): Promise<readonly Reference[]> {
    const now = this.#now();
    const overdue: Reference[] = [];
    for (const row of this.#references.values()) {
      const { requestedAt, finishedAt } = row.reference;
      const passedMs = agesMs.findLast((ms) => ms <= now - requestedAt) ?? 0;
      if (finishedAt !== undefined || passedMs <= row.overdueMs) continue;
      row.overdueMs = passedMs;
      overdue.push(structuredClone(row.reference));
    }
    return overdue;
  }

  // ---- sessions

  async registerSession(
    session: LiveSession,
    expiresAt: number,
    liveMs: number,
    isFound = false,
  ): Promise<boolean> {
    const now = this.#now();
    if (!isFound && this.#hasEnded(session.id, now)) return false;
    const row = { session, expiresAt, dueAt: now + liveMs, token: undefined, endedAt: undefined };
    this.#sessions.set(session.id, row);
    return true;
  }

  async endSession(
    session: LiveSession,
    logout: NewLogout | undefined,
    token?: string,
    aliveMs = ENDED_SESSION_MS,
  ): Promise<boolean> {
    const now = this.#now();
    const row = this.#sessions.get(session.id);
    if (this.#hasEnded(session.id, now, aliveMs) || (token !== undefined && row?.token !== token))
      return false;
    this.#sessions.delete(session.id);
    if (!logout) return true;
    const ended = { session, expiresAt: 0, dueAt: Infinity, token: undefined, endedAt: now };
    this.#sessions.set(session.id, ended);
    void this.addLogouts([logout]); // has run when it returns
    return true;
  }

  async dueSessions(limit: number, leaseMs = LEASE_MS): Promise<readonly DueSession[]> {
    const now = this.#now();
    const due = [...this.#sessions.values()].filter(({ dueAt }) => dueAt <= now);
    due.sort((one, other) => one.dueAt - other.dueAt);
    return due.slice(0, limit).map((row) => {
      const token = randomUUID();
      Object.assign(row, { token, dueAt: now + leaseMs });
      return { ...row.session, token, expiresAt: row.expiresAt };
    });
  }

  async postpone({ id, token }: DueSession, liveMs: number): Promise<void> {
    const now = this.#now();
    const row = this.#sessions.get(id);
    if (row?.token === token) Object.assign(row, { token: undefined, dueAt: now + liveMs });
  }

  #hasEnded(id: string, now: number, withinMs = ENDED_SESSION_MS): boolean {
    return (this.#sessions.get(id)?.endedAt ?? -Infinity) > now - Math.min(withinMs, ENDED_SESSION_MS);
  }

  // ---- rate limit, and the storage itself

  async takeSlot(slots: number, perMs: number): Promise<number> {
    const now = this.#now();
    this.#slotsTaken = this.#slotsTaken.filter((at) => at > now - perMs);
    if (this.#slotsTaken.length >= slots) return Math.max(1, (this.#slotsTaken[0] ?? now) + perMs - now);
    this.#slotsTaken.push(now);
    return 0;
  }

  async prune({ historyMs, receiptsMs }: { historyMs: number; receiptsMs: number }): Promise<boolean> {
    const now = this.#now();
    for (const [id, { endedAt = Infinity }] of this.#sessions)
      if (endedAt <= now - ENDED_SESSION_MS) this.#sessions.delete(id);
    const outdated: JobRow[] = [];
    for (const row of this.#history) {
      if (outdated.length === STEP || (row.job.endedAt ?? Infinity) >= now - historyMs) break;
      outdated.push(row);
    }
    for (const [key, { reference, jobs }] of this.#references) {
      if ((reference.finishedAt ?? Infinity) >= now - receiptsMs) continue;
      outdated.push(...[...jobs.values()].slice(0, STEP - outdated.length));
      if (jobs.size === 0) this.#references.delete(key);
    }
    for (const row of outdated) this.#remove(row);
    return outdated.length > 0;
  }

  async birth(): Promise<string | undefined> {
    this.#now(); // or it rejects
    return this.#birth;
  }

  async close(): Promise<void> {
    this.#isClosed = true;
  }

  // ---- rows

  /** @throws {@link StorageError} after {@link close} */
  #now(): number {
    if (this.#isClosed) throw new StorageError('The storage is closed');
    return Date.now();
  }

  #add(job: Job, list: ReferenceRow | undefined, queue: JobQueue): void {
    const row: JobRow = { job, list, queue, token: undefined };
    this.#jobs[job.kind].set(job.id, row);
    this.#open[job.kind].add(row);
    list?.jobs.set(job.id, row);
    const ofSubject = this.#bySubject.get(job.subject) ?? new Set();
    this.#bySubject.set(job.subject, ofSubject.add(row));
    this.#setDue(row, job.since);
  }

  /** @param at `undefined` for a job that does not wait */
  #setDue(row: JobRow, at: number | undefined): void {
    row.job.dueAt = at;
    if (at !== undefined) row.queue.push(at, row);
  }

  #parkedLogout(id: string): JobRow | undefined {
    const row = this.#jobs.logout.get(id);
    return row?.job.state === 'parked' ? row : undefined;
  }

  #retryParked(row: JobRow, progress: Partial<Progress>): void {
    const now = this.#now();
    const untried = { failures: 0, cause: undefined, endedAt: undefined, hint: undefined };
    Object.assign(row.job, progress, untried, { state: 'waiting', since: now });
    this.#setDue(row, now);
  }

  #end(row: JobRow, outcome: LogoutOutcome | ErasureOutcome): void {
    row.token = undefined;
    const endedAt = this.#now();
    Object.assign(row.job, { state: 'done', sealed: '', hint: undefined, endedAt, outcome });
    this.#setDue(row, undefined);
    this.#open[row.job.kind].delete(row);
    if (row.job.kind !== 'logout') return;
    this.#history.add(row);
    const [oldest] = this.#history;
    if (oldest && this.#history.size > this.maxHistory) this.#remove(oldest);
  }

  #remove(row: JobRow): void {
    const { id, kind, subject } = row.job;
    this.#setDue(row, undefined);
    this.#jobs[kind].delete(id);
    this.#open[kind].delete(row);
    row.list?.jobs.delete(id);
    this.#history.delete(row);
    const ofSubject = this.#bySubject.get(subject);
    ofSubject?.delete(row);
    if (ofSubject?.size === 0) this.#bySubject.delete(subject);
  }

  /** The rows of claims whose leases were not lost. */
  #held(claims: readonly Claim[]): readonly JobRow[] {
    return claims.flatMap(({ id, kind, token }) => {
      const row = this.#jobs[kind].get(id);
      return row?.token === token ? [row] : [];
    });
  }

  #ofSubjects(subjects: readonly string[], kind: JobKind): JobRow[] {
    const rows = subjects.flatMap((subject) => [...(this.#bySubject.get(subject) ?? [])]);
    return rows.filter(({ job }) => job.kind === kind);
  }

  #runningQueues(kind: JobKind, only?: string): readonly JobQueue[] {
    if (kind === 'logout') return [this.#queues.logout];
    const lists = [...this.#references.values()].filter(
      ({ reference: { isList, complete, paused } }) => isList && complete && !paused,
    );
    if (only !== undefined)
      return lists.flatMap(({ reference, queue }) => (reference.reference === only ? [queue] : []));
    return [this.#queues.erasure, ...lists.map(({ queue }) => queue)];
  }

  /** The shared queue has dropped single users that were paused. */
  #resume(row: ReferenceRow, now: number): void {
    row.resumedAt = now;
    for (const one of row.jobs.values()) this.#setDue(one, one.job.dueAt);
  }
}
