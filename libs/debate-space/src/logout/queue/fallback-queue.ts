import type { ChangeListener, JobQueue } from 'durable-jobs';
import { chain, isPromise, type MaybePromise } from '../../async/maybe-promise.js';
import { Containment } from '../../async/containment.js';
import { StorageError } from '../../errors.js';
import type { Emit } from '../../events.js';
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
  /** What has come to its end in memory since the last claim began: the storage may give it out all the same. */
  #ended = new Set<string>();
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
      causeOf,
    );
    return chain(
      () => (isPromise(failure) ? withTimeout(failure, this.storageTimeoutMs, LATE) : failure),
      (cause) => {
        if (cause === undefined) return undefined;
        // What the storage has given out to this process it has.
        const missing = entries.filter(({ id }) => !this.queue.isClaimed(id));
        if (missing.length > 0 && !this.#isDegraded) this.emit({ type: 'storage-degraded', cause });
        this.#isDegraded ||= missing.length > 0;
        for (const entry of missing) {
          this.#inMemory.set(entry.id, entry);
          this.#moves.add(entry.id, () => this.#move(entry));
        }
        const late = (failed: string | undefined): void => {
          if (failed === undefined) this.#leaveIfIdle(missing);
        };
        if (isPromise(failure)) void failure.then(late);
        return this.memory.add(missing);
      },
    );
  }

  /**
   * What is in memory waits for no storage. Pending ends come first: or the storage would give out what was removed or
   * delivered in the meantime.
   */
  async claim(limit: number): Promise<readonly LogoutJob[]> {
    const isThere = (id: string): boolean => this.#inMemory.has(id);
    const inMemory = this.#inMemory.size > 0 ? await claimFrom(this.memory, limit, isThere) : [];
    if (inMemory.length > 0) return inMemory;
    const ended = (this.#ended = new Set());
    await this.#ends.flush();
    const jobs = await claimFrom(this.queue, limit, (id) => !ended.has(id));
    return jobs.filter(({ entry: { id } }) => this.#isNew(id));
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

  release(job: LogoutJob): void {
    this.memory.release(job);
    this.queue.release(job);
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
    for (const writes of [this.#ends, this.#moves]) await writes.flush().catch(() => undefined); // storage-degraded says so
  }

  #queueOf(id: string): LogoutQueue {
    return this.#inMemory.has(id) ? this.memory : this.queue;
  }

  /**
   * Moves a logout from memory to the storage. One that is claimed in the meantime stays in memory, too.
   * @returns whether it has left memory
   */
  async #move(entry: LogoutEntry): Promise<boolean> {
    const { id, uid } = entry;
    const job = (await this.memory.ofUser(uid)).waiting.find((waiting) => waiting.entry.id === id);
    if (job && this.#isIdle(id)) {
      await this.queue.takeOver(job);
      this.#leaveIfIdle([entry]);
    }
    return !this.#inMemory.has(id);
  }

  #isIdle(id: string): boolean {
    return this.#inMemory.has(id) && !this.memory.isClaimed(id);
  }

  /** The storage has them. What is being sent from memory stays there, and its end is written to the storage. */
  #leaveIfIdle(entries: readonly LogoutEntry[]): void {
    for (const { id } of entries) if (this.#isIdle(id)) void this.#leave(id);
  }

  /**
   * The storage has given it out; it may have taken it with an answer that came late or was lost.
   * @returns whether it is not being sent from memory: if it is, its result is now for the storage
   */
  #isNew(id: string): boolean {
    const isSent = this.#inMemory.has(id) && this.memory.isClaimed(id);
    if (this.#inMemory.has(id)) void this.#leave(id);
    return !isSent;
  }

  /** Removes it from memory, in any state. */
  #leave(id: string): Promise<void> {
    this.#inMemory.delete(id);
    this.#moves.delete(id);
    return this.memory.finish(id, 0);
  }

  /** @returns how many were removed */
  async #dropFromMemory(uid: string, isMeant: (job: WaitingJob) => boolean): Promise<number> {
    const jobs = (await this.memory.ofUser(uid)).waiting.filter(isMeant);
    for (const { entry } of jobs) await this.#end(entry.id, () => this.queue.drop(entry.id));
    return jobs.length;
  }

  /** Nobody waits for the write of what is in memory: the storage was away a moment ago. */
  #end(id: string, write: () => MaybePromise<void>): MaybePromise<void> {
    if (!this.#inMemory.has(id)) return this.#ends.make(id, write);
    const left = this.#leave(id);
    this.#ended.add(id);
    this.#ends.add(id, write);
    void this.flush();
    return left;
  }
}

/** Claims from a queue, and gives back what is not wanted any more. */
async function claimFrom(
  queue: LogoutQueue,
  limit: number,
  isWanted: (id: string) => boolean,
): Promise<readonly LogoutJob[]> {
  const claiming = queue.claim(limit);
  const giveBack = (jobs: readonly LogoutJob[]): void => {
    void queue.giveBack(jobs).catch(() => undefined); // they are due when their leases end
  };
  const jobs = await inTime(claiming).catch((error: unknown) => {
    void claiming.then(giveBack, () => undefined); // it may answer late
    throw error;
  });
  const isMeant = ({ entry }: LogoutJob): boolean => isWanted(entry.id);
  giveBack(jobs.filter((job) => !isMeant(job)));
  return jobs.filter(isMeant);
}

/** Of a storage's error what the storage said; of any other the name only. */
const causeOf = (error: unknown): string =>
  error instanceof StorageError ? error.problem : error instanceof Error ? error.name : typeof error;
