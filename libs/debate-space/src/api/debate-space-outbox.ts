import { withTimeout } from '../async/with-timeout.js';
import { invalidArgument } from '../errors.js';
import type { CircuitBreaker } from '../jobs/circuit-breaker.js';
import type { LogoutCounts, LogoutHistoryEntry, ParkedLogout } from '../logout/logout-repository.js';
import type { Logouts } from '../logout/logouts.js';
import type { JobLane } from '../jobs/job-lane.js';
import type { OpenStorage, StorageEngine, StorageWarning } from '../storage/engine.js';
import type { StorageWatch } from '../storage/storage-watch.js';
import { acceptedUid, namedUid } from '../uid-rule.js';

/** The counts of the logouts of this application. No personal data. */
export interface OutboxStats extends LogoutCounts {
  readonly engine: string;
  /** Whether what waits outlives the process. */
  readonly durable: boolean;
  /** Whether logouts are kept in memory only, because the storage does not take them. */
  readonly degraded: boolean;
  /** Whether the last requests of this process to the service failed. */
  readonly serviceDown: boolean;
  /** For how long reads of the storage have failed, in milliseconds; absent when they succeed. */
  readonly unreadableMs?: number;
}

/** @internal */
export interface OutboxParts {
  readonly engine: Pick<StorageEngine, 'name' | 'durable'>;
  readonly opened: Pick<OpenStorage, 'warnings'>;
  readonly watch: Pick<StorageWatch, 'isDegraded'>;
  readonly logouts: Logouts;
  readonly breaker: CircuitBreaker;
  readonly workers: {
    readonly stored: Pick<JobLane, 'wake'>;
    readonly memory: Pick<JobLane, 'wake'> | undefined;
    workOff(ms: number, signal?: AbortSignal): Promise<boolean>;
  };
}

/** For how long `drain` may deliver. */
export interface DrainOptions {
  /** How long it may take, in milliseconds: 1 to 2,147,483,647. @defaultValue `10_000` */
  readonly timeoutMs?: number | undefined;
  /** Ends it early. */
  readonly signal?: AbortSignal | undefined;
}

/** The counts of the logouts when a drain has ended. */
export interface DrainedStats extends OutboxStats {
  /** Whether nothing is due any more, neither a logout nor an erasure. A job that waits for its next attempt is not due. */
  readonly drained: boolean;
}

const MAX_LISTED = 1000;
const STORAGE_TIMEOUT_MS = 5_000;
const MAX_TIMER_MS = 2 ** 31 - 1;

/**
 * The logouts that wait, for operators. Injectable.
 *
 * @example
 * const { pending, parked } = await app.get(DebateSpaceOutbox).stats();
 */
export class DebateSpaceOutbox {
  readonly #parts: OutboxParts;
  #unreadableSince: number | undefined;
  /** Calls at the same time are one drain. */
  #draining: Promise<boolean> | undefined;

  /** @internal */
  constructor(parts: OutboxParts) {
    this.#parts = parts;
  }

  /** Settings of the storage that an operator should change, as they were when it was opened. */
  get warnings(): readonly StorageWarning[] {
    return this.#parts.opened.warnings;
  }

  /** Never rejects: when the storage does not answer within five seconds, it counts the logouts in memory only. */
  async stats(): Promise<OutboxStats> {
    const { engine, watch, logouts, breaker } = this.#parts;
    const { name, durable } = engine;
    const known = {
      engine: name,
      durable,
      degraded: watch.isDegraded,
      serviceDown: breaker.isOpen,
    };
    const counting = logouts.counts().catch(() => undefined);
    const counts = await withTimeout(counting, STORAGE_TIMEOUT_MS, undefined);
    if (counts) {
      this.#unreadableSince = undefined;
      return { ...known, ...counts };
    }
    this.#unreadableSince ??= performance.now();
    const unreadableMs = performance.now() - this.#unreadableSince;
    return { ...known, ...(await logouts.memoryCounts()), unreadableMs };
  }

  /**
   * The parked logouts, the longest parked first. Logouts that this process keeps in memory, because the storage did not take
   * them, come before all others; while the storage cannot be read, only they are returned.
   * @param page `limit`: 1 to 1000, default 100; `skip`: how many to leave out, default 0
   * @throws {InvalidArgumentError} before anything is read
   * @throws {StorageError} when the storage cannot be read, and no parked logout is in memory
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
    return this.#parts.logouts.parked(limit, skip);
  }

  /**
   * The logouts of this user with their states, the earliest end first: all that wait, and the finished ones for
   * `logout.historyRetentionMs`. A logout that was stored under a key that is not in `storageKey` is not found.
   * @throws {InvalidUidError}
   */
  async history(uid: string): Promise<readonly LogoutHistoryEntry[]> {
    const user = acceptedUid(namedUid(uid), 'history');
    return this.#parts.logouts.history(user);
  }

  /** Makes a parked logout due now, as if it had never been tried. @returns whether a parked logout has this id */
  async retry(id: string): Promise<boolean> {
    const { logouts, workers } = this.#parts;
    const isRetried = await logouts.retry(id);
    workers.stored.wake();
    workers.memory?.wake();
    return isRetried;
  }

  /**
   * Delivers the logouts that are due in the storage, and erases the users that are due within the rate limit, although
   * `worker` is `false`. For serverless functions and cron (docs/deploying.md). Resolves when nothing is due any more, or
   * when the time is over. Requests that are running then may still arrive; their jobs are due again 30 s after their lease
   * began. The shutdown of the app ends a drain, too; requests that were sent by then get their answers.
   * @throws {InvalidArgumentError} for a `timeoutMs` out of range, and with `memoryStorage()`, which other processes cannot fill
   */
  async drain({ timeoutMs = 10_000, signal }: DrainOptions = {}): Promise<DrainedStats> {
    const { engine, workers } = this.#parts;
    if (!engine.durable)
      throw invalidArgument(
        'drain',
        'a durable storage is required: sqliteStorage, postgresStorage or mysqlStorage',
      );
    if (!Number.isInteger(timeoutMs) || timeoutMs < 1 || timeoutMs > MAX_TIMER_MS)
      throw invalidArgument('drain', `timeoutMs must be a whole number from 1 to ${MAX_TIMER_MS}`);
    this.#draining ??= workers.workOff(timeoutMs, signal).finally(() => {
      this.#draining = undefined;
    });
    const isDone = await this.#draining;
    const stats = await this.stats();
    return { ...stats, drained: isDone && stats.unreadableMs === undefined };
  }

  /** Discards a parked logout: it is never sent. @returns whether a parked logout had this id */
  async discard(id: string): Promise<boolean> {
    return this.#parts.logouts.discard(id);
  }
}
