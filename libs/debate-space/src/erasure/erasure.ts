import type { HostTransaction } from '../storage/storage.js';
import type { ErasureMode, ErasureOutcome } from '../events.js';

/** One user to be erased. */
export interface ErasureRequest {
  /** The uid under which the user was registered in the service. */
  readonly uid: string;
  readonly mode: ErasureMode;
  /**
   * The name of this erasure – a ticket, a case number –, 1 to 128 characters. It is kept with the receipt: no personal
   * data. Default: a random UUID.
   */
  readonly reference?: string | undefined;
  /** Who requested it, in words of your own, at most 256 characters. Kept with the receipt: rather a role than a name. */
  readonly requestedBy?: string | undefined;
  /**
   * A transaction that the host has open, with `postgresStorage` on the host's database: the erasure exists if and
   * only if the host commits.
   */
  readonly transaction?: HostTransaction | undefined;
}

/**
 * `waiting`: no request was sent yet; `overdue`: not finished after the first of `erasure.overdueAfterMs`, or with parked
 * users; `done` and `canceled`: finished; `unverified`: nobody is erased, because no storage key vouches for the record: it
 * was written with another one, or somebody changed it in the database.
 */
export type ErasureState = 'waiting' | 'running' | 'paused' | 'done' | 'overdue' | 'canceled' | 'unverified';

/** The state of the erasures of one reference. No personal data. `total` is the sum of all the counts after it. */
export interface ErasureStatus {
  readonly reference: string;
  readonly mode: ErasureMode;
  readonly requestedBy?: string;
  readonly state: ErasureState;
  /** Whether the list was read to its end. Before that nobody of it is erased; repeat the call to read the rest. */
  readonly complete: boolean;
  readonly requestedAt: Date;
  readonly finishedAt?: Date;
  readonly total: number;
  /** The service has erased them. */
  readonly done: number;
  /** The service did not find them. */
  readonly notFound: number;
  /** `erasure.beforeErase` forbade it. */
  readonly vetoed: number;
  readonly canceled: number;
  /** Parked: they failed for `erasure.giveUpAfterMs`, or their records cannot be read. `retry` tries them again. */
  readonly failed: number;
  readonly waiting: number;
  /** Present while a user waits for the next attempt after a failed one, in `status` and `progress` only. */
  readonly retrying?: RetryingErasure;
}

/** Why the last attempt at a user failed. */
export interface RetryingErasure {
  readonly cause: string;
  /** Absent when the next attempt is due or running. */
  readonly nextAttemptAt?: Date;
}

/** The result of `request`. */
export interface RequestedErasure extends ErasureStatus {
  /** Whether the same was requested under another reference already, and is not done yet. */
  readonly alreadyRequested: boolean;
}

/** How far the erasures of a reference have come. */
export interface ErasureProgress extends ErasureStatus {
  /** Users a minute, over the last minute at most in which users were erased, and no more than `http.rateLimit` permits. */
  readonly perMinute: number;
  /** Until the end at this rate and under the rate limit, in milliseconds; absent while neither is known. */
  readonly msLeft?: number;
  /** Until the rate limit, or a pause that the service requested, lets the next user through; absent while it does. */
  readonly waitMs?: number;
}

/** The record of one user's finished erasure. No personal data. */
export interface ErasureReceipt {
  readonly reference: string;
  readonly mode: ErasureMode;
  readonly requestedBy?: string;
  /** Keyed hash of the uid: anyone who has the key and the uid can tell that this is its receipt. */
  readonly subject: string;
  readonly requestedAt: Date;
  readonly doneAt: Date;
  /** How many requests were sent, as far as this is known; 0 when it was vetoed at the first attempt. */
  readonly attempts: number;
  /**
   * `unverified`: no storage key vouches for this record. It was written with another one, or by somebody else: it proves
   * nothing.
   */
  readonly outcome: ErasureOutcome | 'unverified';
  /** The HTTP status of the service's answer; 404 with `erased`: an earlier attempt had done it, and its answer was lost. */
  readonly status?: number;
  /** Whether the service took the logout that goes before the erasure. */
  readonly loggedOut: boolean;
  /** Of a veto, in the host's words. */
  readonly reason?: string;
  /** Vetoed or canceled after an attempt whose answer was lost: the user may be erased all the same. */
  readonly uncertain?: true;
}

/** The erasure that `erasure.beforeErase` permits or forbids. */
export interface PendingErasure {
  readonly uid: string;
  readonly mode: ErasureMode;
  readonly reference: string;
  readonly requestedBy?: string;
}

/**
 * Called immediately before a user is erased, at each attempt and for each reference, on the instance that erases.
 * `{ veto }` forbids it for good, with a reason of at most 1,000 characters that is kept with the receipt: no personal data.
 * When it throws or does not answer within 30 seconds, nobody is erased, and it is called again later.
 */
export type BeforeErase = (erasure: PendingErasure) => BeforeEraseAnswer | Promise<BeforeEraseAnswer>;
/** The result of `erasure.beforeErase`: nothing to permit the erasure, `{ veto: reason }` to forbid it for good. */
// eslint-disable-next-line @typescript-eslint/no-invalid-void-type -- a hook that returns nothing agrees
export type BeforeEraseAnswer = void | undefined | { readonly veto: string };

/** How one user's erasure ends. Here, because the types of users of the package must not import valibot. @internal */
export type ErasureEnd = Readonly<Pick<ErasureReceipt, 'status' | 'loggedOut' | 'reason'>> & {
  readonly outcome: ErasureOutcome;
};
