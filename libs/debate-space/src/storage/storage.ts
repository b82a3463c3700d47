import type { ErasureMode } from '../events.js';

/*
 * What the plugin keeps, as operations on rows: jobs (logouts, and users to be erased), references (requests for erasures),
 * live sessions, slots of the rate limit. Every engine has exactly these operations, and storage-contract.spec.ts runs
 * against each of them.
 *
 * - A rejection (always a `StorageError`) means that the outcome is unknown: every operation may be repeated.
 * - Every operation is bounded in time. Where there may be more work than one call does, the result says so, and the caller
 *   loops.
 * - Moments are milliseconds since 1970 by the clock of the database.
 * - Uids and session ids come sealed or as keyed hashes only.
 */

export type JobKind = 'logout' | 'erasure';

/** How long a claimed job belongs to its process, in milliseconds. The lane renews it. */
export const LEASE_MS = 30_000;
/** A stored pause that ends later than this is not believed: no process writes it. In milliseconds. */
export const MAX_PAUSE_MS = 3_600_000;
/** How long an ended session is remembered, so that two instances do not report the same end, in milliseconds. */
export const ENDED_SESSION_MS = 60_000;

/** A logout to deliver. */
export interface NewLogout {
  /** Begins with the moment at which the session ended in 15 digits, and a hyphen, so that ids sort by age. */
  readonly id: string;
  /** Keyed hash of the uid. */
  readonly subject: string;
  /** The sealed uid. */
  readonly sealed: string;
  /** Why the session ended. */
  readonly details: string;
}

/** A user to be erased. */
export interface NewErasure {
  /** {@link erasureId}. */
  readonly id: string;
  /** Keyed hash of the uid, under the first storage key. */
  readonly subject: string;
  /** The ids that the same user has under the other storage keys. A user who is there under one of them is left alone. */
  readonly formerIds: readonly string[];
  /** The sealed uid. */
  readonly sealed: string;
}

/** How far the work on a job has come. */
export interface Progress {
  /** Requests that were sent. */
  readonly attempts: number;
  /** Failed attempts in a row. */
  readonly failures: number;
  /** How many logout tokens the service answered with 400. */
  readonly rejections: number;
  /** Set if an attempt of which no answer came may have erased the user: a keyed mark. */
  readonly uncertain: string | undefined;
  /** Why the last attempt failed, such as `503` or `ECONNREFUSED`. */
  readonly cause: string | undefined;
}

export interface Job extends Progress {
  readonly id: string;
  readonly kind: JobKind;
  readonly subject: string;
  /** Empty when it has ended. */
  readonly sealed: string;
  /** Of a logout: why the session ended. Of a finished erasure: its receipt. */
  readonly details: string;
  readonly state: 'waiting' | 'parked' | 'done';
  /** When it is due, or its lease ends. Absent unless it waits. */
  readonly dueAt: number | undefined;
  /** When it was added or retried. */
  readonly since: number;
  /** When it was parked or ended: the column `ended_at`. */
  readonly settledAt: number | undefined;
  readonly outcome: LogoutOutcome | ErasureOutcome | undefined;
  /** Of a parked job: the most likely fix. */
  readonly hint: string | undefined;
}

/** A job that this process works on until its lease ends. */
export interface Claim extends Job {
  readonly token: string;
  /** Milliseconds since it was added, retried or resumed. */
  readonly ageMs: number;
  /** Of an erasure. */
  readonly reference: Reference | undefined;
}

export interface Claims {
  /** The earliest due first; single erasures before lists. */
  readonly claims: readonly Claim[];
  /**
   * Milliseconds until more may be due: 0 when `limit` were claimed, `undefined` when none waits. Leases of others count
   * as due when they end.
   */
  readonly nextMs: number | undefined;
}

/** Counting stops here: a count of `MAX_COUNTED + 1` means more than `MAX_COUNTED`. */
export const MAX_COUNTED = 10_000;

/** Of logouts, and of the references of erasures, at most {@link MAX_COUNTED} + 1 are counted, and searched for the oldest. */
export interface Counts {
  readonly waiting: number;
  readonly parked: number;
  /** When the session of the oldest waiting logout ended, or the oldest unfinished reference was requested. */
  readonly oldestAt: number | undefined;
}

/** `superseded`: the user was erased before it was sent. */
export type LogoutOutcome = 'delivered' | 'discarded' | 'superseded';
export type ErasureOutcome = 'erased' | 'not-found' | 'vetoed' | 'canceled';

export interface NewReference {
  /** The name that the host gave. */
  readonly reference: string;
  readonly mode: ErasureMode;
  readonly requestedBy: string | undefined;
  /** By the clock of the caller, because the mark covers it. */
  readonly requestedAt: number;
  /** Of a list: nothing of it is erased until its last part is stored. Absent for a single user. */
  readonly list: ListPart | undefined;
  /** The reference as the caller has read it; `undefined` if it is new to the caller. */
  readonly known: Reference | undefined;
  /** The mark of the reference if this makes it new, completes its list, or begins it anew. */
  readonly mark: string;
}

