import { inTime } from '../in-time.js';
import { isPromise } from '../is-promise.js';
import { lateCall, observedCall, type StoreMethod, type StoreOutcome } from './store-call.js';

type MaybePromise<T> = T | PromiseLike<T>;

/**
 * Calls a store's own methods: in the same tick, unless something has to be done before – such as noting durably that a
 * session ends. Calls on the same session that come meanwhile wait with it, so that the store sees the host's order.
 */
export class StoreCalls {
  readonly #waitMs: number;
  readonly #store: object;
  readonly #fault: (where: string, error: unknown) => void;
  /** By session id: the last call that has not started. `undefined` stands for all sessions. */
  readonly #waiting = new Map<string | undefined, Promise<unknown>>();

  /** @param waitMs how long a call may be kept waiting */
  constructor(store: object, fault: (where: string, error: unknown) => void, waitMs: number) {
    this.#waitMs = waitMs;
    this.#store = store;
    this.#fault = fault;
  }

  /**
   * @param sid the session that the call is about; `undefined`: all of them
   * @param before what has to be done first; a promise only when it needs one. The call is made even if it fails
   * @param ended told how the call ended
   * @returns what the store's method returns; a promise of it when the call has to wait
   */
  call(
    method: StoreMethod,
    args: readonly unknown[],
    sid: string | undefined,
    before: () => MaybePromise<unknown>,
    ended: (outcome: StoreOutcome) => void = nothing,
  ): unknown {
    const ahead = this.#ahead(sid);
    const ready = ahead.length > 0 ? Promise.all(ahead).then(before) : this.#prepared(before);
    if (!isPromise(ready)) return observedCall(method, this.#store, args, ended);
    const started = this.#started(ready).then(() => {
      if (this.#waiting.get(sid) === started) this.#waiting.delete(sid);
    });
    this.#waiting.set(sid, started);
    const returned = started.then(() => lateCall(method, this.#store, args, ended));
    // Whoever ignores what a store returns does not expect a rejection there.
    returned.catch((error: unknown) => {
      this.#fault('session store', error);
    });
    return returned;
  }

  /** A call with nothing to do before, and nobody to tell how it ended: it keeps its place in the order, no more. */
  pass(method: StoreMethod, args: readonly unknown[], sid: string | undefined): unknown {
    if (this.#waiting.size === 0) return Reflect.apply(method, this.#store, args);
    return this.call(method, args, sid, nothing);
  }

  #ahead(sid: string | undefined): readonly Promise<unknown>[] {
    if (this.#waiting.size === 0) return [];
    if (sid === undefined) return [...this.#waiting.values()];
    return [this.#waiting.get(sid), this.#waiting.get(undefined)].filter((call) => call !== undefined);
  }

  #prepared(before: () => MaybePromise<unknown>): MaybePromise<unknown> {
    try {
      return before();
    } catch (error) {
      this.#fault('session store', error);
      return undefined;
    }
  }

  async #started(ready: PromiseLike<unknown>): Promise<void> {
    try {
      await inTime(ready, this.#waitMs, undefined);
    } catch (error) {
      this.#fault('session store', error);
    }
  }
}

function nothing(): void {
  // nothing
}
