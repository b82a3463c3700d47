/** Also for promises of another realm, such as those that Node's own modules make for a host's tests under jest. */
export function isPromise<T>(value: T | PromiseLike<T>): value is PromiseLike<T> {
  return typeof (value as { then?: unknown } | null | undefined)?.then === 'function';
}
