import type { Keyring } from '../secrets/keyring.js';
import { endedAtOf } from '../storage/rules.js';
import type { Claim, Job, NewLogout, Progress, Storage } from '../storage/storage.js';
import type { EndReason } from '../events.js';

/** The intent to log a user out: never a token (tokens live two minutes), never a session id. */
export interface LogoutEntry {
  /** Begins with `endedAt` in 15 digits, and a hyphen. */
  readonly id: string;
  readonly uid: string;
  readonly reason: EndReason;
  /** Milliseconds since 1970. */
  readonly endedAt: number;
}

/** One logout of a user: where it stands, or what became of it. */
export interface LogoutHistoryEntry {
  readonly id: string;
  readonly state: 'pending' | 'parked' | 'delivered' | 'discarded' | 'superseded';
  readonly reason: EndReason;
  readonly endedAt: Date;
  readonly attempts: number;
  /** Why the last attempt failed. */
  readonly cause?: string | undefined;
  /** Of a parked logout: the most likely fix. */
  readonly hint?: string | undefined;
  /** When a waiting logout is sent, at the earliest. */
  readonly dueAt?: Date | undefined;
  /** Of a finished logout. */
  readonly finishedAt?: Date | undefined;
}

/** A logout that is not sent until somebody retries it. */
export interface ParkedLogout {
  readonly id: string;
  /** Personal data: not for logs or metrics. Empty when no storage key opens it. */
  readonly uid: string;
  readonly reason: EndReason;
  readonly endedAt: Date;
  readonly parkedAt: Date;
  readonly attempts: number;
  /** The last answer's status, or why there was no answer; `unreadable` when no storage key opens the uid. */
  readonly cause: string;
  /** The most likely fix. */
  readonly hint: string;
}

/** How many logouts there are. */
export interface LogoutCounts {
  readonly pending: number;
  readonly parked: number;
  /** How long ago the session of the oldest pending logout ended, in milliseconds; absent when none is pending. */
  readonly oldestPendingMs?: number;
}

const OUTCOMES = { delivered: 'delivered', discarded: 'discarded', superseded: 'superseded' } as const;
const isOutcome = (text = ''): text is keyof typeof OUTCOMES => text in OUTCOMES;

/** The logouts of an application in a storage, with their uids sealed. */
export class LogoutRepository {
  constructor(
    private readonly storage: Storage,
    private readonly keyring: Keyring,
    private readonly historyRetentionMs: number,
  ) {}

  /**
   * Durable when it resolves.
   * @param late when it is aborted before the logout has left for the database, the logout is withdrawn, and the call rejects
   */
  add(entry: LogoutEntry, late?: AbortSignal): Promise<void> {
    return this.storage.addLogouts([this.rowOf(entry)], late);
  }

  /** Ends a delivered logout. */
  finish(claim: Claim, attempts: number): Promise<void> {
    return this.storage.finishLogout(claim, attempts);
  }

  /** Makes a claimed logout due immediately, as if it had not been tried. */
  giveBack(claim: Claim): Promise<void> {
    return this.storage.giveBack([claim]);
  }

  /** Makes a claimed logout due later. */
  postpone(claim: Claim, delayMs: number, progress: Progress): Promise<void> {
    return this.storage.postpone(claim, delayMs, progress);
  }

  /** Does not send a claimed logout until somebody retries it. */
  park(claim: Claim, hint: string, progress: Progress): Promise<void> {
    return this.storage.park(claim, hint, progress);
  }

  /** No process claims a logout for `ms`. */
  pause(ms: number): Promise<void> {
    return this.storage.pause('logout', ms);
  }

  /** Makes a parked logout due now. @returns whether there was one */
  retry(id: string): Promise<boolean> {
    return this.storage.retryLogout(id);
  }

  /** Ends a parked logout. @returns whether there was one */
  discard(id: string): Promise<boolean> {
    return this.storage.discardLogout(id);
  }

  /** Every logout that waits or is parked, however many: for a repository in memory. */
  async open(): Promise<readonly LogoutEntry[]> {
    const jobs = await Promise.all([
      this.storage.listLogouts('waiting', Infinity),
      this.storage.listLogouts('parked', Infinity),
    ]);
    return jobs.flat().flatMap((job) => this.entryOf(job) ?? []);
  }

  /** The row of a logout, which the storage takes. */
  rowOf({ id, uid, reason }: LogoutEntry): NewLogout {
    const subject = this.keyring.hash('logout', uid);
    return { id, subject, sealed: this.keyring.seal(uid, 'logout', id, subject, reason), details: reason };
  }

  /** @returns `undefined` when no storage key opens the uid, or when somebody without a key has changed the row */
  entryOf({ id, subject, sealed, details }: Job): LogoutEntry | undefined {
    const uid =
      this.keyring.open(sealed, 'logout', id, subject, details) ??
      this.keyring.openFormer(sealed, 'logout', id, subject, undefined);
    return uid === undefined ? undefined : { id, uid, reason: details as EndReason, endedAt: endedAtOf(id) };
  }

  async counts(): Promise<LogoutCounts> {
    const { waiting, parked, oldestAt } = await this.storage.counts('logout');
    const oldest = oldestAt !== undefined && { oldestPendingMs: Math.max(0, Date.now() - oldestAt) };
    return { pending: waiting, parked, ...oldest };
  }

  /** The longest parked first. */
  async parked(limit: number, skip: number): Promise<readonly ParkedLogout[]> {
    const jobs = await this.storage.listLogouts('parked', limit, skip);
    return jobs.map((job) => ({
      ...endOf(job),
      uid: this.entryOf(job)?.uid ?? '',
      parkedAt: new Date(job.settledAt ?? 0),
      attempts: job.attempts,
      cause: job.cause ?? 'unreadable',
      hint: job.hint ?? '',
    }));
  }

  /** The logouts of a user with their states, the earliest end first. */
  async history(uid: string): Promise<readonly LogoutHistoryEntry[]> {
    const jobs = await this.storage.logoutsOf(this.#subjectsOf(uid));
    const since = Date.now() - this.historyRetentionMs;
    const kept = jobs.filter(({ state, settledAt = 0 }) => state !== 'done' || settledAt > since);
    return kept.map(historyEntry);
  }

  /** Ends all waiting and parked logouts of a user who is erased. */
  async forget(uid: string): Promise<void> {
    await this.storage.supersedeLogouts(this.#subjectsOf(uid));
  }

  #subjectsOf(uid: string): readonly string[] {
    return [...this.keyring.hashes('logout', uid), ...this.keyring.formerHashes(uid)];
  }
}

const endOf = ({ id, details }: Job) => ({
  id,
  reason: details as EndReason,
  endedAt: new Date(endedAtOf(id)),
});

function historyEntry(job: Job): LogoutHistoryEntry {
  const { state, outcome, attempts, cause, hint, dueAt, settledAt } = job;
  const known = { ...endOf(job), attempts };
  if (isOutcome(outcome))
    return { ...known, state: outcome, ...(settledAt !== undefined && { finishedAt: new Date(settledAt) }) };
  if (state === 'parked') return { ...known, state, cause, hint };
  return { ...known, state: 'pending', cause, ...(dueAt !== undefined && { dueAt: new Date(dueAt) }) };
}
