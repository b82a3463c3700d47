import type { DeliveryProgress, LogoutCounts, LogoutEntry, LogoutJob, WaitingJob } from './logout.js';
import { UNTRIED } from './stored-logout.js';

export interface MemoryLogout {
  readonly entry: LogoutEntry;
  readonly state: keyof LogoutCounts;
  readonly progress: DeliveryProgress;
  /** By `performance.now()`: when it may be claimed; of a hold, when its lease ends. */
  readonly dueAt: number;
  /** Whether this process is delivering it. */
  readonly isUnderWay: boolean;
  /** Of a parked one. */
  readonly hint?: string;
}

/** Logouts that the storage did not take, in the order in which they came. */
export class MemoryLogouts {
  readonly #logouts = new Map<string, MemoryLogout>();
  #pausedUntil = 0;

  get size(): number {
    return this.#logouts.size;
  }

  get counts(): LogoutCounts {
    const counts = { held: 0, pending: 0, parked: 0 };
    for (const { state } of this.#logouts.values()) counts[state] += 1;
    return counts;
  }

  /** Those that nobody is delivering. */
  get idle(): readonly MemoryLogout[] {
    return [...this.#logouts.values()].filter(({ isUnderWay }) => !isUnderWay);
  }

  get oldestPending(): number | undefined {
    const moments = [...this.#logouts.values()].flatMap(({ state, entry }) => state === 'pending' ? entry.endedAt : []); // prettier-ignore
    return moments.length === 0 ? undefined : moments.reduce((one, other) => Math.min(one, other));
  }

  get pausedMs(): number {
    return Math.max(0, this.#pausedUntil - performance.now());
  }

  /** Milliseconds until the next one may be claimed; `undefined` when none waits. */
  get nextDueMs(): number | undefined {
    let dueAt = Infinity;
    for (const each of this.idle) if (each.state !== 'parked') dueAt = Math.min(dueAt, each.dueAt);
    return dueAt < Infinity ? Math.max(this.pausedMs, dueAt - performance.now(), 0) : undefined;
  }

  has(id: string): boolean {
    return this.#logouts.has(id);
  }

  get(id: string): MemoryLogout | undefined {
    return this.#logouts.get(id);
  }

  hold(entry: LogoutEntry, leaseMs: number): void {
    this.#set({ entry, state: 'held', progress: UNTRIED, dueAt: performance.now() + leaseMs, isUnderWay: false }); // prettier-ignore
  }

  extend(id: string, leaseMs: number): void {
    this.#change(id, 'held', { dueAt: performance.now() + leaseMs });
  }

  release(id: string): void {
    this.#change(id, 'held', { state: 'pending', dueAt: performance.now() });
  }

  retry(id: string, progress: DeliveryProgress, delayMs: number): void {
    this.#change(id, 'pending', { progress, dueAt: performance.now() + delayMs, isUnderWay: false });
  }

  park(id: string, progress: DeliveryProgress, hint: string): void {
    this.#change(id, 'pending', { progress, hint, state: 'parked', isUnderWay: false });
  }

  delete(id: string): void {
    this.#logouts.delete(id);
  }

  pause(ms: number): void {
    this.#pausedUntil = Math.max(this.#pausedUntil, performance.now() + ms);
  }

  claim(limit: number): readonly LogoutJob[] {
    if (this.pausedMs > 0) return [];
    const now = performance.now();
    const due = this.idle.filter(({ state, dueAt }) => state !== 'parked' && dueAt <= now).slice(0, limit);
    return due.map((logout) => {
      this.#set({ ...logout, state: 'pending', isUnderWay: true });
      return { entry: logout.entry, ...logout.progress };
    });
  }

  ofUser(uid: string): readonly WaitingJob[] {
    const skew = Date.now() - performance.now();
    return [...this.#logouts.values()].flatMap(
      ({ entry, progress, state, dueAt, hint }): readonly WaitingJob[] =>
      entry.uid === uid ? [{ entry, ...progress, state, ...(hint === undefined ? { dueAt: dueAt + skew } : { hint }) }] : [], // prettier-ignore
    );
  }

  #set(logout: MemoryLogout): void {
    this.#logouts.set(logout.entry.id, logout);
  }

  #change(id: string, state: keyof LogoutCounts, change: Partial<MemoryLogout>): void {
    const logout = this.#logouts.get(id);
    if (logout?.state === state) this.#set({ ...logout, ...change });
  }
}
