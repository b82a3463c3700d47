import { AsyncResource } from 'node:async_hooks';
import type { Containment } from '../containment.js';
import { isPromise } from '../is-promise.js';
import { lateCall, observedCall, type OnOutcome, type StoreMethod } from './store-call.js';

type MaybePromise<T> = T | PromiseLike<T>;

/** A call of a store's method, and what the plugin does around it. */
export interface ObservedCall {
  /** For reports of failures, such as `store.destroy`. */
  readonly where: string;
  /** The session that the call is about; `undefined`: all of them. */
  readonly sid: string | undefined;
  /** A call that never waits, because it changes nothing in the store itself. */
  readonly immediate?: true;
  /** What has to be done first; a promise only when it needs one. The call is made even if this fails. */
  readonly before?: () => MaybePromise<unknown>;
  /** The store's method has returned or thrown; only of a call that did not have to wait. */
  readonly returned?: () => void;
  readonly ended?: OnOutcome;
}

/** A call that has not started. */
interface Waiting {
  readonly sid: string | undefined;
  /** Its place in the host's order. */
  readonly turn: number;
  /** Does what has to be done before. */
  prepare: (() => MaybePromise<unknown>) | undefined;
  isReady: boolean;
  isStarted: boolean;
  readonly start: () => void;
}

/**
 * Calls a store's own methods: in the same tick, unless something has to be done before – such as noting durably that a
 * session ends. Calls on the same session that come meanwhile wait with it and start in the same tick as it, so that the
 * store sees the host's order.
 */
export class CallQueue {
  readonly #waitMs: number;
  readonly #containment: Containment;
  /** By session, those on all sessions under `undefined`; each in the host's order. */
  readonly #waiting = new Map<string | undefined, Waiting[]>();
  #turns = 0;
  /** A call that had to wait and that the store is at right now. Calls that it makes have its place in the order. */
  #starting: Waiting | undefined;

  /** @param waitMs how long a call may be kept waiting */
  constructor(containment: Containment, waitMs: number) {
    this.#waitMs = waitMs;
    this.#containment = containment;
  }

  /** @returns what the store's method returns; a promise of it when the call has to wait */
  call(method: StoreMethod, self: unknown, args: readonly unknown[], call: ObservedCall): unknown {
    const { where, sid, before, returned, immediate } = call;
    const ended = this.#contained(call);
    const isNested = this.#starting !== undefined && [sid, undefined].includes(this.#starting.sid);
    const isFree = immediate === true || isNested || !this.#isBlocked(sid, Infinity);
    const ready = isFree && before ? this.#containment.run<unknown>(where, before, undefined) : undefined;
    if (isNested || (isFree && !isPromise(ready))) {
      try {
        return ended ? observedCall(method, self, args, ended) : Reflect.apply(method, self, args);
      } finally {
        if (returned) this.#containment.run(where, returned);
      }
    }
    const make = (): unknown => lateCall(method, self, args, ended ?? nothing);
    const prepare = isFree ? () => ready : () => before?.();
    return this.#enqueue(call, prepare, make);
  }

  #enqueue(
    { where, sid }: ObservedCall,
    prepare: () => MaybePromise<unknown>,
    make: () => unknown,
  ): Promise<unknown> {
    // Whatever makes the call start, it runs in the context of its caller.
    const context = new AsyncResource('DebateSpaceStoreCall');
    const returned = new Promise<unknown>((resolve, reject) => {
      const waiting: Waiting = {
        sid,
        turn: (this.#turns += 1),
        isReady: false,
        isStarted: false,
        prepare: () =>
          context.runInAsyncScope(() => this.#containment.run<unknown>(where, prepare, undefined)),
        start: () => {
          clearTimeout(timer);
          context.runInAsyncScope(() => {
            const outer = this.#starting;
            this.#starting = waiting;
            try {
              resolve(make());
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
          });
        },
      };
      const timer = setTimeout(() => {
        this.#prepare(waiting);
        this.#setReady(waiting);
      }, this.#waitMs).unref();
      const queue = this.#waiting.get(sid);
      if (queue) queue.push(waiting);
      else this.#waiting.set(sid, [waiting]);
      this.#advance(waiting);
    });
    return returned;
  }

  /** Starts the call if it is ready and nothing is ahead of it, and in the same tick what has waited for it alone. */
  #advance(first: Waiting): void {
    const candidates = [first];
    for (const waiting of candidates) {
      // Several that have started may have led to the same one.
      if (waiting.isStarted || this.#isBlocked(waiting.sid, waiting.turn)) continue;
      this.#prepare(waiting);
      if (!waiting.isReady) continue;
      this.#remove(waiting);
      waiting.isStarted = true;
      waiting.start();
      candidates.push(...this.#behind(waiting));
    }
  }

  /** The next that may start when this one has. */
  #behind({ sid }: Waiting): readonly Waiting[] {
    return this.#firstOn(sid).toSorted((one, other) => one.turn - other.turn);
  }

  #isBlocked(sid: string | undefined, turn: number): boolean {
    return this.#waiting.size > 0 && this.#firstOn(sid).some((first) => first.turn < turn);
  }

  /** The first of each queue that has to do with this session, or with all of them. */
  #firstOn(sid: string | undefined): readonly Waiting[] {
    const queues = sid === undefined ? [...this.#waiting.values()] : [this.#waiting.get(sid), this.#waiting.get(undefined)]; // prettier-ignore
    return queues.flatMap((queue) => queue?.[0] ?? []);
  }

  #remove(waiting: Waiting): void {
    const queue = this.#waiting.get(waiting.sid);
    queue?.shift(); // nothing is ahead of it
    if (queue?.length === 0) this.#waiting.delete(waiting.sid);
  }

  #prepare(waiting: Waiting): void {
    const { prepare } = waiting;
    if (!prepare) return;
    waiting.prepare = undefined;
    const ready = prepare();
    if (!isPromise(ready)) waiting.isReady = true;
    else
      void ready.then(() => {
        this.#setReady(waiting);
      });
  }

  #setReady(waiting: Waiting): void {
    if (waiting.isReady) return;
    waiting.isReady = true;
    this.#advance(waiting);
  }

  #contained({ where, ended }: ObservedCall): OnOutcome | undefined {
    return (
      ended &&
      ((outcome) => {
        this.#containment.run(where, () => {
          ended(outcome);
        });
      })
    );
  }
}

function nothing(): void {
  // nothing
}