export interface ListPart {
  /** Random, the same for all parts of one call. The last call that began owns the list. */
  readonly reader: string;
  readonly isFirst: boolean;
  readonly isLast: boolean;
}

/** A request for the erasure of a user, or of a list of users. */
export interface Reference {
  /** {@link referenceKey}: a short name for the ids of its jobs. */
  readonly key: string;
  readonly reference: string;
  readonly mode: ErasureMode;
  readonly requestedBy: string | undefined;
  readonly isList: boolean;
  readonly requestedAt: number;
  /** A keyed mark over what the reference means. The storage compares it, and writes the one that it is given. */
  readonly mark: string;
  /** Whether all of its users are stored. */
  readonly complete: boolean;
  readonly paused: boolean;
  readonly canceled: boolean;
  /** Whether a request was sent for one of its users. */
  readonly started: boolean;
  /** When none of its users was left. A single user added later makes it unfinished again. */
  readonly finishedAt: number | undefined;
  readonly total: number;
  readonly counts: Readonly<Record<ErasureOutcome, number>>;
}

export interface ReferenceStatus extends Reference {
  readonly parked: number;
  /** The job that waits for its next attempt, after a failure. */
  readonly retrying: Job | undefined;
}

/**
 * Why users cannot be added to a reference: it is not as the caller has read it, stands for another mode, was canceled, its
 * list is being read by another call, or is complete.
 */
export type Conflict = 'changed' | 'mode' | 'canceled' | 'other-reader' | 'incomplete' | 'complete';
export type Added =
  | { readonly conflict: Conflict; readonly reference: Reference | undefined }
  | {
      readonly conflict?: undefined;
      /** How many users are new. */
      readonly added: number;
      /** Whether the last part of a list was stored just now. */
      readonly completed: boolean;
      readonly reference: Reference;
    };

/** An erasure of a user, with the reference that it belongs to. */
export interface Erasure {
  readonly job: Job;
  readonly reference: Reference;
}

export interface EndedUser {
  /** Whether the user had not ended before. */
  readonly isNew: boolean;
  /** The reference if it is finished by this. */
  readonly finished: Reference | undefined;
}

export interface CanceledUsers {
  /** Whether there may be more users to cancel, or the reference was not as the caller has read it. */
  readonly more: boolean;
  /** Some of the parked users of whom a request was sent: the caller finishes them as `canceled`. */
  readonly uncertain: readonly Job[];
  /** The reference if it is finished by this. */
  readonly finished: Reference | undefined;
}

/** The operations that can be part of a transaction of the host's. */
export interface ErasureRequests {
  /** At most 500 users, in one transaction with their reference. Users whom the reference has already, done or not, stay. */
  addErasures(reference: NewReference, erasures: readonly NewErasure[]): Promise<Added>;
  /** Those that have not ended, or the 1,000 latest that have. @param subjects at most 1,000 */
  erasuresOf(subjects: readonly string[], which: 'open' | 'done'): Promise<readonly Erasure[]>;
  /** @param reference its name */
  reference(reference: string): Promise<ReferenceStatus | undefined>;
}

/** A transaction that the host has open: runs a statement of the dialect of the storage. */
export interface HostTransaction {
  query(text: string, values?: unknown[]): Promise<unknown>;
}

/** A session of the host, for `session.expiry`. */
export interface LiveSession {
  /** Keyed hash of the session id, and of the uid: a session in which another user logs in is another one. */
  readonly id: string;
  readonly subject: string;
  /** The sealed session id and uid. */
  readonly sealed: string;
}

export interface DueSession extends LiveSession {
  readonly token: string;
  /** By the clock of the host that wrote it. */
  readonly expiresAt: number;
}

export interface Storage extends ErasureRequests {
  // ---- logouts

  /**
   * Durable when it resolves. A logout that is there already, done or not, stays as it is.
   * @param late when it is aborted, logouts that have not left for the database are withdrawn, and the call rejects
   */
  addLogouts(logouts: readonly NewLogout[], late?: AbortSignal): Promise<void>;
  /** Ends a delivered logout, also when its lease was lost: what is done is done. Empties the sealed uid. */
  finishLogout(claim: Claim, attempts: number): Promise<void>;
  /** Waiting and parked logouts of an erased user become `superseded`. @returns how many */
  supersedeLogouts(subjects: readonly string[]): Promise<number>;
  /** Makes a parked logout due now, as if it had never been tried. @returns whether there was one */
  retryLogout(id: string): Promise<boolean>;
  /** Ends a parked logout. @returns whether there was one */
  discardLogout(id: string): Promise<boolean>;
  /** Waiting ones the earliest due first, parked ones the longest parked first. @param limit at most 1,000, in memory any */
  listLogouts(state: 'waiting' | 'parked', limit: number, skip?: number): Promise<readonly Job[]>;
  /** All logouts of a user: waiting, parked, and the history. The oldest 1,000 at most. */
  logoutsOf(subjects: readonly string[]): Promise<readonly Job[]>;

  // ---- work on jobs. A call with a lost lease changes nothing

