import { isPromise } from '../is-promise.js';

/** How a store's operation ended; `silent` when the store said nothing. */
export type StoreOutcome = 'done' | 'failed' | 'silent';

export type StoreMethod = (this: unknown, ...args: unknown[]) => unknown;

/** Learns how a call ended. Never throws. */
export type OnOutcome = (outcome: StoreOutcome) => void;

/**
 * Calls a store's own method as the caller would have, and reports how the call ended. The caller's callback is called
 * as often, with the same `this` and arguments; what the method returns or throws is the caller's.
 * @param self the `this` of the caller
 */
export function observedCall(
  method: StoreMethod,
  self: unknown,
  args: readonly unknown[],
  ended: OnOutcome,
): unknown {
  const callback = args.at(-1);
  const heard =
    typeof callback === 'function' &&
    function (this: unknown, ...results: unknown[]): unknown {
      ended(results[0] ? 'failed' : 'done');
      return Reflect.apply(callback, this, results) as unknown;
    };
  let returned: unknown;
  try {
    returned = Reflect.apply(method, self, heard ? [...args.slice(0, -1), heard] : args);
  } catch (error) {
    ended('failed');
    throw error;
  }
  if (isPromise(returned))
    // Its own promise is not given out: one that somebody listens to never becomes an unhandled rejection of the host.
    return returned.then(
      (result) => {
        if (!heard) ended('done'); // it may resolve long before it calls back
        return result;
      },
      (error: unknown) => {
        ended('failed');
        throw error;
      },
    );
  if (!heard) ended('silent');
  return returned;
}

/**
 * Like {@link observedCall}, for a call that had to wait, so that its caller is gone: what the store throws goes to the
 * callback, if there is one that has not been called.
 * @throws what the callback throws
 */
export function lateCall(
  method: StoreMethod,
  self: unknown,
  args: readonly unknown[],
  ended: OnOutcome,
): unknown {
  const callback = args.at(-1);
  if (typeof callback !== 'function') return observedCall(method, self, args, ended);
  let called = false as boolean;
  const noting = function (this: unknown, ...results: unknown[]): unknown {
    called = true;
    return Reflect.apply(callback, this, results) as unknown;
  };
  try {
    return observedCall(method, self, [...args.slice(0, -1), noting], ended);
  } catch (error) {
    if (called) throw error;
    Reflect.apply(callback, undefined, [error]);
    return undefined;
  }
}

/** What a store answers to a read: by callback, or by promise when it takes no callback. */
export function readStore(method: StoreMethod, store: object, ...args: unknown[]): Promise<unknown> {
  // A method that takes a callback may return a promise that says nothing, long before the callback is called.
  const takesCallback = method.length > args.length;
  return new Promise((resolve, reject) => {
    const callback = (error: unknown, result: unknown): void => {
      if (error) reject(new Error('the store failed to read', { cause: error }));
      else resolve(result);
    };
    const returned = method.apply(store, [...args, callback]);
    if (!isPromise(returned)) return;
    returned.then((result) => {
      if (result !== undefined || !takesCallback) resolve(result);
    }, reject);
  });
}
