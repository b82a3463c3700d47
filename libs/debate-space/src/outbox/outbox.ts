import type { EndReason } from '../debate-space-event.js';

/** The intent to log a user out: never a token (they live two minutes), never a session id. */
export interface OutboxEntry {
  readonly id: string;
  readonly uid: string;
  readonly reason: EndReason;
  /** Milliseconds since 1970. */
  readonly endedAt: number;
  /** Keyed hash of the session id. */
  readonly sessionHash?: string;
}

/** How far delivery has come. */
export interface DeliveryProgress {
  readonly attempts: number;
  /** How many of them the service answered with 400. */
  readonly rejections: number;
}

export interface OutboxJob extends DeliveryProgress {
  readonly entry: OutboxEntry;
}

export interface OutboxCounts {
  /** Ends that are not proven yet. */
  readonly held: number;
  readonly pending: number;
  readonly parked: number;
}

type MaybePromise<T> = T | Promise<T>;

/**
 * Where logouts wait for delivery. Engines answer synchronously where they can, so that the host's own call need not
 * become asynchronous; a promise is settled when the change is as durable as the engine makes it.
 *
 * An entry is `held` before a session ends, then `released` when the end is proven or `cancelled` when it was none. A
 * hold whose lease runs out – its process died – becomes due by itself. All calls are idempotent; what does not fit the
 * entry's state – an unknown id, the cancellation of what was released, the repetition of what was parked – is ignored.
 */
export interface Outbox {
  readonly engine: string;
  /** What it promises, in plain words, for the boot log. */
  readonly promise: string;
  /** Whether entries outlive the process. */
  readonly durable: boolean;

  hold(entry: OutboxEntry, leaseMs: number): MaybePromise<void>;
  release(id: string): MaybePromise<void>;
  cancel(id: string): MaybePromise<void>;

  /** Takes at most `limit` due entries, the earliest first. They are due again when the lease has run out. */
  claim(limit: number, leaseMs: number): MaybePromise<readonly OutboxJob[]>;
  retry(id: string, progress: DeliveryProgress, delayMs: number): MaybePromise<void>;
  finish(id: string): MaybePromise<void>;
  /** Keeps the entry, and delivers it no more. */
  park(id: string, progress: DeliveryProgress): MaybePromise<void>;

  counts(): MaybePromise<OutboxCounts>;
  /** Milliseconds until the next entry is due; `undefined` when none is waiting. */
  nextDueMs(): MaybePromise<number | undefined>;
  /** Called whenever an entry may have become due earlier than `nextDueMs` said. */
  onChange(listener: () => void): void;
  close(): MaybePromise<void>;
}

/** What the option `outbox` takes: makes one outbox for one application. */
export interface OutboxFactory {
  open(): MaybePromise<Outbox>;
}
