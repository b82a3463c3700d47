import type { Emit, EndReason } from '../events.js';
import type { UidCipher } from '../secrets/uid-cipher.js';

/** The intent to log a user out: never a token (they live two minutes), never a session id. */
export interface LogoutEntry {
  /** Begins with `endedAt` in 15 digits, and a hyphen. */
  readonly id: string;
  readonly uid: string;
  readonly reason: EndReason;
  /** Milliseconds since 1970. */
  readonly endedAt: number;
}

/** How far delivery has come. */
export interface DeliveryProgress {
  readonly attempts: number;
  /** How many of them the service answered with 400. */
  readonly rejections: number;
  /** Why the last one failed, such as `503` or `ECONNREFUSED`; absent before the first. */
  readonly cause?: string;
}

export interface LogoutJob extends DeliveryProgress {
  readonly entry: LogoutEntry;
  /** When somebody retried it after it was parked, in milliseconds since 1970: from then on its age counts. */
  readonly retriedAt?: number | undefined;
}

/** An entry that is not delivered until somebody retries it. Its uid is empty when it cannot be read any more. */
export interface ParkedJob extends LogoutJob {
  /** The most likely fix. */
  readonly hint: string;
  /** Milliseconds since 1970. */
  readonly parkedAt: number;
}

/** An entry that is in the outbox, wherever it stands. */
export interface WaitingJob extends LogoutJob {
  readonly state: keyof LogoutCounts;
  /** When it is due, in milliseconds since 1970; for one that is under way, when its lease ends. Not when parked. */
  readonly dueAt?: number;
  /** Of a parked one. */
  readonly hint?: string;
}

/** `superseded`: the user was erased before it was sent. */
export type Outcome = 'delivered' | 'discarded' | 'superseded';

/** What is kept of a finished entry: nothing personal. */
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

export interface LogoutCounts {
  readonly pending: number;
  readonly parked: number;
}

/** What the queue needs from the application. */
export interface LogoutContext {
  readonly uids: UidCipher;
  /** How long a {@link FinishedEntry} is kept, in milliseconds; 0: not at all. */
  readonly keepFinishedMs: number;
  /** Hears of logouts that are parked because they cannot be read. */
  readonly emit?: Emit;
}
