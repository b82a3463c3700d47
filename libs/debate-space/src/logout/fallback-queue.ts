import { Containment } from '../containment.js';
import type { Emit } from '../debate-space-event.js';
import { isPromise } from '../is-promise.js';
import { LEASE_MS, type JobQueue } from '../jobs/job-queue.js';
import { timeoutOrThrow, withTimeout } from '../with-timeout.js';
import type { LogoutQueue } from './logout-queue.js';
import { MemoryLogouts } from './memory-logouts.js';
import { inBatches, PendingWrites, WRITE_TIMEOUT_MS } from './pending-writes.js';
import type { DeliveryProgress, LogoutCounts, LogoutEntry, LogoutJob, UserHistory } from './logout.js';

type MaybePromise<T> = T | Promise<T>;

const FLUSH_MS = 2_000;
const LATE = 'it did not answer in time';

/**
 * The queue, and memory while the storage does not take a hold, a release or a cancel: users must always be able to log
 * out. What is in memory is delivered from there, and written to the storage as soon as it answers again. The event
 * `storage-degraded` says that a crash meanwhile loses it.
 */
export class FallbackQueue implements JobQueue<LogoutJob> {
  readonly #queue: LogoutQueue;
  readonly #storageTimeoutMs: number;
  readonly #emit: Emit;
  readonly #containment: Containment;
  readonly #memory = new MemoryLogouts();
  readonly #writes = new PendingWrites();
  /** What the storage holds for this process: memory takes it over when its release gets no answer. */
  readonly #held = new Map<string, LogoutEntry>();
  /** Logouts of which a call to the storage has not returned yet. */
  readonly #open = new Set<string>();
  readonly #listeners = new Set<() => void>();
  #isClosed = false;
  #isDegraded = false;
  #flushing: Promise<void> | undefined;
  #timer: NodeJS.Timeout | undefined;

  /** @param storageTimeoutMs how long the host may wait for the storage */
  constructor(queue: LogoutQueue, storageTimeoutMs: number, emit: Emit) {
    this.#queue = queue;
    this.#storageTimeoutMs = storageTimeoutMs;
    this.#emit = emit;
    this.#containment = new Containment(emit);
  }

  /** Whether some of the ends are in memory only. */
  get isDegraded(): boolean {
    return this.#isDegraded;
  }

  /** How many logouts a crash would lose now. */
  get unpersistedCount(): number {
    return this.#memory.size;
  }

  /** What can be said without the storage. */
  get memory(): Pick<MemoryLogouts, 'counts' | 'oldestPending'> {
    return this.#memory;
  }

