import { isPromise } from '../is-promise.js';

type MaybePromise<T> = T | Promise<T>;

/** Work in steps: a generator that yields the promises it has to wait for. */
export type Steps<T> = Generator<unknown, T, unknown>;

/** Inside {@link run}, what `await` is in an async function; a value that is no promise is returned without a pause. */
export function* wait<T>(value: MaybePromise<T>): Steps<T> {
  return isPromise(value) ? ((yield value) as T) : value;
}

/**
 * Like an async function, but synchronous while nothing that it waits for is a promise. In memory a logout is therefore
 * stored before the host's own call returns.
 */
export function run<T>(steps: Steps<T>): MaybePromise<T> {
  const first = steps.next();
  return first.done ? first.value : resume(steps, first);
}

async function resume<T>(steps: Steps<T>, first: IteratorResult<unknown, T>): Promise<T> {
  let step = first;
  while (!step.done) {
    step = await Promise.resolve(step.value).then(
      (value) => steps.next(value),
      (error: unknown) => steps.throw(error),
    );
  }
  return step.value;
}

/** `Promise.all`, synchronous when no value is a promise. */
export function all<T>(values: readonly MaybePromise<T>[]): MaybePromise<readonly T[]> {
  return values.some(isPromise) ? Promise.all(values) : (values as readonly T[]);
}
