import type { ErasureMode, ErasureOutcome } from './erasure.js';

/** What is kept of all erasures of one reference. Moments are milliseconds since 1970. */
export interface StoredBatch {
  /** Raised by every change, so that none goes unnoticed by another. */
  revision: number;
  readonly mode: ErasureMode;
  readonly requestedBy?: string;
  readonly askedAt: number;
  complete: boolean;
  /** Which call reads the list; none for a single user. */
  reader?: string;
  paused: boolean;
  cancelling: boolean;
  startedAt?: number;
  /** When it last went on after a pause. */
  resumedAt?: number;
  finishedAt?: number;
  /** Under which it stands in the schedule; absent when it does not. */
  dueAt?: number;
  /** When it is told of as overdue, if it is not finished by then. */
  warnAt?: number;
  total: number;
  done: number;
  notFound: number;
  vetoed: number;
  cancelled: number;
  failed: number;
}

/** One user's erasure that is not over. */
export interface StoredEntry {
  /** The uid, encrypted. */
  readonly sealed: string;
  /** All references that ask for it; it is done once. */
  references: string[];
  /** When it was asked for, or revived: from then on `erasure.giveUpAfterMs` counts. */
  since: number;
  /** When it is due; while it is under way, when its lease ends. */
  dueAt: number;
  attempts: number;
  /** How often in a row it came to nothing; from the last time that somebody resumed it. */
  failures: number;
  /** Whether one of the attempts may have been carried out. */
  unknown: boolean;
  /** How many of the logouts before it the service has answered with 400. */
  rejections: number;
  parked: boolean;
  cause?: string;
}

/** What stands under `r/`, beside what the reference's batch has. */
export interface StoredReceipt {
  readonly askedAt: number;
  readonly doneAt: number;
  readonly attempts: number;
  readonly outcome: ErasureOutcome;
  readonly answer?: number;
  readonly loggedOut: boolean;
  readonly reason?: string;
  readonly uncertain?: true;
}

/** How many are neither over nor given up. */
export function waitingOf({
  total,
  done,
  notFound,
  vetoed,
  cancelled,
  failed,
}: Omit<StoredBatch, 'mode'>): number {
  return total - done - notFound - vetoed - cancelled - failed;
}
