import { randomUUID } from 'node:crypto';
import { withTimeout } from '../async/with-timeout.js';
import { AbortedError, StorageError } from '../errors.js';
import type { Emit, EndReason } from '../events.js';
import type { JobLane } from '../jobs/job-lane.js';
import type { SessionEnd } from '../session-end/session-end.js';
import type { DueSession, NewLogout } from '../storage/storage.js';
import type { StorageWatch } from '../storage/storage-watch.js';
import { namedUid } from '../uid-rule.js';
import type { LogoutEntry } from './logout-repository.js';
import type { Logouts } from './logouts.js';

/**
 * The live sessions in the storage, for `session.expiry`: each call ends a session and adds its logout, in one transaction.
 * It resolves to `false` when another process has reported the same end.
 */
export interface LiveSessionEnds {
  end(sid: string, uid: string, logout: NewLogout): Promise<boolean>;
  endExpired(session: DueSession, logout: NewLogout): Promise<boolean>;
}

export interface RecorderParts {
  readonly logouts: Logouts;
  /** The lanes that deliver from the storage and from memory. */
  readonly lanes: {
    readonly stored: Pick<JobLane, 'wake'>;
    readonly memory: Pick<JobLane, 'wake'> | undefined;
  };
  readonly liveSessions: LiveSessionEnds | undefined;
  readonly watch: Pick<StorageWatch, 'degrade' | 'isAway'>;
  /** How long the host may wait for the storage, in milliseconds. */
  readonly storageTimeoutMs: number;
  readonly emit: Emit;
}

const LATE = 'it did not answer in time';

/** Stores the logouts of sessions that have ended. Only `request` rejects. */
export class LogoutRecorder {
  #isClosed = false;

  constructor(private readonly parts: RecorderParts) {}

  /**
   * Stores the logout of a session that has ended, at the latest after `storageTimeoutMs` in memory.
   * @param sid of a session that may be registered as a live one
   */
  async record({ uid: reported, reason, endedAt }: SessionEnd, sid?: string): Promise<void> {
    const { liveSessions, emit } = this.parts;
    const uid = namedUid(reported);
    if (typeof uid !== 'string') {
      emit({ type: 'fault', where: `the uid ${uid.problem}`, error: 'InvalidUidError' });
      return;
    }
    const entry = newEntry(uid, reason, endedAt.getTime());
    if (!liveSessions || sid === undefined) {
      this.#announce(entry); // before a lane can have delivered it
      await this.#add(entry);
    } else if (await this.#store(entry, () => liveSessions.end(sid, reported, this.#rowOf(entry)))) {
      this.#announce(entry); // only now: another process may have reported the same end
    }
  }

  /** The end of a session that a sweep has found. Rejects when the storage is away: the sweep finds the session again. */
  async recordExpired(session: DueSession, uid: string): Promise<void> {
    const { liveSessions, lanes } = this.parts;
    const entry = newEntry(uid, 'expired', Date.now());
    if (!(await liveSessions?.endExpired(session, this.#rowOf(entry)))) return;
    lanes.stored.wake();
    this.#announce(entry);
  }

  /** A logout that the host requests; resolves when it is stored. */
  async request(uid: string): Promise<void> {
    if (this.#isClosed) {
      const details = { operation: 'logoutUser', attempts: 0, outcome: 'not-sent', retryable: true } as const;
      throw new AbortedError('the app is shutting down', details);
    }
    const entry = newEntry(uid, 'requested', Date.now());
    await this.#add(entry);
    this.#announce(entry); // only what is stored: the host is told by the error otherwise
  }

  /** From now on only ends of sessions are recorded. */
  close(): void {
    this.#isClosed = true;
  }

  async #add(entry: LogoutEntry): Promise<void> {
    const { logouts, watch } = this.parts;
    // The watch looks whether the storage answers again: no request of the host waits for that.
    if (logouts.memory && watch.isAway) return this.#keep(entry);
    await this.#store(entry, async (late) => {
      await logouts.stored.add(entry, late);
      return true;
    });
  }

  /**
   * @param write stores it; its signal is aborted when the logout has gone to memory, so that `add` does not store it as well
   * @returns whether this process is the one that reports the end
   */
  async #store(entry: LogoutEntry, write: (late: AbortSignal) => Promise<boolean>): Promise<boolean> {
    const { logouts, lanes, storageTimeoutMs } = this.parts;
    const late = new AbortController();
    const writing = write(late.signal);
    const isFirst = logouts.memory
      ? await withTimeout(writing.catch(problemOf), storageTimeoutMs, LATE)
      : await writing;
    if (isFirst === true) lanes.stored.wake();
    if (typeof isFirst === 'string') {
      late.abort();
      await this.#keep(entry, isFirst);
    }
    return isFirst !== false;
  }

  /** Keeps a logout in memory. @param problem why the storage has not taken it */
  async #keep(entry: LogoutEntry, problem?: string): Promise<void> {
    const { logouts, lanes, watch } = this.parts;
    await logouts.memory?.add(entry);
    lanes.memory?.wake();
    if (problem !== undefined) watch.degrade(problem);
  }

  #rowOf(entry: LogoutEntry): NewLogout {
    return this.parts.logouts.stored.rowOf(entry);
  }

  #announce({ id, uid, reason }: LogoutEntry): void {
    this.parts.emit({ type: 'session-ended', id, uid, reason });
  }
}

/** Of a storage's error what the storage said; of any other the name only. */
function problemOf(error: unknown): string {
  if (error instanceof StorageError) return error.problem;
  return error instanceof Error ? error.name : typeof error;
}

/** The id begins with the moment, so that ids sort by age. */
function newEntry(uid: string, reason: EndReason, endedAt: number): LogoutEntry {
  return { id: `${String(endedAt).padStart(15, '0')}-${randomUUID()}`, uid, reason, endedAt };
}
