import { randomUUID } from 'node:crypto';
import { withTimeout } from '../async/with-timeout.js';
import { AbortedError, StorageError } from '../errors.js';
import type { Emit, EndReason } from '../events.js';
import type { SessionEnd } from '../session-end/session-end.js';
import type { NewLogout } from '../storage/storage.js';
import type { StorageWatch } from '../storage/storage-watch.js';
import { namedUid } from '../uid-rule.js';
import type { LogoutQueues } from './logout-queues.js';
import type { LogoutEntry } from './logout-repository.js';

/** Adds a logout to the storage. @returns `false` when another process has reported the same end */
export type AddLogout = (logout: NewLogout) => Promise<boolean>;

export interface RecorderParts {
  readonly queues: LogoutQueues;
  readonly watch: Pick<StorageWatch, 'degrade'>;
  /** How long the host may wait for the storage, in milliseconds. */
  readonly storageTimeoutMs: number;
  readonly emit: Emit;
  /** Called when logouts were added that are due. */
  readonly onAdded: () => void;
}

const LATE = 'it did not answer in time';
/** How many logouts a shutdown moves: a storage that has just come back may be slow. */
const MAX_MOVED = 1_000;

/** Stores the logouts of sessions that have ended. Only `request` rejects. */
export class LogoutRecorder {
  readonly #parts: RecorderParts;
  #isClosed = false;

  constructor(parts: RecorderParts) {
    this.#parts = parts;
  }

  /**
   * Stores the logout of a session that has ended, at the latest after `storageTimeoutMs` in memory.
   * @param add for a session that the storage knows: adds the logout when it forgets the session
   */
  async record(end: SessionEnd, add?: AddLogout): Promise<void> {
    const entry = this.#entryOf(end);
    if (!entry) return;
    if (!add) this.announce(entry); // before another lane can have delivered it
    const isNew = await this.#store(entry, add);
    if (add && isNew) this.announce(entry);
  }

  /** The end of a session that a sweep has found. Rejects when the storage is away: the sweep finds the session again. */
  async recordExpired(uid: string, add: AddLogout): Promise<void> {
    const { queues, onAdded } = this.#parts;
    const entry = newEntry(uid, 'expired', Date.now());
    if (!(await add(queues.stored.rowOf(entry)))) return;
    onAdded();
    this.announce(entry);
  }

  /** A logout that the host requests; resolves when it is stored. */
  async request(uid: string): Promise<void> {
    if (this.#isClosed) {
      const details = { operation: 'logoutUser', attempts: 0, outcome: 'not-sent', retryable: true } as const;
      throw new AbortedError('the app is shutting down', details);
    }
    const entry = newEntry(uid, 'requested', Date.now());
    await this.#store(entry);
    this.announce(entry);
  }

  /** Tells listeners of a logout. */
  announce({ id, uid, reason }: LogoutEntry): void {
    this.#parts.emit({ type: 'session-ended', id, uid, reason });
  }

  /** From now on only ends of sessions are recorded. */
  close(): void {
    this.#isClosed = true;
  }

  /**
   * Moves what waits in memory to the storage. Call it when nothing delivers from memory any more.
   * @returns how many logouts are lost with this process, because the storage does not take them
   */
  async flush(): Promise<number> {
    const { memory, stored } = this.#parts.queues;
    if (!memory) return 0;
    const left = [
      ...(await memory.storage.listLogouts('waiting', MAX_MOVED)),
      ...(await memory.storage.listLogouts('parked', MAX_MOVED)),
    ];
    if (left.length === 0) return 0;
    const isMoved = stored.storage.addLogouts(left).then(() => true);
    return (await isMoved.catch(() => false)) ? 0 : left.length;
  }

  /** @returns whether this process is the one that reports the end */
  async #store(entry: LogoutEntry, add?: AddLogout): Promise<boolean> {
    const { queues, watch, storageTimeoutMs, onAdded } = this.#parts;
    const { stored, memory } = queues;
    const row = stored.rowOf(entry);
    const adding = add ? add(row) : stored.storage.addLogouts([row]).then(() => true);
    if (!memory) {
      const isNew = await adding;
      if (isNew) onAdded();
      return isNew;
    }
    const failure = adding.catch(causeOf);
    const added = await withTimeout(failure, storageTimeoutMs, LATE);
    if (typeof added === 'string') {
      watch.degrade(added);
      await memory.storage.addLogouts([row]);
    }
    if (added !== false) onAdded();
    return added !== false;
  }

  /** @returns `undefined` when the service cannot know such a uid */
  #entryOf({ uid: reported, reason, endedAt }: SessionEnd): LogoutEntry | undefined {
    const uid = namedUid(reported);
    if (typeof uid === 'string') return newEntry(uid, reason, endedAt.getTime());
    this.#parts.emit({ type: 'fault', where: `the uid ${uid.problem}`, error: 'InvalidUidError' });
    return undefined;
  }
}

/** Of a storage's error what the storage said; of any other the name only. */
function causeOf(error: unknown): string {
  if (error instanceof StorageError) return error.problem;
  return error instanceof Error ? error.name : typeof error;
}

/** The id begins with the moment, so that ids sort by age. */
function newEntry(uid: string, reason: EndReason, endedAt: number): LogoutEntry {
  return { id: `${String(endedAt).padStart(15, '0')}-${randomUUID()}`, uid, reason, endedAt };
}
