import { Containment } from '../containment.js';
import type { Emit } from '../debate-space-event.js';
import { answered, inTime } from '../in-time.js';
import { isPromise } from '../is-promise.js';
import type { MemoryOutbox } from './memory-outbox.js';
import type {
  DeliveryProgress,
  Outbox,
  OutboxCounts,
  OutboxEntry,
  OutboxJob,
  ParkedJob,
  UserHistory,
} from './outbox.js';
import { OwedChanges } from './owed-changes.js';

type MaybePromise<T> = T | Promise<T>;

interface Failure {
  readonly cause: string;
}

const TRY_AGAIN_MS = 2_000;
const LEASE_MS = 30_000;
const ANSWER_WITHIN_MS = 5_000;
const LATE: Failure = { cause: 'it did not answer in time' };

/**
 * An engine, and memory for the times when it does not take an end: users must always be able to log out. What memory
 * has is delivered from there, and handed over as soon as the engine answers again. `storage-degraded` says that a crash
 * meanwhile would lose it.
 */
export class OutboxWithSpare implements Outbox {
  readonly engine: string;
  readonly promise: string;
  readonly durable: boolean;
  readonly warnings: readonly string[];
  readonly #engine: Outbox;
  readonly #spare: MemoryOutbox;
  readonly #waitMs: number;
  readonly #emit: Emit;
  readonly #containment: Containment;
  readonly #owed: OwedChanges;
  /** Those that the engine may still come to hold, from before the host stopped waiting. */
  readonly #late = new Set<string>();
  #closed = false;
  #degraded = false;
  #handingOver: Promise<void> | undefined;
  #timer: NodeJS.Timeout | undefined;

