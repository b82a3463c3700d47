import { isPromise } from '../async/promises.js';
import type { PassOn } from './patch-store.js';

/** How a call of the store ended; `silent`: the store neither called back nor returned a promise. */
export type StoreOutcome = 'done' | 'failed' | 'silent';

/** A call of the store that may end a session. */
export class ObservedCall {
  outcome: StoreOutcome | undefined;
  #resolve: (() => void) | undefined;
  #over: Promise<void> | undefined;

  /** The first outcome stands. */
  end(outcome: StoreOutcome): void {
    this.outcome ??= outcome;
    this.#resolve?.();
  }

  /** Resolves when there is an outcome. */
  over(): Promise<void> {
    return (this.#over ??= new Promise((resolve) => {
      this.#resolve = resolve;
      if (this.outcome !== undefined) resolve();
    }));
  }
}

/** Makes a call exactly as the caller would, and reports its outcome. @param ended must not throw */
export function observeCall(
  next: PassOn,
  self: unknown,
  args: ArrayLike<unknown>,
  ended: (outcome: StoreOutcome) => void,
): unknown {
  const callback = args[args.length - 1];
  let failure: unknown;
  const observer =
    typeof callback === 'function' &&
    function (this: unknown, ...results: unknown[]): unknown {
      [failure] = results;
      ended(failure ? 'failed' : 'done');
      return Reflect.apply(callback, this, results) as unknown;
    };
  let returned: unknown;
  try {
    const passed = Array.from(args);
    if (observer) passed[passed.length - 1] = observer;
    returned = next(self, passed);
  } catch (error) {
    ended('failed');
    throw error;
  }
  if (!isPromise(returned)) {
    if (!observer) ended('silent');
    return returned;
  }
  const observed = returned.then(
    (result) => {
      if (!observer) ended('done'); // with a callback, the promise may resolve long before the callback is called
      return result;
    },
    (error: unknown) => {
      ended('failed');
      // The store has passed the error to the callback, as `asCallback` of Bluebird and Knex does: it is handled.
      if (failure !== undefined && error === failure) observed.then(undefined, () => undefined);
      throw error;
    },
  );
  return observed;
}
