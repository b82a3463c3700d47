export type MaybePromise<T> = T | Promise<T>;

/** Also for promises of another realm, such as those that Node's own modules make for a host's tests under jest. */
export function isPromise<T>(value: T | PromiseLike<T>): value is PromiseLike<T> {
  return typeof (value as { then?: unknown } | null | undefined)?.then === 'function';
}

/**
 * `Promise.then` that stays synchronous when `call` is.
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

/** Loads with the first call and returns the same from then on; loads again after a failure. */
export function lazy<T>(load: () => Promise<T>): () => Promise<T> {
  let loaded: Promise<T> | undefined;
  return () =>
    (loaded ??= load().catch((error: unknown) => {
      loaded = undefined;
      throw error;
    }));
}
