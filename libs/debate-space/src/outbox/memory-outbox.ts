import TinyQueue from 'tinyqueue';
import type {
  DeliveryProgress,
  Outbox,
  OutboxCounts,
  OutboxEntry,
  OutboxFactory,
  OutboxJob,
} from './outbox.js';

interface Stored {
  readonly entry: OutboxEntry;
  progress: DeliveryProgress;
  state: keyof OutboxCounts;
  /** Changes with each new due time; an older place in the queue is void. */
  turn: number;
}

interface Due {
  readonly at: number;
  readonly turn: number;
  readonly id: string;
}

/** Keeps logouts in this process's memory: nothing to install, and a crash loses what is pending. */
export function memoryOutbox(): OutboxFactory {
  return { open: () => new MemoryOutbox() };
}

class MemoryOutbox implements Outbox {
  readonly engine = 'memory';
  readonly promise = 'a crash or a kill loses the logouts that are not delivered yet';
  readonly durable = false;
  readonly #stored = new Map<string, Stored>();
  readonly #queue = new TinyQueue<Due>([], (one, other) => one.at - other.at || one.turn - other.turn);
  #turns = 0;
  #changed: () => void = () => undefined;

  hold(entry: OutboxEntry, leaseMs: number): void {
    if (this.#stored.has(entry.id)) return;
    const stored: Stored = { entry, progress: { attempts: 0, rejections: 0 }, state: 'held', turn: 0 };
    this.#stored.set(entry.id, stored);
    this.#schedule(stored, leaseMs);
  }

  release(id: string): void {
    const stored = this.#stored.get(id);
    if (stored?.state !== 'held') return;
    stored.state = 'pending';
    this.#schedule(stored, 0);
  }

  cancel(id: string): void {
    if (this.#stored.get(id)?.state === 'held') this.#stored.delete(id);
  }

  claim(limit: number, leaseMs: number): readonly OutboxJob[] {
    const jobs: OutboxJob[] = [];
    for (
      let due = this.#next();
      due && jobs.length < limit && due.at <= performance.now();
      due = this.#next()
    ) {
      const stored = this.#stored.get(due.id);
      if (!stored) continue;
      stored.state = 'pending';
      this.#schedule(stored, leaseMs);
      jobs.push({ entry: stored.entry, ...stored.progress });
    }
    return jobs;
  }

  retry(id: string, progress: DeliveryProgress, delayMs: number): void {
    const stored = this.#stored.get(id);
    if (stored?.state !== 'pending') return;
    stored.progress = progress;
    this.#schedule(stored, delayMs);
  }

  finish(id: string): void {
    this.#stored.delete(id);
  }

  park(id: string, progress: DeliveryProgress): void {
    const stored = this.#stored.get(id);
    if (stored?.state !== 'pending') return;
    stored.progress = progress;
    stored.state = 'parked';
    stored.turn = -1;
  }

  counts(): OutboxCounts {
    const counts = { held: 0, pending: 0, parked: 0 };
    for (const { state } of this.#stored.values()) counts[state] += 1;
    return counts;
  }

  nextDueMs(): number | undefined {
    const due = this.#next();
    return due && Math.max(0, due.at - performance.now());
  }

  onChange(listener: () => void): void {
    this.#changed = listener;
  }

  close(): void {
    this.#changed = () => undefined;
  }

  #schedule(stored: Stored, delayMs: number): void {
    stored.turn = this.#turns += 1;
    this.#queue.push({ at: performance.now() + delayMs, turn: stored.turn, id: stored.entry.id });
    this.#changed();
  }

  /** The earliest place that is not void. */
  #next(): Due | undefined {
    for (let due = this.#queue.peek(); due; due = this.#queue.peek()) {
      if (this.#stored.get(due.id)?.turn === due.turn) return due;
      this.#queue.pop();
    }
    return undefined;
  }
}
