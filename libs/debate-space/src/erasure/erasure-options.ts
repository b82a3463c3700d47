import type { BeforeErase } from './erasure.js';

/** How users are erased, and how long receipts are kept. */
export interface DebateSpaceErasureOptions {
  /**
   * Called before each attempt to erase; may veto it: `({ uid, mode, reference, requestedBy }) => { veto: reason }`.
   * @defaultValue none
   */
  beforeErase?: BeforeErase | undefined;
  /** How many erasures this process may have under way at the same time. @defaultValue `4` */
  concurrency?: number | undefined;
  /**
   * Ages at which an unfinished erasure emits `erasure-overdue`, in milliseconds.
   * @defaultValue `[ 604_800_000, 1_814_400_000 ]` (7 days, 21 days)
   */
  overdueAfterMs?: readonly number[] | undefined;
  /**
   * Age at which an erasure that still fails is parked until somebody retries it, in milliseconds.
   * @defaultValue `2_419_200_000` (28 days)
   */
  giveUpAfterMs?: number | undefined;
  /**
   * How long the receipts of a finished reference are kept, in milliseconds. @defaultValue `94_608_000_000` (3 years)
   */
  receiptRetentionMs?: number | undefined;
}
