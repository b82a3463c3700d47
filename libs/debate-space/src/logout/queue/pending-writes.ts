import { chain, isPromise, type MaybePromise } from '../../async/maybe-promise.js';
import type { Containment } from '../../async/containment.js';
import { timeoutOrThrow } from '../../async/with-timeout.js';

/** @returns `false` when it cannot be made yet */
type Write = () => MaybePromise<unknown>;

/** How long one call to the storage may take. */
export const CALL_TIMEOUT_MS = 5_000;
const REPEAT_MS = 2_000;
/** How many are made at a time: many wait after an outage, and a shutdown does not wait long. */
const BATCH = 32;

/**
 * Writes that must not be forgotten, by id of the logout: one that fails or gets no answer is repeated every 2 s. The last
 * one of a logout counts.
 */
export class PendingWrites {
  readonly #writes = new Map<string, Write>();
  /** One at a time: a write that is made again after the one behind it would undo that. */
  #flushing: Promise<void> | undefined;
  #timer: NodeJS.Timeout | undefined;
  #isClosed = false;

  /** @param onFlushed called when the storage has missed nothing any more */
  constructor(
    private readonly containment: Containment,
    private readonly onFlushed: () => void,
  ) {}

  get size(): number {
    return this.#writes.size;
  }

  /** Makes a write. Throws or rejects when it fails. */
  make(id: string, write: Write): MaybePromise<void> {
    return chain(
      () => inTime(write()),
      () => {
        this.#writes.delete(id);
      },
      (error) => {
        this.add(id, write);
        throw error;
      },
    );
  }

  /** Adds a write that is made later. */
  add(id: string, write: Write): void {
    this.#writes.set(id, write);
    this.#repeat();
  }

  delete(id: string): void {
    this.#writes.delete(id);
  }

  /** Makes the writes, several at a time. Rejects when one fails; it stays, with those behind it. */
  flush(): Promise<void> {
    this.#flushing ??= this.#flush().finally(() => {
      this.#flushing = undefined;
      if (this.#writes.size > 0) this.#repeat();
      else this.onFlushed();
    });
    return this.#flushing;
  }

  /** Repeats nothing any more. */
  close(): void {
    this.#isClosed = true;
    clearTimeout(this.#timer);
  }

  async #flush(): Promise<void> {
    const tried = new Set<Write>();
    const isNew = ([, write]: [string, Write]): boolean => !tried.has(write);
    for (let writes = [...this.#writes]; writes.length > 0; writes = [...this.#writes].filter(isNew))
      for (let from = 0; from < writes.length; from += BATCH) {
        const made = writes.slice(from, from + BATCH).map(async ([id, write]) => {
          tried.add(write);
          const isMade = await inTime(write());
          if (isMade !== false && this.#writes.get(id) === write) this.#writes.delete(id);
        });
        for (const result of await Promise.allSettled(made))
          if (result.status === 'rejected') throw result.reason;
      }
  }

  #repeat(): void {
    if (this.#isClosed) return;
    this.#timer ??= setTimeout(() => {
      this.#timer = undefined;
      void this.containment.run('outbox', () => this.flush().catch(() => undefined), undefined);
    }, REPEAT_MS).unref();
  }
}

/** A storage that keeps silent must not stop delivery for good: what it gives out too late is due again in time. */
export function inTime<T>(answer: Promise<T>): Promise<T>;
export function inTime<T>(answer: MaybePromise<T>): MaybePromise<T>;
export function inTime<T>(answer: MaybePromise<T>): MaybePromise<T> {
  return isPromise(answer) ? timeoutOrThrow(answer, CALL_TIMEOUT_MS) : answer;
}
