/**
 * Whether Postgres has undone the transaction and it may be made again: a serialization failure or a deadlock. The code
 * is looked for wherever a driver or an ORM keeps it.
 */
export function isRepeatable(error: unknown, depth = 4): boolean {
  const { meta, cause, driverAdapterError, originalCode, code } = Object(error) as Record<string, unknown>;
  if ([originalCode, code].some((state) => state === '40001' || state === '40P01')) return true;
  return depth > 0 && [meta, cause, driverAdapterError].some((inner) => isRepeatable(inner, depth - 1));
}
