import type { CircuitBreaker } from './circuit-breaker.js';
import type { MaybePromise } from './maybe-promise.js';

/** One kind of job: where its jobs wait, and how one is carried out. */
export interface JobKind<Claim> {
  /** For reports of what failed, such as `mail`. */
  readonly name: string;
  readonly queue: JobQueue<Claim>;

  /** How many requests the service gets at a time, and when. */
  readonly breaker: CircuitBreaker;

  /** How many jobs one claim takes at most; those that cannot begin yet wait in this process. */
  readonly batch: number;

  /** Milliseconds left of the pause that the service demands; 0 or less: none. */
  pauseMs(): number;

  /**
   * Carries a job out and records the result in the queue. After a rejection the job is due when its lease has ended. A
   * process that hung may get a job again that it is still carrying out: then it does nothing.
   */
  execute(claim: Claim): Promise<void>;
}

/**
 * How long a claim is held without being renewed, in milliseconds: what a killed process had claimed is due again within
 * this time.
 */
export const LEASE_MS = 30_000;

/** Called when jobs were added, or may be due earlier. */
export type ChangeListener = () => void;

/** The jobs of one kind that wait in the storage. Several processes may take jobs from the same queue. */
export interface JobQueue<Claim> {
  /** Takes at most `limit` jobs that are due, for {@link LEASE_MS}. Nobody else gets one of them during its lease. */
  claim(limit: number): MaybePromise<readonly Claim[]>;

  /** Begins the leases of these claims anew. A claim that another process has taken meanwhile is left to it. */
  renew(claims: readonly Claim[]): MaybePromise<void>;

  /** Makes jobs due immediately that were claimed and not begun, as if they had never been claimed. */
  giveBack(claims: readonly Claim[]): MaybePromise<void>;

  /**
   * The job of this claim is not carried out any more. What came of it is recorded, or it is due when its lease ends. A queue
   * that gives out the jobs of this process again whatever becomes of them needs none.
   */
  release?(claim: Claim): void;

  /** Milliseconds until the next job may be claimed, 0 or less when one is due; `undefined` when none waits. */
  nextDueMs(): MaybePromise<number | undefined>;

  /** Removes what is outdated. The runner calls it every few seconds. */
  maintain(): MaybePromise<void>;

  /** Calls `listener` when this process has made a job due earlier than {@link nextDueMs} said. @returns how to stop */
  onChange(listener: ChangeListener): () => void;
}
