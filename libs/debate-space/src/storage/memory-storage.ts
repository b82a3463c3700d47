import { randomUUID } from 'node:crypto';
import { StorageError } from '../errors.js';
import { DueHeap } from './due-heap.js';
import {
  byDue,
  byEnd,
  byId,
  claimOf,
  isBefore,
  isDue,
  jobOf,
  newJob,
  newReference,
  parkedOf,
  progressOf,
  receiptOf,
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
  referenceKey,
  type Added,
  type Claim,
  type Claims,
  type Counts,
  type DueSession,
  type ErasureOutcome,
  type Job,
  type JobKind,
  type LiveSession,
  type LogoutOutcome,
  type NewErasure,
  type NewLogout,
  type NewReference,
  type OpenErasure,
  type Progress,
  type Receipt,
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

  addLogouts(logouts: readonly NewLogout[]): Promise<void> {
    return this.#run((now) => {
      for (const logout of logouts)
        if (!this.#jobs.logout.has(logout.id))
          this.#add(newJob('logout', logout, logout.details, now), undefined, this.#queues.logout);
    });
  }

  finishLogout({ id }: Claim, attempts: number): Promise<void> {
    return this.#run((now) => {
      const row = this.#jobs.logout.get(id);
      if (!row || row.job.state === 'done') return;
      row.job.attempts = attempts;
      this.#end(row, 'delivered', now);
    });
  }

  supersedeLogouts(subjects: readonly string[]): Promise<number> {
    return this.#run((now) => {
      const open = this.#ofSubjects(subjects, 'logout').filter(({ job }) => job.state !== 'done');
      for (const row of open) this.#end(row, 'superseded', now);
      return open.length;
    });
  }

  retryLogout(id: string): Promise<boolean> {
    return this.#run((now) => {
      const row = this.#parkedLogout(id);
      if (row) this.#retryParked(row, now, { attempts: 0, rejections: 0 });
      return row !== undefined;
    });
  }

  discardLogout(id: string): Promise<boolean> {
    return this.#run((now) => {
      const row = this.#parkedLogout(id);
      if (row) this.#end(row, 'discarded', now);
      return row !== undefined;
    });
  }

  listLogouts(state: 'waiting' | 'parked', limit: number, skip = 0): Promise<readonly Job[]> {
    return this.#run(() => {
      const rows = [...this.#jobs.logout.values()].filter(({ job }) => job.state === state);
      rows.sort(state === 'waiting' ? byDue : byEnd);
      return rows.slice(skip, skip + limit).map(jobOf);
    });
  }

  logoutsOf(subjects: readonly string[]): Promise<readonly Job[]> {
    return this.#run(() => this.#ofSubjects(subjects, 'logout').sort(byId).slice(0, 1_000).map(jobOf));
  }

  // ---- work on jobs

  claim(kind: JobKind, limit: number, leaseMs = LEASE_MS): Promise<Claims> {
    return this.#run((now) => {
      const pauseMs = this.#pausedUntil[kind] - now;
      const queues = this.#runningQueues(kind);
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
    });
  }

  renew(claims: readonly Claim[], leaseMs = LEASE_MS): Promise<void> {
    return this.#changeHeld(claims, (row, now) => {
      this.#setDue(row, now + leaseMs);
    });
  }

  giveBack(claims: readonly Claim[]): Promise<void> {
    return this.#changeHeld(claims, (row, now) => {
      row.token = undefined;
      this.#setDue(row, now);
    });
  }

  retry(claim: Claim, delayMs: number, progress: Progress): Promise<void> {
    return this.#changeHeld([claim], (row, now) => {
      row.token = undefined;
      Object.assign(row.job, progressOf(progress));
      this.#setDue(row, now + delayMs);
    });
  }

  park(claim: Claim, hint: string, progress: Progress): Promise<void> {
    return this.#changeHeld([claim], (row, now) => {
      row.token = undefined;
      Object.assign(row.job, progressOf(progress), { state: 'parked', endedAt: now, hint });
      this.#setDue(row, undefined);
    });
  }

  /** Leaves jobs alone whose lease was lost. */
  #changeHeld(claims: readonly Claim[], change: (row: JobRow, now: number) => void): Promise<void> {
    return this.#run((now) => {
      for (const claim of claims) {
        const row = this.#held(claim);
        if (row) change(row, now);
      }
    });
  }

  pause(kind: JobKind, ms: number): Promise<void> {
    return this.#run((now) => {
      this.#pausedUntil[kind] = Math.max(this.#pausedUntil[kind], now + ms);
    });
  }

  counts(kind: JobKind): Promise<Counts> {
    return this.#run(() => {
      const counts = { waiting: 0, parked: 0, done: 0 };
      let oldestAt: number | undefined;
      for (const { job, list } of this.#jobs[kind].values()) {
        counts[job.state] += 1;
        const at = list ? list.reference.requestedAt : endedAtOf(job.id);
        const isOpen = list ? list.reference.finishedAt === undefined : job.state === 'waiting';
        if (isOpen) oldestAt = Math.min(oldestAt ?? at, at);
      }
      return { waiting: counts.waiting, parked: counts.parked, oldestAt };
    });
  }

  // ---- erasures

  addErasures(request: NewReference, erasures: readonly NewErasure[]): Promise<Added> {
    return this.#run((now) => {
      const key = referenceKey(request.reference);
      const row = this.#references.get(key) ?? newReference(request, key, now, this.#queues.erasure);
      const { reference, jobs } = row;
      const { mode, requestedBy, list } = request;
      const isNew = ({ id, formerIds }: NewErasure): boolean =>
        ![id, ...formerIds].some((known) => jobs.has(known));
      const added = [...new Map(erasures.filter(isNew).map((erasure) => [erasure.id, erasure])).values()];
      const conflict = conflictOf(reference, row.reader, request, added.length > 0);
      if (conflict) return { conflict, mode: reference.mode };
      if (list?.isFirst === true) row.reader = list.reader;
      const completed = list?.isLast === true && !reference.complete;
      if (completed) reference.complete = true;
      if (added.length > 0 && reference.finishedAt !== undefined) {
        Object.assign(reference, { finishedAt: undefined, requestedAt: now, requestedBy });
        row.overdueMs = 0;
        this.#references.delete(key); // it is the newest now
      }
      this.#references.set(key, row);
      for (const erasure of added) this.#add(newJob('erasure', erasure, '', now), row, row.queue);
      reference.total += added.length;
      return { added: added.length, completed, mode };
    });
  }

  openErasures(subjects: readonly string[]): Promise<readonly OpenErasure[]> {
    return this.#run(() =>
      this.#ofSubjects(subjects, 'erasure').flatMap(({ job: { subject, state }, list }) => {
        if (state === 'done' || !list) return [];
        const { reference, mode, paused, canceled, complete } = list.reference;
        return [
          { subject, reference, mode, running: state === 'waiting' && !paused && !canceled && complete },
        ];
      }),
    );
  }

  markSending(claim: Claim): Promise<boolean> {
    return this.#run(() => {
      const row = this.#held(claim);
      const reference = row?.list?.reference;
      if (!reference || reference.paused || (reference.canceled && !row.job.uncertain)) return false;
      row.job.uncertain = reference.started = true;
      return true;
    });
  }

  finishErasure(
    { id }: Claim,
    outcome: ErasureOutcome,
    attempts: number,
    details: string,
  ): Promise<{ readonly isNew: boolean; readonly finished: Reference | undefined }> {
    return this.#run((now) => {
      const row = this.#jobs.erasure.get(id);
      if (!row?.list || row.job.state === 'done') return { isNew: false, finished: undefined };
      Object.assign(row.job, { attempts, details });
      this.#end(row, outcome, now);
      row.list.reference.counts[outcome] += 1;
      return { isNew: true, finished: settle(row.list, now) };
    });
  }

  reference(reference: string): Promise<ReferenceStatus | undefined> {
    return this.#run(() => {
      const row = this.#references.get(referenceKey(reference));
      return row && statusOf(row);
    });
  }

  setPaused(reference: string, paused: boolean): Promise<boolean> {
    return this.#run((now) => {
      const row = this.#references.get(referenceKey(reference));
      if (!row || row.reference.finishedAt !== undefined || row.reference.paused === paused) return false;
      row.reference.paused = paused;
      if (!paused) this.#resume(row, now);
      return true;
    });
  }

  retryErasures(reference: string): Promise<number> {
    return this.#run((now) => {
      const row = this.#references.get(referenceKey(reference));
      const some = row ? parkedOf(row).slice(0, STEP) : [];
      for (const one of some) this.#retryParked(one, now, {});
      return some.length;
    });
  }

  cancelErasures(
    reference: string,
  ): Promise<{ readonly more: boolean; readonly finished: Reference | undefined }> {
    return this.#run((now) => {
      const row = this.#references.get(referenceKey(reference));
      if (!row || row.reference.finishedAt !== undefined) return { more: false, finished: undefined };
      const { reference: canceled, jobs } = row;
      if (canceled.paused) this.#resume(row, now);
      Object.assign(canceled, { canceled: true, paused: false });
      const unsent = [...jobs.values()].filter(({ job }) => job.state === 'waiting' && !job.uncertain);
      const some = [...parkedOf(row), ...unsent].slice(0, STEP);
      for (const one of some) {
        if (one.job.uncertain) this.#end(one, 'canceled', now);
        else this.#remove(one);
        canceled.counts.canceled += 1;
      }
      return { more: some.length === STEP, finished: settle(row, now) };
    });
  }

  references(limit: number, after?: Reference): Promise<readonly ReferenceStatus[]> {
    return this.#run(() => {
      const newest = [...this.#references.values()].sort((one, other) =>
        isBefore(one.reference, other.reference) ? 1 : -1,
      );
      const rest = after ? newest.filter(({ reference }) => isBefore(reference, after)) : newest;
      return rest.slice(0, limit).map(statusOf);
    });
  }

  receipts(reference: string, limit: number, after = ''): Promise<readonly Receipt[]> {
    return this.#run(() => {
      const jobs = [...(this.#references.get(referenceKey(reference))?.jobs.values() ?? [])];
      const rest = jobs.filter(({ job }) => job.state === 'done' && job.id > after).sort(byId);
      return rest.slice(0, limit).flatMap(receiptOf);
    });
  }

  receiptsOf(subjects: readonly string[]): Promise<readonly Receipt[]> {
    return this.#run(() => {
      const done = this.#ofSubjects(subjects, 'erasure').filter(({ job }) => job.state === 'done');
      return done.sort(byEnd).reverse().slice(0, 1_000).flatMap(receiptOf);
    });
  }

  claimOverdue(agesMs: readonly number[]): Promise<readonly Reference[]> {
    return this.#run((now) => {
      const overdue: Reference[] = [];
      for (const row of this.#references.values()) {
        const { requestedAt, finishedAt } = row.reference;
        const passedMs = agesMs.findLast((ms) => ms <= now - requestedAt) ?? 0;
        if (finishedAt !== undefined || passedMs <= row.overdueMs) continue;
        row.overdueMs = passedMs;
        overdue.push(structuredClone(row.reference));
      }
      return overdue;
    });
  }

  // ---- sessions

  seen(session: LiveSession, expiresAt: number, liveMs: number, isFound = false): Promise<boolean> {
    return this.#run((now) => {
      if (!isFound && this.#hasEnded(session.id, now)) return false;
      const row = { session, expiresAt, dueAt: now + liveMs, token: undefined, endedAt: undefined };
      this.#sessions.set(session.id, row);
      return true;
    });
  }

  gone(
    session: LiveSession,
    logout: NewLogout | undefined,
    token?: string,
    aliveMs = ENDED_SESSION_MS,
  ): Promise<boolean> {
    return this.#run((now) => {
      const row = this.#sessions.get(session.id);
      if (this.#hasEnded(session.id, now, aliveMs) || (token !== undefined && row?.token !== token))
        return false;
      this.#sessions.delete(session.id);
      if (!logout) return true;
      const ended = { session, expiresAt: 0, dueAt: Infinity, token: undefined, endedAt: now };
      this.#sessions.set(session.id, ended);
      void this.addLogouts([logout]); // has run when it returns
      return true;
    });
  }

  dueSessions(limit: number, leaseMs = LEASE_MS): Promise<readonly DueSession[]> {
    return this.#run((now) => {
      const due = [...this.#sessions.values()].filter(({ dueAt }) => dueAt <= now);
      due.sort((one, other) => one.dueAt - other.dueAt);
      return due.slice(0, limit).map((row) => {
        const token = randomUUID();
        Object.assign(row, { token, dueAt: now + leaseMs });
        return { ...row.session, token, expiresAt: row.expiresAt };
      });
    });
  }

  postpone({ id, token }: DueSession, liveMs: number): Promise<void> {
    return this.#run((now) => {
      const row = this.#sessions.get(id);
      if (row?.token === token) Object.assign(row, { token: undefined, dueAt: now + liveMs });
    });
  }

  #hasEnded(id: string, now: number, withinMs = ENDED_SESSION_MS): boolean {
    return (this.#sessions.get(id)?.endedAt ?? -Infinity) > now - Math.min(withinMs, ENDED_SESSION_MS);
  }

  // ---- rate limit, and the storage itself

  takeSlot(slots: number, perMs: number): Promise<number> {
    return this.#run((now) => {
      this.#slotsTaken = this.#slotsTaken.filter((at) => at > now - perMs);
      if (this.#slotsTaken.length >= slots) return Math.max(1, (this.#slotsTaken[0] ?? now) + perMs - now);
      this.#slotsTaken.push(now);
      return 0;
    });
  }

  prune({ historyMs, receiptsMs }: { historyMs: number; receiptsMs: number }): Promise<boolean> {
    return this.#run((now) => {
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
    });
  }

  birth(): Promise<string | undefined> {
    return this.#run(() => this.#birth);
  }

  close(): Promise<void> {
    this.#isClosed = true;
    return Promise.resolve();
  }

  // ---- rows

  /** Runs an operation at once; what it throws becomes a rejection. */
  #run<T>(operation: (now: number) => T): Promise<T> {
    return new Promise((resolve) => {
      if (this.#isClosed) throw new StorageError('The storage is closed');
      resolve(operation(Date.now()));
    });
  }

  #add(job: Job, list: ReferenceRow | undefined, queue: JobQueue): void {
    const row: JobRow = { job, list, queue, token: undefined };
    this.#jobs[job.kind].set(job.id, row);
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

  #retryParked(row: JobRow, now: number, progress: Partial<Progress>): void {
    const untried = { failures: 0, cause: undefined, endedAt: undefined, hint: undefined };
    Object.assign(row.job, progress, untried, { state: 'waiting', since: now });
    this.#setDue(row, now);
  }

  #end(row: JobRow, outcome: LogoutOutcome | ErasureOutcome, now: number): void {
    row.token = undefined;
    Object.assign(row.job, { state: 'done', sealed: '', hint: undefined, endedAt: now, outcome });
    this.#setDue(row, undefined);
    if (row.job.kind !== 'logout') return;
    this.#history.add(row);
    const [oldest] = this.#history;
    if (oldest && this.#history.size > this.maxHistory) this.#remove(oldest);
  }

  #remove(row: JobRow): void {
    const { id, kind, subject } = row.job;
    this.#setDue(row, undefined);
    this.#jobs[kind].delete(id);
    row.list?.jobs.delete(id);
    this.#history.delete(row);
    const ofSubject = this.#bySubject.get(subject);
    ofSubject?.delete(row);
    if (ofSubject?.size === 0) this.#bySubject.delete(subject);
  }

  /** The row of a claim, unless its lease was lost. */
  #held({ id, kind, token }: Claim): JobRow | undefined {
    const row = this.#jobs[kind].get(id);
    return row?.token === token ? row : undefined;
  }

  #ofSubjects(subjects: readonly string[], kind: JobKind): JobRow[] {
    const rows = subjects.flatMap((subject) => [...(this.#bySubject.get(subject) ?? [])]);
    return rows.filter(({ job }) => job.kind === kind);
  }

  #runningQueues(kind: JobKind): readonly JobQueue[] {
    if (kind === 'logout') return [this.#queues.logout];
    const lists = [...this.#references.values()].filter(
      ({ reference: { isList, complete, paused } }) => isList && complete && !paused,
    );
    return [this.#queues.erasure, ...lists.map(({ queue }) => queue)];
  }

  /** The shared queue has dropped single users that were paused. */
  #resume(row: ReferenceRow, now: number): void {
    row.resumedAt = now;
    for (const one of row.jobs.values()) this.#setDue(one, one.job.dueAt);
  }
}
