import { chain, isPromise, type MaybePromise } from '../../async/maybe-promise.js';
import { Containment } from '../../async/containment.js';
import type { Emit } from '../../events.js';
import type { ChangeListener, JobQueue } from '../../jobs/job-queue.js';
import { withTimeout } from '../../async/with-timeout.js';
import type { LogoutQueue } from './logout-queue.js';
import type { DeliveryProgress, LogoutEntry, LogoutJob, WaitingJob } from '../logout.js';
import { inTime, PendingWrites } from './pending-writes.js';

const LATE = 'it did not answer in time';

/**
 * The queue, and a second one in memory for what the storage does not take in time: users must always be able to log
 * out. A logout in memory is delivered from there, and moves to the storage as soon as the storage answers again. The
 * event `storage-degraded` says that a crash loses what is in memory.
 */
export class FallbackQueue implements JobQueue<LogoutJob> {
  /** What the storage did not take. It answers always. */
  readonly memory: LogoutQueue;
  /** Deliveries and removals that the storage has missed. */
  readonly #ends: PendingWrites;
  /** Move what is in memory to the storage. */
  readonly #moves: PendingWrites;
  /** What memory stands in for. */
  readonly #inMemory = new Map<string, LogoutEntry>();
  #isDegraded = false;

  /** @param storageTimeoutMs how long the host may wait for the storage */
  constructor(
    private readonly queue: LogoutQueue,
    private readonly storageTimeoutMs: number,
    private readonly emit: Emit,
  ) {
    this.memory = queue.inMemory();
    const containment = new Containment(emit);
    const onFlushed = (): void => {
      if (!this.#isDegraded || this.#ends.size + this.#moves.size > 0) return;
      this.#isDegraded = false;
      emit({ type: 'storage-recovered' });
    };
    this.#ends = new PendingWrites(containment, onFlushed);
    this.#moves = new PendingWrites(containment, onFlushed);
  }

  /** Whether the storage has missed something. */
  get isDegraded(): boolean {
    return this.#isDegraded;
  }

  /** How many logouts a crash would lose now. */
  get unpersistedCount(): number {
    return this.#inMemory.size;
  }

  /** Stores logouts that are due now. Never rejects; resolves when the storage has them, or memory does. */
  add(entries: readonly LogoutEntry[]): MaybePromise<void> {
    const failure = chain(
      () => this.queue.add(entries),
      () => undefined,
      nameOf,
    );
    return chain(
      () => (isPromise(failure) ? withTimeout(failure, this.storageTimeoutMs, LATE) : failure),
      (cause) => {
        if (cause === undefined) return undefined;
        if (!this.#isDegraded) this.emit({ type: 'storage-degraded', cause });
        this.#isDegraded = true;
        for (const entry of entries) {
          this.#inMemory.set(entry.id, entry);
          this.#moves.add(entry.id, () => this.#move(entry));
        }
        return this.memory.add(entries);
      },
    );
  }

  /**
   * What is in memory waits for no storage. Pending ends come first: or the storage would give out what was removed or
   * delivered in the meantime.
   */
  async claim(limit: number): Promise<readonly LogoutJob[]> {
    const inMemory = this.#inMemory.size > 0 ? await this.memory.claim(limit) : [];
    if (inMemory.length > 0) return inMemory;
    await this.#ends.flush();
    const jobs = await inTime(this.queue.claim(limit));
    return jobs.filter(({ entry: { id } }) => this.#leaveMemory(id));
  }

  /** Each queue renews what it has given out. */
  async renew(jobs: readonly LogoutJob[]): Promise<void> {
    await this.memory.renew(jobs);
    await inTime(this.queue.renew(jobs));
  }

  async giveBack(jobs: readonly LogoutJob[]): Promise<void> {
    await this.memory.giveBack(jobs);
    await inTime(this.queue.giveBack(jobs));
  }

  retry(id: string, progress: DeliveryProgress, delayMs: number): Promise<void> {
    return inTime(this.#queueOf(id).retry(id, progress, delayMs));
  }

  finish(id: string, attempts: number): MaybePromise<void> {
    const unstored = this.#inMemory.get(id);
    return this.#end(id, () => this.queue.finish(id, attempts, unstored));
  }

  park(id: string, progress: DeliveryProgress, hint: string): Promise<void> {
    return inTime(this.#queueOf(id).park(id, progress, hint));
  }

  async pause(ms: number): Promise<void> {
    await this.memory.pause(ms);
    await inTime(this.queue.pause(ms));
  }

  /** What is in memory is due although the storage cannot be asked. */
  async nextDueMs(): Promise<number | undefined> {
    const inMemoryMs = this.#inMemory.size > 0 ? await this.memory.nextDueMs() : undefined;
    if (inMemoryMs === 0) return 0;
    const storedMs = inTime(this.queue.nextDueMs());
    if (inMemoryMs === undefined) return storedMs;
    return Math.min(inMemoryMs, (await storedMs.catch(() => undefined)) ?? Infinity);
  }

  async maintain(): Promise<void> {
    await inTime(this.queue.maintain());
  }

  onChange(listener: ChangeListener): () => void {
    const stops = [this.memory, this.queue].map((queue) => queue.onChange(listener));
    return () => {
      for (const stop of stops) stop();
    };
  }

  /** Removes what is pending for a user and ended no later than this. @returns how many */
  async supersede(uid: string, endedUntil: number): Promise<number> {
    const isMeant = ({ state, entry }: WaitingJob): boolean =>
      state === 'pending' && entry.endedAt <= endedUntil;
    const count = await this.#dropFromMemory(uid, isMeant);
    return count + (await inTime(this.queue.supersede(uid, endedUntil)));
  }

  /** Removes what waits for a user who is erased: the service could only refuse it, and the uid would stay. */
  async forget(uid: string): Promise<void> {
    await this.#dropFromMemory(uid, ({ state }) => state === 'parked');
    await this.supersede(uid, Date.now());
    const { waiting } = await inTime(this.queue.ofUser(uid));
    for (const { entry, state } of waiting)
      if (state === 'parked') await inTime(this.queue.discard(entry.id));
  }

  async close(): Promise<void> {
    this.#ends.close();
    this.#moves.close();
    await this.queue.close();
  }

  /** Writes to the storage what it has missed, as far as it answers. Never rejects. */
  async flush(): Promise<void> {
    const flushed = this.#ends.flush().then(() => this.#moves.flush());
    await flushed.catch(() => undefined); // the event storage-degraded says so already
  }

  #queueOf(id: string): LogoutQueue {
    return this.#inMemory.has(id) ? this.memory : this.queue;
  }

  /**
   * Moves a logout from memory to the storage; only here it is in both places for a moment. What is removed or claimed in
   * that moment stays in memory: a write of its end follows.
   * @returns whether it has left memory
   */
  async #move({ id, uid }: LogoutEntry): Promise<boolean> {
    const isIdle = (): boolean => this.#inMemory.has(id) && !this.memory.isClaimed(id);
    const job = (await this.memory.ofUser(uid)).waiting.find((waiting) => waiting.entry.id === id);
    if (!job || !isIdle()) return !this.#inMemory.has(id);
    await this.queue.takeOver(job);
    if (isIdle()) {
      this.#inMemory.delete(id);
      await this.memory.finish(id, 0);
    }
    return !this.#inMemory.has(id);
  }

  /** The storage has it after all, with an answer that came late. @returns whether it is not being sent from memory */
  #leaveMemory(id: string): boolean {
    if (!this.#inMemory.has(id)) return true;
    if (this.memory.isClaimed(id)) return false; // its end is written to the storage, too
    this.#inMemory.delete(id);
    this.#moves.delete(id);
    void this.memory.finish(id, 0);
    return true;
  }

  /** @returns how many were removed */
  async #dropFromMemory(uid: string, isMeant: (job: WaitingJob) => boolean): Promise<number> {
    const jobs = (await this.memory.ofUser(uid)).waiting.filter(isMeant);
    for (const { entry } of jobs) await this.#end(entry.id, () => this.queue.drop(entry.id));
    return jobs.length;
  }

  /** Nobody waits for the write of what is in memory: the storage was away a moment ago. */
  #end(id: string, write: () => MaybePromise<void>): MaybePromise<void> {
    if (!this.#inMemory.delete(id)) return this.#ends.make(id, write);
    this.#moves.delete(id);
    this.#ends.add(id, write);
    void this.flush();
    return this.memory.finish(id, 0); // in any state
  }
}

const nameOf = (error: unknown): string => (error instanceof Error ? error.name : typeof error);
