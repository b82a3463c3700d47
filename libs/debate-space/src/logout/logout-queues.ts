import type { LogoutCounts, LogoutHistoryEntry, LogoutRepository } from './logout-repository.js';

/** Where the logouts of an application wait: in its storage, and in memory while the storage does not take them. */
export class LogoutQueues {
  readonly stored: LogoutRepository;
  /** Absent when the storage is memory itself. */
  readonly memory: LogoutRepository | undefined;

  constructor(stored: LogoutRepository, memory: LogoutRepository | undefined) {
    this.stored = stored;
    this.memory = memory;
  }

  async counts(): Promise<LogoutCounts> {
    const [stored, memory] = await Promise.all([this.stored.counts(), this.memoryCounts()]);
    const ages = [stored.oldestPendingMs, memory.oldestPendingMs].filter((age) => age !== undefined);
    return {
      pending: stored.pending + memory.pending,
      parked: stored.parked + memory.parked,
      ...(ages.length > 0 && { oldestPendingMs: Math.max(...ages) }),
    };
  }

  async memoryCounts(): Promise<LogoutCounts> {
    return (await this.memory?.counts()) ?? { pending: 0, parked: 0 };
  }

  /** What happened to a user's logouts, the earliest end first. */
  async history(uid: string): Promise<readonly LogoutHistoryEntry[]> {
    const entries = await Promise.all([this.stored.history(uid), this.memory?.history(uid)]);
    return entries
      .flatMap((some = []) => some)
      .sort((one, other) => one.endedAt.getTime() - other.endedAt.getTime());
  }

  /** Ends all logouts of a user who is erased. Rejects when the storage is away. */
  async forget(uid: string): Promise<void> {
    await this.memory?.forget(uid);
    await this.stored.forget(uid);
  }
}
