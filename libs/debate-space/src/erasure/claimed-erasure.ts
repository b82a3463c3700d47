import type { ErasureMode, ErasureOutcome, ErasureStatus } from './erasure.js';

/** One user's erasure that this process is to carry out before its lease ends. */
export interface ClaimedErasure {
  readonly uidHash: string;
  /** Absent when it cannot be decrypted any more. */
  readonly uid?: string;
  /** Tells this entry from a later one of the same user. */
  readonly sealed: string;
  /** Tells this claim from a later one, of whoever took it over. */
  readonly leaseUntil: number;
  readonly mode: ErasureMode;
  /** All references that ask for it, the earliest first. */
  readonly references: readonly string[];
  /** Who asked, of the earliest. */
  readonly requestedBy?: string;
  /** How many requests were sent before. */
  readonly attempts: number;
  /** How often in a row it came to nothing. */
  readonly failures: number;
  /** Whether an earlier attempt may have been carried out. */
  readonly unknownBefore: boolean;
  /** How many of the logouts before it the service has answered with 400. */
  readonly rejections: number;
  /** From when on `erasure.giveUpAfterMs` counts, in milliseconds since 1970. */
  readonly since: number;
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
  readonly answer?: number;
  readonly loggedOut: boolean;
  readonly reason?: string;
}

/** What an end has settled. */
export interface SettledErasure {
  readonly references: readonly string[];
  readonly attempts: number;
  /** The references that are finished by it. */
  readonly finished: readonly ErasureStatus[];
}