  /**
   * Due jobs, for `leaseMs`. Nothing while the kind is paused.
   * @param only the name of a reference: claims from its list alone, and does not say when more may be due
   */
  claim(kind: JobKind, limit: number, leaseMs?: number, only?: string): Promise<Claims>;
  renew(claims: readonly Claim[], leaseMs?: number): Promise<void>;
  /** Makes them due immediately. */
  giveBack(claims: readonly Claim[]): Promise<void>;
  /** Makes a claimed job due later. */
  postpone(claim: Claim, delayMs: number, progress: Progress): Promise<void>;
  /** Not due until somebody retries it. */
  park(claim: Claim, hint: string, progress: Progress): Promise<void>;
  /** Nothing of this kind is claimed for `ms`, by no process; never shortens a pause. @param ms at most an hour */
  pause(kind: JobKind, ms: number): Promise<void>;
  counts(kind: JobKind): Promise<Counts>;

  // ---- erasures. A `reference` that is text is the name that the host gave

  /**
   * Notes, immediately before the request is sent, that the erasure may have been executed from now on.
   * @param mark becomes `uncertain`
   * @returns `false` if the reference is not as it was claimed (paused, resumed, canceled), or if the lease was lost: then
   * nothing may be sent
   */
  markSending(claim: Claim, mark: string): Promise<boolean>;
  /**
   * Ends an erasure, also when its lease was lost. Empties the sealed uid, and counts it in the reference.
   * @param receipt becomes `details`
   */
  finishErasure(
    job: Pick<Job, 'id'>,
    outcome: ErasureOutcome,
    attempts: number,
    receipt: string,
  ): Promise<EndedUser>;
  /**
   * @param mark of the reference after the change
   * @returns whether this changed the reference: it was as the caller has read it, and not finished
   */
  setPaused(reference: Reference, paused: boolean, mark: string): Promise<boolean>;
  /** Makes some parked users of a reference due now. @returns how many: the caller loops until 0 */
  retryErasures(reference: string): Promise<number>;
  /**
   * Cancels a reference, and removes some of the users of whom nothing was sent. The first call stops further work, before it
   * removes anything.
   * @param mark of the reference after the change
   */
  cancelErasures(reference: Reference, mark: string): Promise<CanceledUsers>;
  /** The newest first. @param after the last one of the page before @param limit at most 1,000 */
  references(limit: number, after?: Reference): Promise<readonly ReferenceStatus[]>;
  /** Finished erasures of a reference, by id. @param after the last id of the page before @param limit at most 1,000 */
  receipts(reference: string, limit: number, after?: string): Promise<readonly Erasure[]>;
  /**
   * Unfinished references that have passed one of these ages since the last call, some at a time. Over all processes, each
   * reference is returned once for each age; ages that were missed in between count as one.
   * @param agesMs ascending
   */
  claimOverdue(agesMs: readonly number[]): Promise<readonly Reference[]>;

  // ---- sessions, for `session.expiry`

  /**
   * Registers a live session, or its new date.
   * @param liveMs until a sweep looks for it
   * @param isFound whether the host's store was read after the end, and has it: then an end of it is forgotten
   * @returns `false` when the session ended within the last {@link ENDED_SESSION_MS}: nothing has changed
   */
  registerSession(
    session: LiveSession,
    expiresAt: number,
    liveMs: number,
    isFound?: boolean,
  ): Promise<boolean>;
  /**
   * Ends a session, registered or not, and adds the logout, in one transaction. Without a logout, the session is forgotten.
   * @param token of {@link dueSessions}: ends it only if nobody has registered it since
   * @param aliveMs how long ago the host's store had the session with its user, as far as the caller knows: an end before
   * that was an earlier one, and does not count. At most, and by default, {@link ENDED_SESSION_MS}
   * @returns `false` when somebody ended it within `aliveMs`, or the token is outdated: then no logout was added
   */
  endSession(
    session: LiveSession,
    logout: NewLogout | undefined,
    token?: string,
    aliveMs?: number,
  ): Promise<boolean>;
  /** Sessions to look for, each for one process until its lease ends. */
  dueSessions(limit: number, leaseMs?: number): Promise<readonly DueSession[]>;
  /** The host's store still has the session: a sweep looks for it again in `liveMs`. */
  postponeSession(session: DueSession, liveMs: number): Promise<void>;

  // ---- rate limit

  /**
   * Takes a slot: at most `slots` in any window of `perMs`, over all processes.
   * @returns 0, or the milliseconds after which to ask again
   */
  takeSlot(slots: number, perMs: number): Promise<number>;

  // ---- the storage itself

  /** Removes what is older, some at a time. @returns whether there is more */
  prune(keep: { readonly historyMs: number; readonly receiptsMs: number }): Promise<boolean>;
  /** A random mark that changes only when the storage was emptied; `undefined` while it is empty. */
  birth(): Promise<string | undefined>;
  /** The same in a transaction of the host's. Absent where the storage has none. Errors are those of the host's connection. */
  within?(transaction: HostTransaction): ErasureRequests;
  close(): Promise<void>;
}
