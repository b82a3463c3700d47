import type { EndReason } from '../debate-space-event.js';
import type { UidCipher } from '../uid-cipher.js';

/** The intent to log a user out: never a token (they live two minutes), never a session id. */
export interface OutboxEntry {
  /** Begins with `endedAt` in 15 digits, and a hyphen. */
  readonly id: string;
  readonly uid: string;
  readonly reason: EndReason;
  /** Milliseconds since 1970. */
  readonly endedAt: number;
  /** Keyed hash of the session id. */
  readonly sessionHash?: string;
}

/** How far delivery has come. */
export interface DeliveryProgress {
  readonly attempts: number;
  /** How many of them the service answered with 400. */
  readonly rejections: number;
  /** Why the last one failed, such as `503` or `ECONNREFUSED`; absent before the first. */
  readonly cause?: string;
}

export interface OutboxJob extends DeliveryProgress {
  readonly entry: OutboxEntry;
}

/** An entry that is delivered no more until somebody looks at it. Its uid is empty when it cannot be read any more. */
export interface ParkedJob extends OutboxJob {
  /** What is most likely to mend it. */
  readonly hint: string;
  /** Milliseconds since 1970. */
  readonly parkedAt: number;
}

/** An entry that is in the outbox, wherever it stands. */
export interface WaitingJob extends OutboxJob {
  readonly state: keyof OutboxCounts;
  /** When it is due, in milliseconds since 1970; for one that is under way, when its lease ends. Not when parked. */
  readonly dueAt?: number;
  /** Of a parked one. */
  readonly hint?: string;
}

/** `superseded`: the user had logged in again, and `logout.onRelogin` is `drop`. */
export type Outcome = 'delivered' | 'discarded' | 'superseded';

/** What is kept of an entry that is over: nothing personal. */
export interface FinishedEntry {
  readonly id: string;
  readonly reason: EndReason;
  readonly endedAt: number;
  readonly attempts: number;
  readonly outcome: Outcome;
  /** Milliseconds since 1970. */
  readonly finishedAt: number;
}

/** Everything about the logouts of one user. */
export interface UserHistory {
  readonly waiting: readonly WaitingJob[];
  /** The earliest first. */
  readonly finished: readonly FinishedEntry[];
}

export interface OutboxCounts {
  /** Ends that are not proven yet. */
  readonly held: number;
  readonly pending: number;
  readonly parked: number;
}

type MaybePromise<T> = T | Promise<T>;

/**
 * Where logouts wait for delivery. Engines answer synchronously where they can, so that the host's own call need not
 * become asynchronous; a promise is settled when the change is as durable as the engine makes it.
 *
 * An entry is `held` before a session ends, then `released` when the end is proven or `cancelled` when it was none. A
 * hold whose lease runs out – its process died – becomes due by itself. All calls are idempotent; what does not fit the
 * entry's state – an unknown id, the cancellation of what was released, the repetition of what was parked – is ignored.
 *
 * Several processes may have the same outbox open. An entry that one has claimed no other gets before its lease is over.
 */
export interface Outbox {
  readonly engine: string;
  /** What it promises, in plain words, for the boot log. */
  readonly promise: string;
  /** Whether entries outlive the process. */
  readonly durable: boolean;
  /** What an operator should know about the place it is kept in, for the boot log. */
  readonly warnings?: readonly string[];

  hold(entry: OutboxEntry, leaseMs: number): MaybePromise<void>;
  /** A held entry is due so many milliseconds from now, and no earlier; any other is left as it is. */
  extend(id: string, leaseMs: number): MaybePromise<void>;
  release(id: string): MaybePromise<void>;
  cancel(id: string): MaybePromise<void>;

  /** Takes at most `limit` due entries, the earliest first; none while paused. They are due again when the lease has run out. */
  claim(limit: number, leaseMs: number): MaybePromise<readonly OutboxJob[]>;
  retry(id: string, progress: DeliveryProgress, delayMs: number): MaybePromise<void>;
  /** It is delivered. Keeps a {@link FinishedEntry} under the hash of the uid; the entry with its uid is gone. */
  finish(id: string, attempts: number): MaybePromise<void>;
  /** Keeps the entry, and delivers it no more. */
  park(id: string, progress: DeliveryProgress, hint: string): MaybePromise<void>;
  /** Nothing is given out for so long, to no process; never shortens a pause. */
  pause(ms: number): MaybePromise<void>;

  counts(): MaybePromise<OutboxCounts>;
  /** What can be said at once, when an engine elsewhere cannot be asked. */
  readonly kept?: OutboxCounts;
  /** `endedAt` of the oldest entry that is pending; `undefined` when none is. */
  oldestPending(): MaybePromise<number | undefined>;
  /** Milliseconds until the next entry may be claimed; `undefined` when none is waiting. */
  nextDueMs(): MaybePromise<number | undefined>;
  /** Called whenever an entry may have become due earlier than `nextDueMs` said. */
  onChange(listener: () => void): void;

  /** At most `limit` parked entries, the longest parked first. @param skip how many to leave out */
  parked(limit: number, skip?: number): MaybePromise<readonly ParkedJob[]>;
  /** A parked entry is pending again, due at once, as if never tried. @returns whether there was one */
  retryParked(id: string): MaybePromise<boolean>;
  /** A parked entry is given up. @returns whether there was one */
  discard(id: string): MaybePromise<boolean>;
  ofUser(uid: string): MaybePromise<UserHistory>;
  /**
   * Gives up what is pending for a user and ended no later than this; nothing that is held or parked. One that is under
   * way may still arrive. @returns how many
   */
  supersede(uid: string, endedUntil: number): MaybePromise<number>;

  /**
   * For engines that many machines share: takes one of so many places in any window of so many milliseconds.
   * @returns 0 when it has one, or the milliseconds after which to ask again
   */
  admit?(requests: number, perMs: number): Promise<number>;

  close(): MaybePromise<void>;
}

/** What an engine is told about the application it is opened for. */
export interface OutboxContext {
  readonly uids: UidCipher;
  /** Runs what a timer of the engine does: what it throws becomes an event, and does not end the host's process. */
  readonly contained: (work: () => void) => void;
  /** How long a {@link FinishedEntry} is kept, in milliseconds; 0: not at all. */
  readonly keepFinishedMs: number;
}
