import type { CircuitBreaker } from './circuit-breaker.js';
import type { JobQueue } from './job-queue.js';

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
