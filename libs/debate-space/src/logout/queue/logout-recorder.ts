import { randomUUID } from 'node:crypto';
import { LRUCache } from 'lru-cache';
import type { SessionEnd } from 'nestjs-session-end';
import { Containment } from '../../async/containment.js';
import { isPromise, type MaybePromise, chain } from '../../async/maybe-promise.js';
import { AbortedError } from '../../errors.js';
import type { Emit, EndReason } from '../../events.js';
import { validateUid } from '../../uid.js';
import type { LogoutEntry } from '../logout.js';
import type { FallbackQueue } from './fallback-queue.js';
import { timeoutOrThrow } from '../../async/with-timeout.js';

export type EndQueue = Pick<FallbackQueue, 'add' | 'supersede'>;

export interface LogoutRecorderOptions {
  /** @defaultValue `'deliver'` */
  readonly onRelogin?: 'deliver' | 'drop';
}

const MAX_REMEMBERED = 10_000;
/** So many ends of one turn of the event loop are stored at once; more of them, such as those of a job, together. */
const DIRECT = 4;
/** How many are stored in one commit, and in one turn of the event loop. */
const BATCH = 100;

/** Stores the logouts of sessions that have ended. Only `request` rejects. */
export class LogoutRecorder {
  readonly #queue: EndQueue;
  readonly #emit: Emit;
  readonly #containment: Containment;
  #isClosed = false;
  /** For `logout.onRelogin: 'drop'`, when users logged in last: an end may be decided after the next login. */
  readonly #loginAt: LRUCache<string, number> | undefined;
  /** How many ends this turn of the event loop has had. */
  #inTurn = 0;
  #waiting: LogoutEntry[] = [];
  #turn: Promise<unknown> | undefined;

  constructor(queue: EndQueue, emit: Emit, options: LogoutRecorderOptions = {}) {
    this.#queue = queue;
    this.#emit = emit;
    this.#containment = new Containment(emit);
    if (options.onRelogin === 'drop') this.#loginAt = new LRUCache({ max: MAX_REMEMBERED });
  }

  /** Whether {@link loggedIn} has an effect. */
  get wantsLogins(): boolean {
    return this.#loginAt !== undefined;
  }

  /** Stores the logout. @returns resolves when it is stored; a promise only when the storage needs one */
  record(end: SessionEnd): MaybePromise<void> {
    const entry = this.#entryOf(end);
    if (!entry) return undefined;
    this.#turn ??= this.#untilNextTurn();
    this.#inTurn += 1;
    if (this.#inTurn > DIRECT) {
      this.#waiting.push(entry);
      return this.#turn.then(() => undefined);
    }
    const added = this.#contained(() => this.#queue.add([entry]));
    return isPromise(added) ? Promise.resolve(added).then(() => undefined) : undefined;
  }

