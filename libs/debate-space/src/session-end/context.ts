import type { Containment } from '../async/containment.js';
import type { EndReporter } from './end-reporter.js';
import type { ArrivingRequests } from './request-scope.js';
import type { LiveSessions, SessionUid } from './session-end.js';
import type { SetupWarnings } from './setup-warnings.js';

/** Shared by all parts that watch the sessions of one app. */
export interface WatchContext {
  readonly reporter: EndReporter;
  readonly uid: SessionUid;
  /** How long an open response may delay the verdict on an end, in milliseconds. */
  readonly graceMs: number;
  readonly containment: Containment;
  readonly warnings: SetupWarnings;
  /** The ends that are not decided or not reported yet. */
  readonly tasks: PendingTasks;
  readonly liveSessions: LiveSessions | undefined;
  /** Requests of Fastify between two hooks of ours: hooks of the host may end their session before we see it. */
  arriving: ArrivingRequests;
  /** Closed when the app shuts down: from then on nothing waits. */
  readonly waits: OpenWaits;
}

/** Tasks that a shutdown waits for. */
export class PendingTasks {
  readonly #pending = new Set<Promise<unknown>>();

  /** @returns the task */
  track<T>(task: Promise<T>): Promise<T> {
    const settle = (): unknown => this.#pending.delete(task);
    this.#pending.add(task);
    task.then(settle, settle);
    return task;
  }

  /** Resolves when no task is pending. */
  async onIdle(): Promise<void> {
    while (this.#pending.size > 0) await Promise.allSettled(this.#pending);
  }
}

/** The waits of one app, which a shutdown cuts short. Thousands may be open. */
export class OpenWaits {
  readonly #open = new Set<() => void>();
  #isClosed = false;

  get isClosed(): boolean {
    return this.#isClosed;
  }

  /** Calls `listener` when the waits are closed, at once if they are. @returns how to stop */
  onClose(listener: () => void): () => void {
    if (this.#isClosed) listener();
    else this.#open.add(listener);
    return () => void this.#open.delete(listener);
  }

  /**
   * Waits for a promise, for at most `ms` and not beyond the shutdown. The promise itself continues.
   * @returns what the promise resolves to, or `late`
   */
  within<T, L>(promise: PromiseLike<T>, ms: number, late: L): Promise<T | L> {
    if (this.#isClosed) return Promise.resolve(late);
    return new Promise((resolve, reject) => {
      const settled = (): void => {
        clearTimeout(timer);
        stop();
      };
      const giveUp = (): void => {
        settled();
        resolve(late);
      };
      const timer = setTimeout(giveUp, ms).unref();
      const stop = this.onClose(giveUp);
      promise.then(settled, settled);
      promise.then(resolve, reject);
    });
  }

  close(): void {
    this.#isClosed = true;
    for (const listener of [...this.#open]) listener();
    this.#open.clear();
  }
}

/** How many sessions one turn of the event loop looks at: a job may end thousands at once. */
export const SLICE = 100;

/** Admits {@link SLICE} callers per turn of the event loop. */
export class Pace {
  #left = SLICE;
  #isTicking = false;
  readonly #waiting: (() => void)[] = [];
  #first = 0;

  /** @returns `undefined` when the caller may continue at once */
  turn(): Promise<void> | undefined {
    if (!this.#isTicking) setImmediate(this.#tick);
    this.#isTicking = true;
    this.#left -= 1;
    return this.#left >= 0 ? undefined : new Promise((resolve) => this.#waiting.push(resolve));
  }

  readonly #tick = (): void => {
    const last = Math.min(this.#first + SLICE, this.#waiting.length);
    while (this.#first < last) this.#waiting[this.#first++]?.();
    this.#isTicking = this.#first < this.#waiting.length;
    this.#left = this.#isTicking ? 0 : SLICE;
    if (this.#isTicking) setImmediate(this.#tick);
    else this.#waiting.length = this.#first = 0;
  };
}
