import { randomUUID } from 'node:crypto';
import { LRUCache } from 'lru-cache';
import type { MaybePromise } from '../../async/maybe-promise.js';
import { Containment } from '../../async/containment.js';
import type { Emit, EndReason } from '../../events.js';
import { AbortedError } from '../../errors.js';
import type { LogoutEntry } from '../../logout/logout.js';
import type { FallbackQueue } from '../../logout/queue/fallback-queue.js';
import { validateUid } from '../../uid.js';
import { isObject } from '../is-object.js';

/** A session that has ended for its user. */
export interface SessionEnd {
  readonly uid: string;
  readonly reason: EndReason;
  /** When, by `performance.now()`: the machine's clock may be put back. */
  readonly at: number;
}

export type EndQueue = Pick<FallbackQueue, 'add' | 'supersede'>;

export interface EndRecorderOptions {
  /** @defaultValue 250 */
  readonly storageTimeoutMs?: number;
  /** Whether a record outlives the process: no answer waits for one that does not. @defaultValue true */
  readonly durable?: boolean;
  /** @defaultValue `'deliver'` */
  readonly onRelogin?: 'deliver' | 'drop';
}

const MAX_REMEMBERED = 10_000;
/** How many of many ends are stored in one commit, and in one turn of the event loop. */
const BATCH = 100;

/** Stores the logouts of sessions that have ended. Only `request` rejects. */
export class EndRecorder {
  /** How long a host may wait for the storage, in milliseconds. Users must always be able to log out. */
  readonly storageTimeoutMs: number;
  /** How long an answer may wait for the record of an end. */
  readonly answerTimeoutMs: number;
  readonly #queue: EndQueue;
  readonly #emit: Emit;
  readonly #containment: Containment;
  #isClosed = false;
  /** When who was reported because of which request, known by its response: one logout per uid and request. */
  readonly #reportedAt = new WeakMap<object, Map<string, number>>();
  /** For `logout.onRelogin: 'drop'`, when users logged in last: an end may be decided after the next login. */
  readonly #loginAt: LRUCache<string, number> | undefined;
  #waiting: LogoutEntry[] = [];
  #storing: Promise<void> | undefined;

  constructor(queue: EndQueue, emit: Emit, options: EndRecorderOptions = {}) {
    this.storageTimeoutMs = options.storageTimeoutMs ?? 250;
    this.answerTimeoutMs = options.durable === false ? 0 : this.storageTimeoutMs;
    this.#queue = queue;
    this.#emit = emit;
    this.#containment = new Containment(emit);
    if (options.onRelogin === 'drop') this.#loginAt = new LRUCache({ max: MAX_REMEMBERED });
  }

  /**
   * Stores the logout, unless one of these causes – responses, most often – was reported for this user.
   * @param since earlier reports do not count, by `performance.now()`: a socket is one request, and may end several sessions
   * @returns resolves when it is stored; a promise only when the storage needs one
   */
  record(end: SessionEnd, causes: readonly unknown[], since = 0): MaybePromise<unknown> {
    if (!this.#isFirstReport(end.uid, since, causes.filter(isObject))) return undefined;
    const entry = this.#entryOf(end);
    return entry && this.#contained(() => this.#queue.add([entry]));
  }

  /** Stores the logout of an end that no answer waits for: those of many ends are stored together, and in slices. */
  async recordWithOthers(end: SessionEnd): Promise<void> {
    const entry = this.#entryOf(end);
    if (!entry) return;
    this.#waiting.push(entry);
    await (this.#storing ??= this.#storeWaiting());
  }

  /** Whether `loggedIn` has an effect. */
  get wantsLogins(): boolean {
    return this.#loginAt !== undefined;
  }

  /**
   * A user has logged in: what is pending from before would close the newer debate session.
   * @param at when, by `performance.now()`; it may be known late, after the next end
   */
  loggedIn(uid: string, at = performance.now()): void {
    if (!this.#loginAt) return;
    this.#loginAt.set(uid, Math.max(at, this.#loginAt.get(uid) ?? at));
    const supersede = async (): Promise<void> => {
      const count = await this.#queue.supersede(uid, dateOf(at));
      if (count > 0) this.#emit({ type: 'logout-superseded', uid, count });
    };
    void this.#contained(supersede);
  }

  /** From now on only ends of sessions are recorded. */
  close(): void {
    this.#isClosed = true;
  }

  /** A logout that the host requests; resolves when it is stored. */
  async request(uid: string): Promise<void> {
    if (this.#isClosed) {
      const details = { operation: 'logoutUser', attempts: 0, outcome: 'not-sent', retryable: true } as const;
      throw new AbortedError('the app is shutting down', details);
    }
    const entry = newEntry({ uid, reason: 'requested', at: performance.now() });
    await this.#queue.add([entry]);
    this.#emit({ type: 'session-ended', id: entry.id, uid, reason: entry.reason });
  }

  async #storeWaiting(): Promise<void> {
    while (this.#waiting.length > 0) {
      await new Promise(setImmediate);
      const batch = this.#waiting.splice(0, BATCH);
      await this.#contained(() => this.#queue.add(batch));
    }
    this.#storing = undefined;
  }

  /** @returns `undefined` when there is nothing to store: no such uid can exist, or the user has logged in again */
  #entryOf(end: SessionEnd): LogoutEntry | undefined {
    const { uid, reason, at } = end;
    const problem = validateUid(uid);
    if (problem !== undefined) {
      this.#emit({ type: 'fault', where: `the uid ${problem}`, error: 'InvalidUidError' });
      return undefined;
    }
    const entry = newEntry(end);
    this.#emit({ type: 'session-ended', id: entry.id, uid, reason });
    if ((this.#loginAt?.get(uid) ?? -Infinity) <= at) return entry;
    this.#emit({ type: 'logout-superseded', uid, count: 1 });
    return undefined;
  }

  /** A report covers what had ended by then. */
  #isFirstReport(uid: string, since: number, causes: readonly object[]): boolean {
    if (causes.some((cause) => (this.#reportedAt.get(cause)?.get(uid) ?? -Infinity) >= since)) return false;
    for (const cause of causes)
      this.#reportedAt.set(
        cause,
        (this.#reportedAt.get(cause) ?? new Map<string, number>()).set(uid, performance.now()),
      );
    return true;
  }

  #contained(work: () => MaybePromise<void>): MaybePromise<unknown> {
    return this.#containment.run<unknown>('outbox', work, undefined);
  }
}

/** The id begins with the moment, so that ids sort by age. */
function newEntry({ uid, reason, at }: SessionEnd): LogoutEntry {
  const endedAt = dateOf(at);
  return { id: `${String(endedAt).padStart(15, '0')}-${randomUUID()}`, uid, reason, endedAt };
}

/** @param at by `performance.now()` @returns by `Date.now()` */
function dateOf(at: number): number {
  return Math.round(Date.now() - (performance.now() - at));
}
