import { AsyncResource } from 'node:async_hooks';
import { isPromise, type MaybePromise } from '../../async/maybe-promise.js';
import type { Containment } from '../../async/containment.js';
import type { StoreOutcome } from '../verdict/decide-end.js';
import { observeCall } from './observe-call.js';
import type { PassOn } from './patch-store.js';

/** A call of a store's method, and what the plugin does around it. */
export interface StoreCall {
  /** The session that the call is about; `undefined`: all of them. */
  readonly sid: string | undefined;
  /** What has to be done first; a promise only when it needs one. The call is made even if this fails. */
  readonly before?: () => MaybePromise<unknown>;
  /** The store has said how the call ended. */
  readonly ended?: (outcome: StoreOutcome) => void;
}

/** A call that has not started. */
interface WaitingCall {
  readonly sid: string | undefined;
  /** How many calls have to start before it. */
  ahead: number;
  readonly behind: WaitingCall[];
  isStarted: boolean;
  /** Does what has to be done before. */
  readonly prepare: () => MaybePromise<unknown>;
  readonly start: () => void;
}

const NONE: readonly WaitingCall[] = [];

/**
 * Calls a store's own methods: in the same tick, unless something has to be done before – such as holding an end in the
 * storage. Calls on the same session that come meanwhile wait with it and start in the same tick as it, so that the store
 * sees the host's order.
 */
export class CallQueue {
  readonly #containment: Containment;
  readonly #maxWaitMs: number;
  /** The call that waits last, of each session; of those on all sessions under `undefined`. */
  readonly #last = new Map<string | undefined, WaitingCall>();
  /** A call that had to wait and that the store is at right now. Calls that it makes have its place in the order. */
  #starting: WaitingCall | undefined;

  /** @param maxWaitMs how long a call waits for what has to be done before */
  constructor(containment: Containment, maxWaitMs: number) {
    this.#containment = containment;
    this.#maxWaitMs = maxWaitMs;
  }

  /** Whether no call waits or is being started: then there is no order to keep. */
  get isIdle(): boolean {
    return this.#last.size === 0 && this.#starting === undefined;
  }

  /**
   * @param where for reports of failures, such as `store.destroy`
   * @param self the `this` of the caller
   * @returns what the store's method returns; a promise of it when the call has to wait
   */
  call(
    where: string,
    next: PassOn,
    self: unknown,
    args: readonly unknown[],
    { sid, before, ended }: StoreCall,
  ): unknown {
    const isNested = this.#starting !== undefined && [sid, undefined].includes(this.#starting.sid);
    const ahead = isNested ? NONE : this.#ahead(sid);
    const isFree = ahead.length === 0;
    const ready = isFree && before ? this.#containment.run<unknown>(where, before, undefined) : undefined;
    if (isFree && (isNested || !isPromise(ready))) {
      if (!ended) return next(self, args);
      return observeCall(next, self, args, this.#contained(where, ended));
    }
    const prepare = (): unknown =>
      isFree ? ready : before && this.#containment.run<unknown>(where, before, undefined);
    const make = (late: Promise<unknown>): unknown =>
      observeCall(next, self, args, this.#contained(where, ended), late);
    return this.#enqueue(where, sid, ahead, prepare, make);
  }

  /** The calls that have to start before a new one on this session does. */
  #ahead(sid: string | undefined): readonly WaitingCall[] {
    if (this.#last.size === 0) return NONE;
    if (sid === undefined) return [...this.#last.values()];
    const last = this.#last.get(sid) ?? this.#last.get(undefined);
    return last ? [last] : NONE;
  }

  #enqueue(
    where: string,
    sid: string | undefined,
    ahead: readonly WaitingCall[],
    prepare: () => unknown,
    make: (late: Promise<unknown>) => unknown,
  ): Promise<unknown> {
    const returned = new Promise<unknown>((resolve, reject) => {
      const start = (): void => {
        clearTimeout(timer);
        const outer = this.#starting;
        this.#starting = waiting;
        try {
          resolve(make(returned));
        } catch (error) {
          const thrown = error as Error;
          reject(thrown);
          // Without us it is thrown to the caller. Of one that expects no promise it must not end the process.
          returned.catch(() => {
            this.#containment.report(where, error);
          });
        } finally {
          this.#starting = outer;
        }
      };
      // Whatever makes the call start, it runs in the context of its caller. `AsyncResource.bind` takes 40 µs on Node.js 20.
      const context = new AsyncResource('DebateSpaceStoreCall');
      const bound = {
        prepare: () => context.runInAsyncScope(prepare),
        start: () => {
          context.runInAsyncScope(start);
        },
      };
      const waiting: WaitingCall = { sid, ahead: ahead.length, behind: [], isStarted: false, ...bound };
      const timer = setTimeout(() => {
        this.#start(waiting); // those ahead of it have waited for longer, and have started
      }, this.#maxWaitMs).unref();
      for (const call of ahead) call.behind.push(waiting);
      if (sid === undefined) this.#last.clear();
      this.#last.set(sid, waiting);
      if (ahead.length === 0) this.#prepare(waiting);
    });
    return returned;
  }

  /** @returns whether the call may start now; otherwise it starts when it is prepared */
  #prepare(waiting: WaitingCall): boolean {
    const ready = waiting.prepare();
    if (!isPromise(ready)) return true;
    void ready.then(() => {
      this.#start(waiting);
    });
    return false;
  }

  /** Starts a call, and in the same tick the calls that have waited for it alone. */
  #start(first: WaitingCall): void {
    const starting = [first];
    for (const waiting of starting) {
      if (waiting.isStarted) continue;
      waiting.isStarted = true;
      if (this.#last.get(waiting.sid) === waiting) this.#last.delete(waiting.sid);
      waiting.start();
      for (const next of waiting.behind) {
        next.ahead -= 1;
        if (next.ahead === 0 && this.#prepare(next)) starting.push(next);
      }
    }
  }

  #contained(where: string, ended: StoreCall['ended']): (outcome: StoreOutcome) => void {
    return (outcome) => {
      this.#containment.run(where, () => ended?.(outcome));
    };
  }
}
