import type { BeforeErase } from './erasure.js';

export interface DebateSpaceErasureOptions {
  /** Asked before each erasure; may veto it. Default: none. */
  beforeErase?: BeforeErase | undefined;
  /** How many erasures this process may have under way at the same time. Default: 4. */
  concurrency?: number | undefined;
  /** After how long a reference that is not finished is reported as `erasure-overdue`, in milliseconds. Default: 7 and 21 days. */
  overdueAfterMs?: readonly number[] | undefined;
  /** After how long an erasure that still fails is given up until somebody retries it, in milliseconds. Default: 28 days. */
  giveUpAfterMs?: number | undefined;
  /** For how long the receipts of a finished reference are kept, in milliseconds. Default: three years of 365 days. */
  receiptRetentionMs?: number | undefined;
}
