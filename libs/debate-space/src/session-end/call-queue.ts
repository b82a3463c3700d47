import { AsyncResource } from 'node:async_hooks';
import { isPromise, type Containment, type MaybePromise } from './containment.js';
import type { StoreOutcome } from './decide-end.js';
import type { PassOn } from './patch-store.js';
import { withTimeout } from './waits.js';

/** A call of a store's method, and what is done around it. */
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
  /** Resolves when it starts. */
  readonly started: Promise<unknown>;
}

/** How many calls begin to wait in one turn of the event loop: a job may make thousands. */
const SLICE = 100;

/**
 * Calls a store's own methods: in the same tick, unless something has to be done before, such as reading whose session it
 * is. Calls on the same session that come meanwhile wait as well, so that the store sees the host's order.
 */
export class CallQueue {
  readonly #containment: Containment;
  readonly #maxWaitMs: number;
  readonly #onWaiting: (areSome: boolean) => void;
  /** The call that waits last, of each session; of those on all sessions under `undefined`. */
  readonly #last = new Map<string | undefined, WaitingCall>();
  /** A call that had to wait and that the store is at right now. Calls that it makes have its place in the order. */
  #starting: Pick<WaitingCall, 'sid'> | undefined;

  /** How many calls began to wait in this turn. */
  #begun = 0;
  /** Calls that are to begin in a later turn. */
  readonly #crowd: (() => void)[] = [];

  /**
   * @param maxWaitMs how long a call waits for what has to be done before, once it is its turn
   * @param onWaiting hears when calls begin to wait, and when none waits any more
   */
  constructor(
    containment: Containment,
    maxWaitMs: number,
    onWaiting: (areSome: boolean) => void = () => undefined,
  ) {
    this.#containment = containment;
    this.#maxWaitMs = maxWaitMs;
    this.#onWaiting = onWaiting;
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
  call(where: string, next: PassOn, self: unknown, args: ArrayLike<unknown>, call: StoreCall): unknown {
    const { sid, before, ended } = call;
    const isNested = this.#starting !== undefined && [sid, undefined].includes(this.#starting.sid);
    const turn = isNested ? undefined : this.#turn(sid);
    const prepare = (): unknown => before && this.#containment.run<unknown>(where, before, undefined);
    const ready = turn ? undefined : prepare();
    const heard =
      ended &&
      ((outcome: StoreOutcome) => {
        this.#containment.run(where, () => {
          ended(outcome);
        });
      });
    if (!turn && (isNested || !isPromise(ready)))
      return heard ? observeCall(next, self, args, heard) : next(self, args);
    // Whatever makes the call start, it runs in the context of its caller.
    const context = new AsyncResource('SessionStoreCall');
    const start = (): (() => unknown) => {
      const outer = this.#starting;
      this.#starting = waiting;
      try {
        const returned: unknown = context.runInAsyncScope(() =>
          observeCall(next, self, args, heard ?? (() => undefined), result),
        );
        return () => returned;
      } catch (error) {
        // Without us it is thrown to the caller. Of one that expects no promise it must not end the process.
        result.catch(() => {
          this.#containment.report(where, error);
        });
        return () => {
          throw error;
        };
      } finally {
        this.#starting = outer;
        this.#leave(waiting);
      }
    };
    const inTime = (work: unknown): Promise<unknown> =>
      withTimeout(Promise.resolve(work), this.#maxWaitMs, undefined);
    const isReady = turn ? turn.then(() => inTime(context.runInAsyncScope(prepare))) : inTime(ready);
    const started = isReady.then(start);
    const result: Promise<unknown> = started.then((outcome) => outcome());
    const waiting = { sid, started };
    if (this.#last.size === 0) this.#tell(true);
    if (sid === undefined) this.#last.clear();
    this.#last.set(sid, waiting);
    if (!turn && (this.#begun += 1) === 1 && this.#crowd.length === 0) this.#awaitTurn();
    return result;
  }

  /** Resolves when the calls ahead have started, and it is time for one more; `undefined` when that is now. */
  #turn(sid: string | undefined): Promise<unknown> | undefined {
    if (this.#last.size === 0) return undefined;
    if (sid === undefined) return Promise.all(Array.from(this.#last.values(), ({ started }) => started));
    const last = this.#last.get(sid) ?? this.#last.get(undefined);
    if (last) return last.started;
    if (this.#begun < SLICE) return undefined;
    return new Promise<void>((resolve) => this.#crowd.push(resolve));
  }

  #awaitTurn(): void {
    setImmediate(() => {
      this.#containment.run('session store', () => {
        this.#begun = 0;
        for (const begin of this.#crowd.splice(0, SLICE)) begin();
        if (this.#crowd.length > 0) this.#awaitTurn();
      });
    });
  }

  #leave(waiting: WaitingCall): void {
    if (this.#last.get(waiting.sid) !== waiting) return;
    this.#last.delete(waiting.sid);
    if (this.#last.size === 0) this.#tell(false);
  }

  #tell(areSome: boolean): void {
    this.#containment.run('session store', () => {
      this.#onWaiting(areSome);
    });
  }
}

/**
 * Calls a store's own method as the caller would have, and reports how the call ended. The caller's callback is called
 * as often, with the same `this` and arguments; what the method returns or throws is the caller's.
 * @param self the `this` of the caller
 * @param ended never throws
 * @param late the caller's promise when the call had to wait, so that its caller is gone: what the store throws goes to the
 * callback, if there is one that has not been called
 */
function observeCall(
  next: PassOn,
  self: unknown,
  args: ArrayLike<unknown>,
  ended: (outcome: StoreOutcome) => void,
  late?: Promise<unknown>,
): unknown {
  const callback = args[args.length - 1];
  let calledBack = false as boolean;
  let failure: unknown;
  const heard =
    typeof callback === 'function' &&
    function (this: unknown, ...results: unknown[]): unknown {
      calledBack = true;
      [failure] = results;
      ended(results[0] ? 'failed' : 'done');
      return Reflect.apply(callback, this, results) as unknown;
    };
  let returned: unknown;
  try {
    returned = next(self, heard ? [...Array.from(args).slice(0, -1), heard] : args);
  } catch (error) {
    ended('failed');
    if (!late || typeof callback !== 'function' || calledBack) throw error;
    Reflect.apply(callback, undefined, [error]);
    return undefined;
  }
  if (isPromise(returned)) {
    // Its own promise is not given out: one that somebody listens to never becomes an unhandled rejection of the host.
    const observed = returned.then(
      (result) => {
        if (!heard) ended('done'); // it may resolve long before it calls back
        return result;
      },
      (error: unknown) => {
        ended('failed');
        // The store has handled it by the callback, as `asCallback` of Bluebird and Knex does.
        if (calledBack && error === failure) (late ?? observed).then(undefined, () => undefined);
        throw error;
      },
    );
    return observed;
  }
  if (!heard) ended('silent');
  return returned;
}