  /**
   * A user has logged in: what is pending from before would close the newer debate session.
   * @param at when, in milliseconds since 1970; it may be known late, after the next end
   */
  loggedIn(uid: string, at: number): void {
    if (!this.#loginAt) return;
    this.#loginAt.set(uid, Math.max(at, this.#loginAt.get(uid) ?? at));
    const supersede = async (): Promise<void> => {
      const count = await this.#queue.supersede(uid, at);
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
    const entry = newEntry(uid, 'requested', Date.now());
    await this.#queue.add([entry]);
    this.#emit({ type: 'session-ended', id: entry.id, uid, reason: entry.reason });
  }

  async #untilNextTurn(): Promise<void> {
    await new Promise(setImmediate);
    const entries = this.#waiting;
    this.#waiting = [];
    this.#inTurn = 0;
    this.#turn = undefined;
    while (entries.length > 0) {
      const batch = entries.splice(0, BATCH);
      await this.#contained(() => this.#queue.add(batch));
      if (entries.length > 0) await new Promise(setImmediate);
    }
  }

  /** @returns `undefined` when there is nothing to store: no such uid can exist, or the user has logged in again */
  #entryOf({ uid, reason, endedAt }: SessionEnd): LogoutEntry | undefined {
    const problem = validateUid(uid);
    if (problem !== undefined) {
      this.#emit({ type: 'fault', where: `the uid ${problem}`, error: 'InvalidUidError' });
      return undefined;
    }
    const entry = newEntry(uid, reason, endedAt.getTime());
    this.#emit({ type: 'session-ended', id: entry.id, uid, reason });
    if ((this.#loginAt?.get(uid) ?? -Infinity) <= entry.endedAt) return entry;
    this.#emit({ type: 'logout-superseded', uid, count: 1 });
    return undefined;
  }

  #contained(work: () => MaybePromise<void>): MaybePromise<unknown> {
    return this.#containment.run<unknown>('outbox', work, undefined);
  }
}

/** The id begins with the moment, so that ids sort by age. */
function newEntry(uid: string, reason: EndReason, endedAt: number): LogoutEntry {
  return { id: `${String(endedAt).padStart(15, '0')}-${randomUUID()}`, uid, reason, endedAt };
}

/** @returns `false` when it cannot be made yet */
type Write = () => MaybePromise<unknown>;

/** How long one call to the storage may take. */
export const CALL_TIMEOUT_MS = 5_000;
const REPEAT_MS = 2_000;
/** How many are made at a time: many wait after an outage, and a shutdown does not wait long. */
const AT_ONCE = 32;

/**
 * Writes that must not be forgotten, by id of the logout: one that fails or gets no answer is repeated every 2 s. The last
 * one of a logout counts.
 */
export class PendingWrites {
  readonly #writes = new Map<string, Write>();
  /** One at a time: a write that is made again after the one behind it would undo that. */
  #flushing: Promise<void> | undefined;
  #timer: NodeJS.Timeout | undefined;
  #isClosed = false;

  /** @param onFlushed called when the storage has missed nothing any more */
  constructor(
    private readonly containment: Containment,
    private readonly onFlushed: () => void,
  ) {}

  get size(): number {
    return this.#writes.size;
  }

  /** Makes a write. Throws or rejects when it fails. */
  make(id: string, write: Write): MaybePromise<void> {
    return chain(
      () => inTime(write()),
      () => {
        this.#writes.delete(id);
      },
      (error) => {
        this.add(id, write);
        throw error;
      },
    );
  }

  /** Adds a write that is made later. */
  add(id: string, write: Write): void {
    this.#writes.set(id, write);
    this.#repeat();
  }

  delete(id: string): void {
    this.#writes.delete(id);
  }

  /** Makes the writes, several at a time. Rejects when one fails; it stays, with those behind it. */
  flush(): Promise<void> {
    this.#flushing ??= this.#flush().finally(() => {
      this.#flushing = undefined;
      if (this.#writes.size > 0) this.#repeat();
      else this.onFlushed();
    });
    return this.#flushing;
  }

  /** Repeats nothing any more. */
  close(): void {
    this.#isClosed = true;
    clearTimeout(this.#timer);
  }

  async #flush(): Promise<void> {
    const tried = new Set<Write>();
    const isNew = ([, write]: [string, Write]): boolean => !tried.has(write);
    for (let writes = [...this.#writes]; writes.length > 0; writes = [...this.#writes].filter(isNew))
      for (let from = 0; from < writes.length; from += AT_ONCE) {
        const made = writes.slice(from, from + AT_ONCE).map(async ([id, write]) => {
          tried.add(write);
          const isMade = await inTime(write());
          if (isMade !== false && this.#writes.get(id) === write) this.#writes.delete(id);
        });
        for (const result of await Promise.allSettled(made))
          if (result.status === 'rejected') throw result.reason;
      }
  }

  #repeat(): void {
    if (this.#isClosed) return;
    this.#timer ??= setTimeout(() => {
      this.#timer = undefined;
      void this.containment.run('outbox', () => this.flush().catch(() => undefined), undefined);
    }, REPEAT_MS).unref();
  }
}

/** A storage that keeps silent must not stop delivery for good: what it gives out too late is due again in time. */
export function inTime<T>(answer: Promise<T>): Promise<T>;
export function inTime<T>(answer: MaybePromise<T>): MaybePromise<T>;
export function inTime<T>(answer: MaybePromise<T>): MaybePromise<T> {
  return isPromise(answer) ? timeoutOrThrow(answer, CALL_TIMEOUT_MS) : answer;
}