  hold(entry: LogoutEntry, leaseMs = LEASE_MS): MaybePromise<void> {
    const { id } = entry;
    this.#held.set(id, entry);
    const standIn = (): void => { this.#memory.hold(entry, leaseMs); }; // prettier-ignore
    return this.#orMemory(id, () => this.#queue.hold(entry, leaseMs), this.#storageTimeoutMs, standIn);
  }

  extend(id: string, leaseMs = LEASE_MS): MaybePromise<void> {
    if (!this.#memory.has(id)) return inTime(this.#queue.extend(id, leaseMs));
    this.#memory.extend(id, leaseMs);
  }

  release(id: string): MaybePromise<void> {
    const entry = this.#held.get(id);
    this.#held.delete(id);
    const release = (): void => {
      this.#memory.release(id);
      this.#changed();
    };
    if (!entry || this.#memory.has(id)) {
      release();
      return undefined;
    }
    const standIn = (): void => {
      this.#memory.hold(entry, 0);
      release();
    };
    return this.#orMemory(id, () => this.#queue.release(id), WRITE_TIMEOUT_MS, standIn);
  }

  cancel(id: string): MaybePromise<void> {
    this.#held.delete(id);
    const isInMemory = this.#memory.has(id);
    this.#memory.delete(id);
    if (!isInMemory) return this.#write(id, () => this.#queue.cancel(id));
    this.#writeLater(id, () => this.#queue.cancel(id));
  }

  /**
   * What is in memory waits for no storage. Pending writes come first: or the storage would give out what was canceled or
   * delivered meanwhile.
   */
  async claim(limit: number): Promise<readonly LogoutJob[]> {
    const jobs = this.#memory.claim(limit);
    if (jobs.length > 0 || this.#memory.pausedMs > 0) return jobs;
    await this.#writes.flush();
    const claimed = await inTime(this.#queue.claim(limit));
    for (const { entry } of claimed) this.#held.delete(entry.id);
    return claimed;
  }

  async renew(jobs: readonly LogoutJob[]): Promise<void> {
    await inTime(this.#queue.renew(jobs.filter(({ entry }) => !this.#memory.has(entry.id))));
  }

  async giveBack(jobs: readonly LogoutJob[]): Promise<void> {
    for (const job of jobs) this.#memory.retry(job.entry.id, job, 0);
    await inTime(this.#queue.giveBack(jobs.filter(({ entry }) => !this.#memory.has(entry.id))));
  }

  retry(id: string, progress: DeliveryProgress, delayMs: number): MaybePromise<void> {
    if (!this.#memory.has(id)) return inTime(this.#queue.retry(id, progress, delayMs));
    this.#memory.retry(id, progress, delayMs);
    this.#changed();
  }

  finish(id: string, attempts: number): MaybePromise<void> {
    const entry = this.#memory.get(id)?.entry;
    if (!entry) return this.#write(id, () => this.#queue.finish(id, attempts));
    this.#memory.delete(id);
    this.#writeLater(id, async () => {
      await this.#queue.hold(entry); // for the history
      await this.#queue.finish(id, attempts);
    });
  }

  park(id: string, progress: DeliveryProgress, hint: string): MaybePromise<void> {
    if (!this.#memory.has(id)) return inTime(this.#queue.park(id, progress, hint));
    this.#memory.park(id, progress, hint);
  }

  async pause(ms: number): Promise<void> {
    this.#memory.pause(ms); // holds in this process for the storage as well, should its write fail
    await inTime(this.#queue.pause(ms));
  }

  async counts(): Promise<LogoutCounts> {
    const [stored, kept] = [await inTime(this.#queue.counts()), this.#memory.counts];
    return {
      held: stored.held + kept.held,
      pending: stored.pending + kept.pending,
      parked: stored.parked + kept.parked,
    };
  }

  async oldestPending(): Promise<number | undefined> {
    return earliest(await inTime(this.#queue.oldestPending()), this.#memory.oldestPending);
  }

  /** What is in memory is due although the storage cannot be asked. */
  async nextDueMs(): Promise<number | undefined> {
    if (this.#memory.nextDueMs === 0) return 0;
    try {
      return earliest(await inTime(this.#queue.nextDueMs()), this.#memory.nextDueMs);
    } catch (error) {
      if (this.#memory.nextDueMs === undefined) throw error;
      return this.#memory.nextDueMs;
    }
  }

  async maintain(): Promise<void> {
    await inTime(this.#queue.maintain());
  }

  onChange(listener: () => void): () => void {
    this.#listeners.add(listener);
    const stop = this.#queue.onChange(listener);
    return () => {
      this.#listeners.delete(listener);
      stop();
    };
  }

  async ofUser(uid: string): Promise<UserHistory> {
    const { waiting, finished } = await inTime(this.#queue.ofUser(uid));
    return { waiting: [...waiting, ...this.#memory.ofUser(uid)], finished };
  }

  async supersede(uid: string, endedUntil: number): Promise<number> {
    const ended = this.#memory
      .ofUser(uid)
      .filter(({ entry, state }) => state === 'pending' && entry.endedAt <= endedUntil);
    for (const { entry } of ended) void this.cancel(entry.id);
    return ended.length + (await inTime(this.#queue.supersede(uid, endedUntil)));
  }

  /** Removes what waits for a user who is erased: the service could only refuse it, and the uid would stay. */
  async forget(uid: string): Promise<void> {
    for (const { entry, state } of this.#memory.ofUser(uid))
      if (state === 'parked') void this.cancel(entry.id);
    await this.supersede(uid, Date.now());
    const { waiting } = await inTime(this.#queue.ofUser(uid));
    for (const { entry, state } of waiting)
      if (state === 'parked') await inTime(this.#queue.discard(entry.id));
  }

  async close(): Promise<void> {
    this.#isClosed = true;
    clearTimeout(this.#timer);
    await this.#queue.close();
  }

  /** Writes to the storage what it has missed, as far as it answers. Never rejects. */
  flush(): Promise<void> {
    this.#flushing ??= this.#flush().finally(() => {
      this.#flushing = undefined;
    });
    return this.#flushing;
  }

  async #flush(): Promise<void> {
    try {
      await this.#writes.flush();
      const idle = this.#memory.idle.map(({ entry: { id } }) => id).filter((id) => !this.#open.has(id));
      await inBatches(idle, (id) => this.#move(id));
    } catch {
      // The event storage-degraded says so already.
    }
    if (this.#memory.size + this.#writes.size > 0) this.#flushLater();
    else if (this.#isDegraded) {
      this.#isDegraded = false;
      this.#emit({ type: 'storage-recovered' });
    }
  }

  /** Moves a logout from memory to the storage; only here it is in both places for a moment. */
  async #move(id: string): Promise<void> {
    const before = this.#memory.get(id);
    if (!before || before.isUnderWay) return;
    const { entry, state, progress, hint } = before;
    await timeoutOrThrow(state === 'held' ? this.#queue.hold(entry) : this.#queue.takeOver(entry, progress, hint), WRITE_TIMEOUT_MS); // prettier-ignore
    const after = this.#memory.get(id);
    if (!after || after.isUnderWay) return; // canceled or claimed meanwhile: a write follows
    this.#memory.delete(id);
    if (state === 'held') this.#held.set(id, entry);
    if (state === 'held' && after.state === 'pending') await this.release(id);
  }

  /** Makes a call to the storage; when it fails or takes longer, memory stands in. */
  #orMemory(id: string, call: () => MaybePromise<void>, ms: number, standIn: () => void): MaybePromise<void> {
    let result: MaybePromise<void>;
    const fallBack = (cause: string): void => {
      standIn();
      if (!this.#isDegraded) this.#emit({ type: 'storage-degraded', cause });
      this.#isDegraded = true;
      this.#flushLater();
    };
    try {
      result = call();
    } catch (error) {
      fallBack(nameOf(error));
      return undefined;
    }
    if (!isPromise(result)) return undefined;
    this.#open.add(id);
    const failure = result.then(() => undefined, nameOf).finally(() => this.#open.delete(id));
    return withTimeout(failure, ms, LATE).then((cause) => {
      if (cause !== undefined) fallBack(cause);
    });
  }

  /** Makes a write that must not be forgotten: one that fails or gets no answer is repeated. */
  #write(id: string, write: () => MaybePromise<void>): MaybePromise<void> {
    let result: MaybePromise<void>;
    const repeat = (error: unknown): never => {
      this.#writes.add(id, write);
      this.#flushLater();
      throw error;
    };
    try {
      result = write();
    } catch (error) {
      return repeat(error);
    }
    if (isPromise(result)) return timeoutOrThrow(result, WRITE_TIMEOUT_MS).then(() => { this.#writes.delete(id); }, repeat); // prettier-ignore
    this.#writes.delete(id);
  }

  /** A write that nobody waits for: the storage was away a moment ago. */
  #writeLater(id: string, write: () => MaybePromise<void>): void {
    this.#writes.add(id, write);
    void this.#containment.run('outbox', () => this.flush(), undefined);
  }

  #flushLater(): void {
    if (this.#isClosed) return;
    this.#timer ??= setTimeout(() => {
      this.#timer = undefined;
      void this.#containment.run('outbox', () => this.flush(), undefined);
    }, FLUSH_MS).unref();
  }

  #changed(): void {
    for (const listener of this.#listeners) listener();
  }
}

/** A storage that keeps silent must not stop delivery for good: what it gives out too late is due again in time. */
function inTime<T>(answer: MaybePromise<T>): MaybePromise<T> {
  return isPromise(answer) ? timeoutOrThrow(answer, WRITE_TIMEOUT_MS) : answer;
}

const nameOf = (error: unknown): string => (error instanceof Error ? error.name : typeof error);

function earliest(one: number | undefined, other: number | undefined): number | undefined {
  return one === undefined || other === undefined ? (one ?? other) : Math.min(one, other);
}
