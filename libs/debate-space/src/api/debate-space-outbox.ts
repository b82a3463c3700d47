import { setTimeout as pause } from 'node:timers/promises';
import type { CircuitBreaker, JobRunner, StorageEngine, StorageWarning } from 'durable-jobs';
import { namedUid } from '../uid-rule.js';
import { invalidArgument } from '../errors.js';
import type { FallbackQueue } from '../logout/queue/fallback-queue.js';
import type { LogoutQueue } from '../logout/queue/logout-queue.js';
import { inTime } from '../logout/queue/pending-writes.js';
import type { FinishedEntry, LogoutCounts, WaitingJob } from '../logout/logout.js';
import type { EndReason } from '../events.js';
import { acceptedUid } from '../uid.js';

/** How the logouts of this application stand. No personal data. */
export interface OutboxStats extends LogoutCounts {
  readonly engine: string;
  /** Whether what waits outlives the process. */
  readonly durable: boolean;
  /** Whether ends are noted in memory only, because the engine does not take them. */
  readonly degraded: boolean;
  /** Whether this process has seen the service fail last. */
  readonly serviceDown: boolean;
  /** How long ago the session of the oldest pending logout ended, in milliseconds; absent when none is pending. */
  readonly oldestPendingMs?: number;
  /** For how long reads of the storage have failed, in milliseconds; absent when they succeed. */
  readonly unreadableMs?: number;
}

/** A logout that is not sent until somebody retries it. */
export interface ParkedLogout {
  readonly id: string;
  /** Personal data: not for logs or metrics. Empty when it cannot be read any more; `hint` says why. */
  readonly uid: string;
  readonly reason: EndReason;
  readonly endedAt: Date;
  readonly parkedAt: Date;
  readonly attempts: number;
  /** The last answer's status, or why there was none; `unreadable` when it cannot be read and was never sent. */
  readonly cause: string;
  /** The most likely fix. */
  readonly hint: string;
}

/** One logout of a user: where it stands, or what became of it. */
export interface LogoutHistoryEntry {
  readonly id: string;
  readonly state: 'pending' | 'parked' | FinishedEntry['outcome'];
  readonly reason: EndReason;
  readonly endedAt: Date;
  readonly attempts: number;
  /** Why the last attempt failed. */
  readonly cause?: string;
  /** Of a parked one: the most likely fix. */
  readonly hint?: string;
  /** When a waiting logout is sent, at the earliest. */
  readonly dueAt?: Date;
  /** Of a finished one. */
  readonly finishedAt?: Date;
}

export interface OutboxParts {
  readonly queue: LogoutQueue;
  readonly logouts: FallbackQueue;
  readonly engine: Pick<StorageEngine, 'name' | 'durable'>;
  readonly warnings: readonly StorageWarning[];
  readonly breaker: CircuitBreaker;
  readonly runner: Pick<JobRunner, 'workOff'>;
}

/** For how long `drain` may deliver. */
export interface DrainOptions {
  /** How long it may take, in milliseconds: 1 to 2,147,483,647. @defaultValue `10_000` */
  readonly timeoutMs?: number | undefined;
  /** Ends it early. */
  readonly signal?: AbortSignal | undefined;
}

/** How the logouts stand when a drain has ended. */
export interface DrainedStats extends OutboxStats {
  /** Whether nothing is due any more, neither a logout nor an erasure. A job that waits for its next attempt is not due. */
  readonly drained: boolean;
}

const MAX_LISTED = 1000;
const MAX_TIMER_MS = 2 ** 31 - 1;
/** A storage may answer with a count that is so old, such as the count of the last `stats()`. */
const COUNT_AGE_MS = 1_000;

/** The logouts that wait, for operators. Injectable. */
export class DebateSpaceOutbox {
  readonly #parts: OutboxParts;
  #unreadableSince: number | undefined;
  #countedAt = -Infinity;
  /** Calls at the same time are one drain. */
  #draining: Promise<boolean> | undefined;

  constructor(parts: OutboxParts) {
    this.#parts = parts;
  }

  /** Settings of the storage that an operator should change, as they were at boot. */
  get warnings(): readonly StorageWarning[] {
    return this.#parts.warnings;
  }

  /** Never rejects: when the storage cannot be read, it returns what is in memory. */
  async stats(): Promise<OutboxStats> {
    const { engine, queue, logouts, breaker } = this.#parts;
    const { name, durable } = engine;
    const { memory, isDegraded: degraded } = logouts;
    const known = { engine: name, durable, degraded, serviceDown: breaker.isOpen };
    try {
      const stats = await inTime(statsOf([queue, memory]));
      this.#countedAt = performance.now();
      this.#unreadableSince = undefined;
      return { ...known, ...stats };
    } catch {
      this.#unreadableSince ??= performance.now();
      return {
        ...known,
        ...(await statsOf([memory])),
        unreadableMs: performance.now() - this.#unreadableSince,
      };
    }
  }

