import type { CircuitBreaker } from '../jobs/circuit-breaker.js';
import type { JobRunner } from '../jobs/job-runner.js';
import { invalidArgument } from '../errors.js';
import type { LogoutQueues } from '../logout/logout-queues.js';
import type { LogoutCounts, LogoutHistoryEntry, ParkedLogout } from '../logout/logout-repository.js';
import type { StorageEngine, StorageWarning } from '../storage/storage.js';
import type { StorageWatch } from '../storage/storage-watch.js';
import { acceptedUid } from '../uid.js';
import { namedUid } from '../uid-rule.js';

/** How the logouts of this application stand. No personal data. */
export interface OutboxStats extends LogoutCounts {
  readonly engine: string;
  /** Whether what waits outlives the process. */
  readonly durable: boolean;
  /** Whether ends are noted in memory only, because the engine does not take them. */
  readonly degraded: boolean;
  /** Whether this process has seen the service fail last. */
  readonly serviceDown: boolean;
  /** For how long reads of the storage have failed, in milliseconds; absent when they succeed. */
  readonly unreadableMs?: number;
}

export interface OutboxParts {
  readonly queues: LogoutQueues;
  readonly watch: Pick<StorageWatch, 'isDegraded'>;
  readonly engine: Pick<StorageEngine, 'name' | 'durable'>;
  readonly warnings: readonly StorageWarning[];
  readonly breaker: CircuitBreaker;
  readonly runner: Pick<JobRunner, 'workOff' | 'wake'>;
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

/** The logouts that wait, for operators. Injectable. */
export class DebateSpaceOutbox {
  readonly #parts: OutboxParts;
  #unreadableSince: number | undefined;
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
    const { engine, queues, watch, breaker } = this.#parts;
    const { name, durable } = engine;
    const known = { engine: name, durable, degraded: watch.isDegraded, serviceDown: breaker.isOpen };
    try {
      const counts = await queues.counts();
      this.#unreadableSince = undefined;
      return { ...known, ...counts };
    } catch {
      this.#unreadableSince ??= performance.now();
      const unreadableMs = performance.now() - this.#unreadableSince;
      return { ...known, ...(await queues.memoryCounts()), unreadableMs };
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
    return this.#parts.queues.stored.parked(limit, skip);
  }

  /**
   * What happened to this user's logouts: those that wait, and those that are finished for as long as `logout.historyRetentionMs`.
   * The earliest end first. They are found by the keys in `storageKey`: those that came under another one are not.
   * @throws {InvalidUidError}
   */
  async history(uid: string): Promise<readonly LogoutHistoryEntry[]> {
    const user = acceptedUid(namedUid(uid), 'history');
    return this.#parts.queues.history(user);
  }

  /** Sends a parked logout again, as if it had never been tried. @returns whether there was one of this id */
  async retry(id: string): Promise<boolean> {
    const isRetried = await this.#parts.queues.stored.storage.retryLogout(id);
    if (isRetried) this.#parts.runner.wake('logout');
    return isRetried;
  }

  /**
   * Delivers what is due in the storage, although `worker` is `false`: logouts first, then erasures within the rate limit. For
   * serverless functions and cron (docs/deploying.md). Requests that are under way when the time is over may still arrive; they
   * are due again 30 s after their lease began. The shutdown of the app ends it, too: what is sent by then gets its answer.
   * @returns when nothing is due any more, or when the time is over
   * @throws {InvalidArgumentError} for a `timeoutMs` out of range, and with `memoryStorage()`, which other processes cannot fill
   */
  async drain({ timeoutMs = 10_000, signal }: DrainOptions = {}): Promise<DrainedStats> {
    const { engine, runner } = this.#parts;
    if (!engine.durable)
      throw invalidArgument(
        'drain',
        'a durable storage is required: sqliteStorage, postgresStorage or mysqlStorage',
      );
    if (!Number.isInteger(timeoutMs) || timeoutMs < 1 || timeoutMs > MAX_TIMER_MS)
      throw invalidArgument('drain', `timeoutMs must be a whole number from 1 to ${MAX_TIMER_MS}`);
    this.#draining ??= runner.workOff(timeoutMs, signal).finally(() => {
      this.#draining = undefined;
    });
    const isDone = await this.#draining;
    const stats = await this.stats();
    return { ...stats, drained: isDone && stats.unreadableMs === undefined };
  }

  /** Gives up a parked logout. @returns whether there was one of this id */
  async discard(id: string): Promise<boolean> {
    return this.#parts.queues.stored.storage.discardLogout(id);
  }
}
