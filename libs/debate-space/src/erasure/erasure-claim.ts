import type { ErasureMode, ErasureOutcome, ErasureStatus } from './erasure.js';

/** One user's erasure that this process carries out before its lease ends. */
export interface ErasureClaim {
  /** A random id of the erasure: a later one of the same user has another. */
  readonly id: string;
  readonly uidHash: string;
  /** Absent when it cannot be read. */
  readonly uid?: string;
  /** Why there is no uid, and what to do about it: the erasure is to be parked with this hint. */
  readonly hint?: string;
  /** A random id of this claim; a later claim of the same erasure has another. */
  readonly lease: string;
  readonly mode: ErasureMode;
  /** All references that ask for it, the earliest first. */
  readonly references: readonly string[];
  /** Who asked, of the earliest. */
  readonly requestedBy?: string;
  /** How many requests were sent before. */
  readonly attempts: number;
  /** How often in a row it failed. */
  readonly failures: number;
  /** Whether an earlier attempt may have been carried out. */
  readonly unknownBefore: boolean;
  /** How many of the logouts before it the service has answered with 400. */
  readonly rejections: number;
  /** Milliseconds since it was asked for, retried or resumed, by the clock of the storage; `erasure.giveUpAfterMs` bounds it. */
  readonly ageMs: number;
}

/** What became of an attempt that did not bring the end. */
export interface Setback {
  readonly cause: string;
  /** Whether this attempt may have been carried out. */
  readonly unknown: boolean;
  /** Whether the operation was sent. */
  readonly sent: boolean;
  readonly rejections: number;
}

export interface ErasureEnd {
  readonly outcome: ErasureOutcome;
  /** The HTTP status of the service's answer. */
  readonly status?: number;
  readonly loggedOut: boolean;
  /** Of a veto. */
  readonly reason?: string;
}

/** What an end has settled. */
export interface FinishedErasure {
  /** The references that have a receipt now. */
  readonly references: readonly string[];
  /** How many requests were sent. */
  readonly attempts: number;
  /** The references that are finished by it. */
  readonly finished: readonly ErasureStatus[];
}