  /** @param waitMs how long the host may wait for the engine */
  constructor(engine: Outbox, spare: MemoryOutbox, waitMs: number, emit: Emit) {
    this.engine = engine.engine;
    this.promise = engine.promise;
    this.durable = engine.durable;
    this.warnings = engine.warnings ?? [];
    this.#engine = engine;
    this.#spare = spare;
    this.#waitMs = waitMs;
    this.#emit = emit;
    this.#containment = new Containment(emit);
    this.#owed = new OwedChanges(() => {
      this.#tryAgainLater();
    });
  }

  /** Of the engine alone: who asks for an erasure can wait, and must know that it is durable. */
  /** Whether some of the ends are in memory only. */
  get degraded(): boolean {
    return this.#degraded;
  }

  hold(entry: OutboxEntry, leaseMs: number): MaybePromise<void> {
    let stored: MaybePromise<void>;
    try {
      stored = this.#engine.hold(entry, leaseMs);
    } catch (error) {
      this.#keep(entry, leaseMs, failureOf(error));
      return undefined;
    }
    return isPromise(stored) ? this.#orKeep(entry, leaseMs, stored) : undefined;
  }

  extend(id: string, leaseMs: number): MaybePromise<void> {
    return spoken(this.#having(id).extend(id, leaseMs));
  }

  release(id: string): MaybePromise<void> {
    return spoken(this.#having(id).release(id));
  }

  cancel(id: string): MaybePromise<void> {
    if (!this.#spare.has(id)) return this.#owed.now(id, () => this.#engine.cancel(id));
    this.#spare.cancel(id);
    void this.#endInEngine(id);
  }

  /**
   * What memory has waits for no engine. What is owed comes first: or the engine would give out what was cancelled or
   * delivered meanwhile.
   */
  async claim(limit: number, leaseMs: number): Promise<readonly OutboxJob[]> {
    const kept = this.#spare.claim(limit, leaseMs);
    if (kept.length > 0 || this.#spare.pausedMs > 0) return kept;
    if (this.#owed.size > 0) await this.#owed.settle();
    return spoken(this.#engine.claim(limit, leaseMs));
  }

  retry(id: string, progress: DeliveryProgress, delayMs: number): MaybePromise<void> {
    return spoken(this.#having(id).retry(id, progress, delayMs));
  }

  finish(id: string, attempts: number): MaybePromise<void> {
    if (!this.#spare.has(id)) return this.#owed.now(id, () => this.#engine.finish(id, attempts));
    this.#spare.finish(id, attempts);
    void this.#endInEngine(id);
  }

  park(id: string, progress: DeliveryProgress, hint: string): MaybePromise<void> {
    return spoken(this.#having(id).park(id, progress, hint));
  }

  async pause(ms: number): Promise<void> {
    this.#spare.pause(ms); // holds here for the engine's as well, should it not hear of it
    await spoken(this.#engine.pause(ms));
  }

  /** What can be said of memory alone, when the engine cannot be asked. */
  get kept(): OutboxCounts & { readonly oldestPending: number | undefined } {
    return { ...this.#spare.counts(), oldestPending: this.#spare.oldestPending() };
  }

  async counts(): Promise<OutboxCounts> {
    const [one, other] = [await spoken(this.#engine.counts()), this.#spare.counts()];
    const { held, pending, parked } = one;
    return { held: held + other.held, pending: pending + other.pending, parked: parked + other.parked };
  }

  async oldestPending(): Promise<number | undefined> {
    return earliest(await spoken(this.#engine.oldestPending()), this.#spare.oldestPending());
  }

  async nextDueMs(): Promise<number | undefined> {
    return earliest(await spoken(this.#engine.nextDueMs()), this.#spare.nextDueMs());
  }

  onChange(listener: () => void): void {
    this.#engine.onChange(listener);
    this.#spare.onChange(listener);
  }

  async parked(limit: number, skip = 0): Promise<readonly ParkedJob[]> {
    const ofEngine = await spoken(this.#engine.parked(limit, skip));
    const { parked } = await spoken(this.#engine.counts());
    const left = limit - ofEngine.length;
    return left > 0 ? [...ofEngine, ...this.#spare.parked(left, Math.max(0, skip - parked))] : ofEngine;
  }

  retryParked(id: string): MaybePromise<boolean> {
    return spoken(this.#having(id).retryParked(id));
  }

  discard(id: string): MaybePromise<boolean> {
    return spoken(this.#having(id).discard(id));
  }

  async ofUser(uid: string): Promise<UserHistory> {
    const [one, other] = [await spoken(this.#engine.ofUser(uid)), this.#spare.ofUser(uid)];
    // Memory knows of it, too, when the engine heard of its end later.
    const more = other.finished.filter(({ id }) => !one.finished.some((known) => known.id === id));
    const finished = [...one.finished, ...more];
    return {
      waiting: [...one.waiting, ...other.waiting],
      finished: finished.sort((a, b) => a.finishedAt - b.finishedAt),
    };
  }

  async supersede(uid: string, endedUntil: number): Promise<number> {
    return this.#spare.supersede(uid, endedUntil) + (await spoken(this.#engine.supersede(uid, endedUntil)));
  }

  async close(): Promise<void> {
    this.#closed = true;
    clearTimeout(this.#timer);
    await this.#engine.close();
  }

  /** How many of those that wait would not outlive the process. */
  get forgettable(): number {
    const { held, pending, parked } = this.#spare.counts();
    return held + pending + parked;
  }

  async #orKeep(entry: OutboxEntry, leaseMs: number, stored: Promise<void>): Promise<void> {
    const settled = stored.then(() => undefined, failureOf);
    const failure = await inTime(settled, this.#waitMs, LATE);
    if (!failure) return;
    this.#keep(entry, leaseMs, failure);
    if (failure !== LATE) return;
    this.#late.add(entry.id);
    void settled.then(() => {
      this.#late.delete(entry.id);
      // Ended in memory before the engine had it; what memory still has is handed over in time.
      if (!this.#spare.has(entry.id)) void this.#endInEngine(entry.id);
    });
  }

  #keep(entry: OutboxEntry, leaseMs: number, { cause }: Failure): void {
    this.#spare.hold(entry, leaseMs);
    if (!this.#degraded) this.#emit({ type: 'storage-degraded', cause });
    this.#degraded = true;
    this.#tryAgainLater();
  }

  #having(id: string): Outbox {
    return this.#spare.has(id) ? this.#spare : this.#engine;
  }

  /** It is over. The engine may hold it none the less: that its answer did not come says nothing of what it did. */
  async #endInEngine(id: string): Promise<void> {
    try {
      await this.#owed.now(id, () => this.#engine.cancel(id));
    } catch {
      // Owed now. Nobody waits for it: a rejection would be the host's to handle.
    }
  }

  #tryAgainLater(): void {
    if (this.#closed) return;
    this.#timer ??= setTimeout(() => {
      this.#timer = undefined;
      void this.#containment.run('outbox', () => this.handOver(), undefined);
    }, TRY_AGAIN_MS).unref();
  }

  /** Gives the engine what it has missed, as far as it answers. Never rejects. */
  handOver(): Promise<void> {
    this.#handingOver ??= this.#handOverAll().finally(() => {
      this.#handingOver = undefined;
    });
    return this.#handingOver;
  }

  async #handOverAll(): Promise<void> {
    try {
      await this.#owed.settle();
      for (const entry of this.#spare.idle()) if (!this.#late.has(entry.id)) await this.#move(entry);
    } catch {
      // Told of already, as storage-degraded.
    }
    if (this.forgettable > 0 || this.#owed.size > 0) this.#tryAgainLater();
    else if (this.#degraded) {
      this.#degraded = false;
      this.#emit({ type: 'storage-recovered' });
    }
  }

  /** Only here an entry goes from memory to the engine: whoever finds it in neither place knows that it is over. */
  async #move(entry: OutboxEntry): Promise<void> {
    const { id } = entry;
    try {
      await answered(this.#engine.hold(entry, LEASE_MS), ANSWER_WITHIN_MS);
    } catch (error) {
      if (!this.#spare.has(id)) void this.#endInEngine(id);
      throw error;
    }
    const state = this.#spare.take(id);
    if (state === 'pending') await this.#owed.now(id, () => this.#engine.release(id));
    else if (state === undefined && !this.#spare.has(id)) void this.#endInEngine(id);
  }
}

/** An engine that keeps silent must not stop delivery for good: what it gives out too late is due again in time. */
function spoken<T>(answer: MaybePromise<T>): MaybePromise<T> {
  return isPromise(answer) ? answered(answer, ANSWER_WITHIN_MS) : answer;
}

function failureOf(error: unknown): Failure {
  return { cause: error instanceof Error ? error.name : typeof error };
}

function earliest(one: number | undefined, other: number | undefined): number | undefined {
  return one === undefined || other === undefined ? (one ?? other) : Math.min(one, other);
}
