/* eslint-disable @typescript-eslint/require-await -- the other storages wait, and what an operation throws must reject */
import { randomUUID } from 'node:crypto';
import { StorageError } from '../errors.js';
import { DueHeap } from './due-heap.js';
import type { StorageEngine } from './engine.js';
import {
  byDue,
  byEnd,
  byId,
  claimOf,
  erasureOf,
  isBefore,
  isDue,
  jobOf,
  MemoryJobs,
  newJob,
  newReference,
  parkedOf,
  progressOf,
  retryParked,
  setDue,
  settle,
  statusOf,
  type JobQueue,
  type JobRow,
  type ReferenceRow,
} from './memory-jobs.js';
import { MemorySessions } from './memory-sessions.js';
import { conflictOf, endedAtOf, referenceKey } from './rules.js';
import {
  ENDED_SESSION_MS,
  LEASE_MS,
  MAX_COUNTED,
  MAX_PAUSE_MS,
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
  type NewErasure,
  type NewLogout,
  type NewReference,
  type Progress,
  type Reference,
  type ReferenceStatus,
  type Storage,
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
  readonly #jobs: MemoryJobs;
  /** Logouts, and single erasures. */
  readonly #queues = { logout: new DueHeap<JobRow>(), erasure: new DueHeap<JobRow>() };
  /** The oldest first. */
  readonly #references = new Map<string, ReferenceRow>();
  readonly #sessions = new MemorySessions();
  readonly #pausedUntil = { logout: 0, erasure: 0 };
  #slotsTaken: number[] = [];
  readonly #birth = randomUUID();
  #isClosed = false;

  /** @param maxHistory how many finished logouts are kept: memory has an end */
  constructor(maxHistory = 100_000) {
    this.#jobs = new MemoryJobs(maxHistory);
  }

  // ---- logouts

  async addLogouts(logouts: readonly NewLogout[]): Promise<void> {
    const now = this.#now();
    for (const logout of logouts)
      if (!this.#jobs.find('logout', logout.id))
        this.#jobs.add(newJob('logout', logout, logout.details, now), undefined, this.#queues.logout);
  }

  async finishLogout({ id }: Claim, attempts: number): Promise<void> {
    const row = this.#jobs.find('logout', id);
    if (!row || row.job.state === 'done') return;
    row.job.attempts = attempts;
    this.#jobs.end(row, 'delivered', this.#now());
  }

  async supersedeLogouts(subjects: readonly string[]): Promise<number> {
    const open = this.#jobs.ofSubjects(subjects, 'logout').filter(({ job }) => job.state !== 'done');
    for (const row of open) this.#jobs.end(row, 'superseded', this.#now());
    return open.length;
  }

  async retryLogout(id: string): Promise<boolean> {
    const row = this.#jobs.parkedLogout(id);
    if (row) retryParked(row, { attempts: 0, rejections: 0 }, this.#now());
    return row !== undefined;
  }

  async discardLogout(id: string): Promise<boolean> {
    const row = this.#jobs.parkedLogout(id);
    if (row) this.#jobs.end(row, 'discarded', this.#now());
    return row !== undefined;
  }

  async listLogouts(state: 'waiting' | 'parked', limit: number, skip = 0): Promise<readonly Job[]> {
    const rows = [...this.#jobs.open('logout')].filter(({ job }) => job.state === state);
    rows.sort(state === 'waiting' ? byDue : byEnd);
    return rows.slice(skip, skip + limit).map(jobOf);
  }

  async logoutsOf(subjects: readonly string[]): Promise<readonly Job[]> {
    return this.#jobs.ofSubjects(subjects, 'logout').sort(byId).slice(0, 1_000).map(jobOf);
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
        setDue(row, now + leaseMs);
        claims.push(claimOf(row, now));
      }
    if (claims.length > 0 && claims.length === limit) return { claims, nextMs: 0 };
    const nextAt = Math.min(...queues.map((queue) => queue.first(isDue)?.job.dueAt ?? Infinity));
    const nextMs = nextAt === Infinity ? undefined : Math.max(0, nextAt - now, pauseMs);
    return { claims, nextMs };
  }

  async renew(claims: readonly Claim[], leaseMs = LEASE_MS): Promise<void> {
    for (const row of this.#jobs.held(claims)) setDue(row, this.#now() + leaseMs);
  }

  async giveBack(claims: readonly Claim[]): Promise<void> {
    for (const row of this.#jobs.held(claims)) {
      row.token = undefined;
      setDue(row, this.#now());
    }
  }

  async postpone(claim: Claim, delayMs: number, progress: Progress): Promise<void> {
    for (const row of this.#jobs.held([claim])) {
      row.token = undefined;
      Object.assign(row.job, progressOf(progress));
      setDue(row, this.#now() + delayMs);
    }
  }

  async park(claim: Claim, hint: string, progress: Progress): Promise<void> {
    for (const row of this.#jobs.held([claim])) {
      row.token = undefined;
      Object.assign(row.job, progressOf(progress), { state: 'parked', settledAt: this.#now(), hint });
      setDue(row, undefined);
    }
  }

  async pause(kind: JobKind, ms: number): Promise<void> {
    const now = this.#now();
    this.#pausedUntil[kind] = Math.max(this.#pausedUntil[kind], now + Math.min(ms, MAX_PAUSE_MS));
  }

  async counts(kind: JobKind): Promise<Counts> {
    const counts = { waiting: 0, parked: 0, done: 0 };
    let oldestAt: number | undefined;
    for (const { job, reference } of this.#jobs.open(kind)) {
      counts[job.state] += 1;
      const at = reference ? reference.values.requestedAt : endedAtOf(job.id);
      if (reference || job.state === 'waiting') oldestAt = Math.min(oldestAt ?? at, at);
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
    const { values, jobs } = row;
    const isNew = ({ id, formerIds }: NewErasure): boolean =>
      ![id, ...formerIds].some((known) => jobs.has(known));
    const added = [...new Map(erasures.filter(isNew).map((erasure) => [erasure.id, erasure])).values()];
    const conflict = conflictOf(values, row.reader, request, !known, added.length > 0);
    if (conflict) return { conflict, reference: structuredClone(values) };
    if (list?.isFirst === true) row.reader = list.reader;
    const completed = list?.isLast === true && !values.complete;
    if (completed) Object.assign(values, { complete: true, mark });
    if (added.length > 0 && values.finishedAt !== undefined) {
      Object.assign(values, { finishedAt: undefined, requestedAt, requestedBy, mark });
      row.overdueMs = 0;
      this.#references.delete(key); // it is the newest now
    }
    this.#references.set(key, row);
    for (const erasure of added) this.#jobs.add(newJob('erasure', erasure, '', now), row, row.queue);
    values.total += added.length;
    return { added: added.length, completed, reference: structuredClone(values) };
  }

  async erasuresOf(subjects: readonly string[], which: 'open' | 'done'): Promise<readonly Erasure[]> {
    const rows = this.#jobs
      .ofSubjects(subjects, 'erasure')
      .filter(({ job }) => (job.state === 'done') === (which === 'done'));
    return rows
      .sort(byEnd)
      .reverse()
      .slice(0, which === 'done' ? 1_000 : Infinity)
      .flatMap(erasureOf);
  }

  async markSending(claim: Claim, mark: string): Promise<boolean> {
    const [row] = this.#jobs.held([claim]);
    const reference = row?.reference?.values;
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
    const row = this.#jobs.find('erasure', id);
    if (!row?.reference || row.job.state === 'done') return { isNew: false, finished: undefined };
    Object.assign(row.job, { attempts, details });
    this.#jobs.end(row, outcome, now);
    row.reference.values.counts[outcome] += 1;
    return { isNew: true, finished: settle(row.reference, now) };
  }

  async reference(reference: string): Promise<ReferenceStatus | undefined> {
    const row = this.#references.get(referenceKey(reference));
    return row && statusOf(row);
  }

  async setPaused({ key, mark: known }: Reference, paused: boolean, mark: string): Promise<boolean> {
    const now = this.#now();
    const row = this.#references.get(key);
    if (!row || row.values.finishedAt !== undefined || row.values.mark !== known) return false;
    Object.assign(row.values, { paused, mark });
    if (!paused) this.#resume(row, now);
    return true;
  }

  async retryErasures(reference: string): Promise<number> {
    const row = this.#references.get(referenceKey(reference));
    const some = row ? parkedOf(row).slice(0, STEP) : [];
    for (const one of some) retryParked(one, {}, this.#now());
    return some.length;
  }

  async cancelErasures({ key, mark: known }: Reference, mark: string): Promise<CanceledUsers> {
    const now = this.#now();
    const row = this.#references.get(key);
    if (!row || row.values.finishedAt !== undefined)
      return { more: false, uncertain: [], finished: undefined };
    const { values: canceled, jobs } = row;
    if (!canceled.canceled) {
      if (canceled.mark !== known) return { more: true, uncertain: [], finished: undefined };
      if (canceled.paused) this.#resume(row, now);
      Object.assign(canceled, { canceled: true, paused: false, mark });
    }
    const parked = parkedOf(row).slice(0, STEP);
    const waiting = [...jobs.values()].filter(({ job }) => job.state === 'waiting' && !job.uncertain);
    const removed = [...waiting.slice(0, STEP), ...parked.filter(({ job }) => !job.uncertain)];
    for (const one of removed) this.#jobs.remove(one);
    canceled.counts.canceled += removed.length;
    const uncertain = parked.filter(({ job }) => job.uncertain).map(jobOf);
    return { more: waiting.length >= STEP || parked.length > 0, uncertain, finished: settle(row, now) };
  }

  async references(limit: number, after?: Reference): Promise<readonly ReferenceStatus[]> {
    const newest = [...this.#references.values()].sort((one, other) =>
      isBefore(one.values, other.values) ? 1 : -1,
    );
    const rest = after ? newest.filter(({ values }) => isBefore(values, after)) : newest;
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
      const { requestedAt, finishedAt } = row.values;
      const passedMs = agesMs.findLast((ms) => ms <= now - requestedAt) ?? 0;
      if (finishedAt !== undefined || passedMs <= row.overdueMs) continue;
      row.overdueMs = passedMs;
      overdue.push(structuredClone(row.values));
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
    return this.#sessions.register(session, expiresAt, now + liveMs, isFound, now);
  }

  async endSession(
    session: LiveSession,
    logout: NewLogout | undefined,
    token?: string,
    aliveMs = ENDED_SESSION_MS,
  ): Promise<boolean> {
    const isEnded = this.#sessions.end(session, token, aliveMs, logout !== undefined, this.#now());
    if (isEnded && logout) void this.addLogouts([logout]); // has run when it returns
    return isEnded;
  }

  async dueSessions(limit: number, leaseMs = LEASE_MS): Promise<readonly DueSession[]> {
    return this.#sessions.claimDue(limit, leaseMs, this.#now());
  }

  async postponeSession(session: DueSession, liveMs: number): Promise<void> {
    this.#sessions.postpone(session, this.#now() + liveMs);
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
    this.#sessions.prune(now);
    const outdated: JobRow[] = [];
    for (const row of this.#jobs.history) {
      if (outdated.length === STEP || (row.job.settledAt ?? Infinity) >= now - historyMs) break;
      outdated.push(row);
    }
    for (const [key, { values, jobs }] of this.#references) {
      if ((values.finishedAt ?? Infinity) >= now - receiptsMs) continue;
      outdated.push(...[...jobs.values()].slice(0, STEP - outdated.length));
      if (jobs.size === 0) this.#references.delete(key);
    }
    for (const row of outdated) this.#jobs.remove(row);
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

  #runningQueues(kind: JobKind, only?: string): readonly JobQueue[] {
    if (kind === 'logout') return [this.#queues.logout];
    const lists = [...this.#references.values()].filter(
      ({ values: { isList, complete, paused } }) => isList && complete && !paused,
    );
    if (only !== undefined)
      return lists.flatMap(({ values, queue }) => (values.reference === only ? [queue] : []));
    return [this.#queues.erasure, ...lists.map(({ queue }) => queue)];
  }

  /** The shared queue has dropped single users that were paused. */
  #resume(row: ReferenceRow, now: number): void {
    row.resumedAt = now;
    for (const one of row.jobs.values()) setDue(one, one.job.dueAt);
  }
}
