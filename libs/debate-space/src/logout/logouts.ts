import { withTimeout } from '../async/with-timeout.js';
import type {
  LogoutCounts,
  LogoutHistoryEntry,
  LogoutRepository,
  ParkedLogout,
} from './logout-repository.js';

/** The logouts of an application: in its storage, and in memory while the storage does not take them. */
export class Logouts {
  /** @param memory absent when the storage is memory itself */
  constructor(
    readonly stored: LogoutRepository,
    readonly memory: LogoutRepository | undefined,
  ) {}

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

  /** The parked logouts in memory come first, then those in the storage; of each the longest parked. */
  async parked(limit: number, skip: number): Promise<readonly ParkedLogout[]> {
    if (!this.memory) return this.stored.parked(limit, skip);
    const inMemory = await this.memory.parked(limit, skip);
    const left = limit - inMemory.length;
    if (left === 0) return inMemory;
    const { parked } = await this.memory.counts();
    const stored = this.stored.parked(left, Math.max(0, skip - parked));
    return [...inMemory, ...(await this.#unlessKnown(stored, inMemory.length > 0, []))];
  }

  /** The logouts of a user with their states, the earliest end first. */
  async history(uid: string): Promise<readonly LogoutHistoryEntry[]> {
    const inMemory = (await this.memory?.history(uid)) ?? [];
    const stored = await this.#unlessKnown(this.stored.history(uid), inMemory.length > 0, []);
    return [...stored, ...inMemory].sort((one, other) => one.endedAt.getTime() - other.endedAt.getTime());
  }

  /** Makes a parked logout due now. @returns whether there was one */
  async retry(id: string): Promise<boolean> {
    const inMemory = (await this.memory?.retry(id)) ?? false;
    return (await this.#unlessKnown(this.stored.retry(id), inMemory, false)) || inMemory;
  }

  /** Ends a parked logout. @returns whether there was one */
  async discard(id: string): Promise<boolean> {
    const inMemory = (await this.memory?.discard(id)) ?? false;
    return (await this.#unlessKnown(this.stored.discard(id), inMemory, false)) || inMemory;
  }

  /** Ends all logouts of a user who is erased. Rejects when the storage is away. */
  async forget(uid: string): Promise<void> {
    await this.memory?.forget(uid);
    await this.stored.forget(uid);
  }

  /**
   * Moves what waits in memory to the storage. Call it when nothing delivers from memory any more. Never rejects.
   * @returns how many logouts the storage has not confirmed within `ms`: they are lost with this process
   */
  async moveToStorage(ms: number): Promise<number> {
    const entries = (await this.memory?.open()) ?? [];
    const late = new AbortController();
    let moved = 0;
    const moving = entries.map(async (entry) => {
      await this.stored.add(entry, late.signal);
      moved += 1;
    });
    await withTimeout(Promise.allSettled(moving), ms, undefined);
    late.abort();
    return entries.length - moved;
  }

  /** @returns the answer of the storage; `otherwise` when the storage is away and memory has answered */
  #unlessKnown<T>(answer: Promise<T>, isKnown: boolean, otherwise: T): Promise<T> {
    return isKnown ? answer.catch(() => otherwise) : answer;
  }
}
