import { chain, isPromise, type MaybePromise } from '../../async/maybe-promise.js';
import { Containment } from '../../async/containment.js';
import { StorageError } from '../../errors.js';
import type { Emit } from '../../events.js';
import { LEASE_MS, type ChangeListener, type JobQueue } from '../../jobs/job-queue.js';
import { withTimeout } from '../../async/with-timeout.js';
import type { LogoutQueue } from './logout-queue.js';
import type { DeliveryProgress, LogoutEntry, LogoutJob, WaitingJob } from '../logout.js';
import { CALL_TIMEOUT_MS, inTime, PendingWrites } from './pending-writes.js';

const LATE = 'it did not answer in time';

/**
 * The queue, and a second one in memory while the storage does not take a hold, a release or a cancel: users must always
 * be able to log out. What is in memory is delivered from there, and written to the storage as soon as it answers again.
 * The event `storage-degraded` says that a crash meanwhile loses it.
 */
export class FallbackQueue implements JobQueue<LogoutJob> {
  /** What the storage did not take. It answers always. */
  readonly memory: LogoutQueue;
  /** Cancellations and deliveries that the storage has missed. */
  readonly #ends: PendingWrites;
  /** Move what is in memory to the storage. */
  readonly #moves: PendingWrites;
  /** What this process has held and neither released nor canceled. */
  readonly #held = new Map<string, LogoutEntry>();
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

  hold(entry: LogoutEntry, leaseMs = LEASE_MS): MaybePromise<void> {
    this.#held.set(entry.id, entry);
    const holdInMemory = (): MaybePromise<void> => this.#holdInMemory(entry, leaseMs);
    return this.#orMemory(() => this.queue.hold(entry, leaseMs), holdInMemory, this.storageTimeoutMs);
  }

  extend(id: string, leaseMs = LEASE_MS): MaybePromise<void> {
    return inTime(this.#queueOf(id).extend(id, leaseMs));
  }

  release(id: string): MaybePromise<void> {
    const entry = this.#held.get(id);
    this.#held.delete(id);
    if (!entry || this.#inMemory.has(id)) return this.memory.release(id);
    const releaseInMemory = (): MaybePromise<void> => {
      void this.#holdInMemory(entry, 0);
      return this.memory.release(id);
    };
    return this.#orMemory(() => this.queue.release(id), releaseInMemory, CALL_TIMEOUT_MS);
  }

  cancel(id: string): MaybePromise<void> {
    this.#held.delete(id);
    return this.#end(id, () => this.queue.cancel(id));
  }

  /**
   * What is in memory waits for no storage. Pending ends come first: or the storage would give out what was canceled or
   * delivered meanwhile.
   */
  async claim(limit: number): Promise<readonly LogoutJob[]> {
    let jobs = this.#inMemory.size > 0 ? await this.memory.claim(limit) : [];
    if (jobs.length === 0) {
      await this.#ends.flush();
      jobs = await inTime(this.queue.claim(limit));
    }
    for (const { entry } of jobs) this.#held.delete(entry.id);
    return jobs;
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
    const entry = this.#inMemory.get(id);
    return this.#end(id, async () => {
      if (entry) await this.queue.hold(entry); // for the history
      await this.queue.finish(id, attempts);
    });
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
    const count = await this.#cancelInMemory(uid, isMeant);
    return count + (await inTime(this.queue.supersede(uid, endedUntil)));
  }

  /** Removes what waits for a user who is erased: the service could only refuse it, and the uid would stay. */
  async forget(uid: string): Promise<void> {
    await this.#cancelInMemory(uid, ({ state }) => state === 'parked');
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

  /** Makes a call to the storage; when it fails or takes longer, memory stands in. */
  #orMemory(
    call: () => MaybePromise<void>,
    standIn: () => MaybePromise<void>,
    ms: number,
  ): MaybePromise<void> {
    const failure = chain(call, () => undefined, causeOf);
    return chain(
      () => (isPromise(failure) ? withTimeout(failure, ms, LATE) : failure),
      (cause) => {
        if (cause === undefined) return undefined;
        if (!this.#isDegraded) this.emit({ type: 'storage-degraded', cause });
        this.#isDegraded = true;
        return standIn();
      },
    );
  }

  #holdInMemory(entry: LogoutEntry, leaseMs: number): MaybePromise<void> {
    this.#inMemory.set(entry.id, entry);
    this.#moves.add(entry.id, () => this.#move(entry));
    return this.memory.hold(entry, leaseMs);
  }

  /**
   * Moves a logout from memory to the storage; only here it is in both places for a moment. What is canceled or claimed
   * meanwhile stays: a write of its end follows.
   * @returns whether it has left memory
   */
  async #move(entry: LogoutEntry): Promise<boolean> {
    const { id, uid } = entry;
    const isIdle = (): boolean => this.#inMemory.has(id) && !this.memory.isClaimed(id);
    const job = (await this.memory.ofUser(uid)).waiting.find((waiting) => waiting.entry.id === id);
    if (!job || !isIdle()) return !this.#inMemory.has(id);
    const isHeld = this.#held.has(id);
    await (isHeld ? this.queue.hold(entry) : this.queue.takeOver(job));
    if (isIdle()) {
      this.#inMemory.delete(id);
      await this.memory.finish(id, 0);
      const isReleased = isHeld && !this.#held.has(id); // meanwhile
      if (isReleased) this.#held.set(id, entry);
      if (isReleased) await this.release(id);
    }
    return !this.#inMemory.has(id);
  }

  /** @returns how many were canceled */
  async #cancelInMemory(uid: string, isMeant: (job: WaitingJob) => boolean): Promise<number> {
    const jobs = (await this.memory.ofUser(uid)).waiting.filter(isMeant);
    for (const { entry } of jobs) await this.cancel(entry.id);
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

/** Of a storage's error what the storage said; of any other the name only. */
const causeOf = (error: unknown): string =>
  error instanceof StorageError ? error.problem : error instanceof Error ? error.name : typeof error;
