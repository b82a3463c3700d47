import { isPromise } from '../../async/maybe-promise.js';
import type { StoreOutcome } from '../verdict/decide-end.js';
import type { PassOn } from './patch-store.js';

/**
 * Calls a store's own method as the caller would have, and reports how the call ended. The caller's callback is called
 * as often, with the same `this` and arguments; what the method returns or throws is the caller's.
 * @param self the `this` of the caller
 * @param ended never throws
 * @param late the caller's promise when the call had to wait, so that its caller is gone: what the store throws goes to the
 * callback, if there is one that has not been called
 */
export function observeCall(
  next: PassOn,
  self: unknown,
  args: readonly unknown[],
  ended: (outcome: StoreOutcome) => void,
  late?: Promise<unknown>,
): unknown {
  const callback = args.at(-1);
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
    returned = next(self, heard ? [...args.slice(0, -1), heard] : args);
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
