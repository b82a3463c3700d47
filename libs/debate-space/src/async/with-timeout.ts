/**
 * Waits for a promise, but no longer than `ms`; the promise itself continues. Keeps neither the process alive nor a timer.
 * @returns what the promise resolves to, or `late`
 */
export function withTimeout<T, L>(promise: PromiseLike<T>, ms: number, late: L): Promise<T | L> {
  return settledWithin(promise, ms, (resolve) => {
    resolve(late);
  });
}

/** Like {@link withTimeout}, but rejects after `ms`. */
export function timeoutOrThrow<T>(answer: T | PromiseLike<T>, ms: number): Promise<T> {
  return settledWithin(Promise.resolve(answer), ms, (_resolve, reject) => {
    reject(new Error('no answer in time'));
  });
}

/** Not with `Promise.race`: every logout waits for several of these. */
function settledWithin<T, L>(
  promise: PromiseLike<T>,
  ms: number,
  isLate: (resolve: (value: L) => void, reject: (error: Error) => void) => void,
): Promise<T | L> {
  return new Promise((resolve, reject) => {
    const timer = setTimeout(isLate, ms, resolve, reject).unref();
    const stop = (): void => {
      clearTimeout(timer);
    };
    promise.then(stop, stop);
    promise.then(resolve, reject);
  });
}