  /**
   * The parked logouts, the longest parked first.
   * @param page `limit`: 1 to 1000, default 100; `skip`: how many to leave out, default 0
   * @throws {InvalidArgumentError} before anything is read
   */
  async parked(
    page: { readonly limit?: number; readonly skip?: number } = {},
  ): Promise<readonly ParkedLogout[]> {
    const { limit = 100, skip = 0 } = page;
    if (!Number.isInteger(limit) || limit < 1 || limit > MAX_LISTED) {
      throw invalidArgument('parked', `limit must be a whole number from 1 to ${MAX_LISTED}`);
    }
    if (!Number.isInteger(skip) || skip < 0)
      throw invalidArgument('parked', 'skip must be a whole number from 0');
    const jobs = await this.#parts.queue.parked(limit, skip);
    return jobs.map(
      ({ entry: { id, uid, reason, endedAt }, parkedAt, attempts, cause = 'unreadable', hint }) => {
        const moments = { endedAt: new Date(endedAt), parkedAt: new Date(parkedAt) };
        return { id, uid, reason, ...moments, attempts, cause, hint };
      },
    );
  }

  /**
   * What happened to this user's logouts: those that wait, and those that are finished for as long as `logout.historyRetentionMs`.
   * The earliest end first. They are found by the keys in `storageKey`: those that came under another one are not.
   * @throws {InvalidUidError}
   */
  async history(uid: string): Promise<readonly LogoutHistoryEntry[]> {
    const user = acceptedUid(namedUid(uid), 'history');
    const { queue, logouts } = this.#parts;
    const { waiting, finished } = await inTime(queue.ofUser(user));
    const inMemory = await logouts.memory.ofUser(user);
    const all = [...waiting, ...inMemory.waiting].map(explainWaiting).concat(finished.map(explainFinished));
    return all.sort((one, other) => one.endedAt.getTime() - other.endedAt.getTime());
  }

  /** Sends a parked logout again, as if it had never been tried. @returns whether there was one of this id */
  async retry(id: string): Promise<boolean> {
    return this.#parts.queue.retryParked(id);
  }

  /**
   * Delivers what is due in the storage, although `worker` is `false`: logouts first, then erasures within the rate limit. For
   * serverless functions and cron (docs/serverless.md). Requests that are under way when the time is over may still arrive; they
   * are due again 30 s after their lease began. The shutdown of the app ends it, too: what is sent by then gets its answer.
   * @returns when nothing is due any more, or when the time is over
   * @throws {InvalidArgumentError} for a `timeoutMs` out of range, and with `memoryStorage()`, which other processes cannot fill
   */
  async drain({ timeoutMs = 10_000, signal }: DrainOptions = {}): Promise<DrainedStats> {
    const { engine, runner } = this.#parts;
    if (!engine.durable)
      throw invalidArgument(
        'drain',
        'a durable storage is required: lmdbStorage, redisStorage or postgresStorage',
      );
    if (!Number.isInteger(timeoutMs) || timeoutMs < 1 || timeoutMs > MAX_TIMER_MS)
      throw invalidArgument('drain', `timeoutMs must be a whole number from 1 to ${MAX_TIMER_MS}`);
    this.#draining ??= runner.workOff(timeoutMs, signal).finally(() => {
      this.#draining = undefined;
    });
    const deadline = performance.now() + timeoutMs;
    const isDone = await this.#draining;
    const waitMs = Math.min(this.#countedAt + COUNT_AGE_MS, deadline) - performance.now();
    if (isDone && waitMs > 0) await pause(waitMs);
    const stats = await this.stats();
    return { ...stats, drained: isDone && stats.unreadableMs === undefined };
  }

  /** Gives up a parked logout. @returns whether there was one of this id */
  async discard(id: string): Promise<boolean> {
    return this.#parts.queue.discard(id);
  }
}

/** Of these queues together. */
async function statsOf(
  queues: readonly LogoutQueue[],
): Promise<LogoutCounts & Pick<OutboxStats, 'oldestPendingMs'>> {
  const counts = await Promise.all(queues.map((queue) => queue.counts()));
  const oldest = await Promise.all(queues.map((queue) => queue.oldestPending()));
  const sum = (state: keyof LogoutCounts): number => counts.reduce((total, count) => total + count[state], 0);
  const endedAt = Math.min(...oldest.map((moment = Infinity) => moment));
  return {
    pending: sum('pending'),
    parked: sum('parked'),
    ...(endedAt < Infinity && { oldestPendingMs: Math.max(0, Date.now() - endedAt) }),
  };
}

function explainWaiting({ entry, state, attempts, cause, hint, dueAt }: WaitingJob): LogoutHistoryEntry {
  const { id, reason, endedAt } = entry;
  const due = dueAt === undefined ? undefined : new Date(dueAt);
  return { id, state, reason, endedAt: new Date(endedAt), attempts, cause, hint, dueAt: due };
}

function explainFinished({ outcome, endedAt, finishedAt, ...finished }: FinishedEntry): LogoutHistoryEntry {
  return { ...finished, state: outcome, endedAt: new Date(endedAt), finishedAt: new Date(finishedAt) };
}
