import { isPromise } from './is-promise.js';

export type MaybePromise<T> = T | Promise<T>;

/**
 * `Promise.then` that stays synchronous when `call` is: on a storage in memory a logout is stored before the host's own
 * call returns.
 * @param failed handles what `call` throws or rejects with; without it the error is that of the result
 */
export function chain<T, R>(
  call: () => MaybePromise<T>,
  next: (value: T) => MaybePromise<R>,
  failed?: (error: unknown) => MaybePromise<R>,
): MaybePromise<R> {
  let value: MaybePromise<T>;
  try {
    value = call();
  } catch (error) {
    if (!failed) throw error;
    return failed(error);
  }
  return isPromise(value) ? value.then(next, failed) : next(value);
}
