/** Serialization failure and deadlock: Postgres has undone the transaction, and it may be made again. */
const REPEATABLE = ['40001', '40P01'];

export function isRepeatable(error: unknown): boolean {
  return REPEATABLE.includes(sqlStateOf(error) ?? '');
}

/** The five characters of Postgres, wherever a driver or an ORM keeps them. */
export function sqlStateOf(error: unknown, depth = 4): string | undefined {
  if (depth === 0) return undefined;
  const { meta, cause, driverAdapterError, originalCode, code } = Object(error) as Record<string, unknown>;
  for (const inner of [meta, cause, driverAdapterError]) {
    const state = sqlStateOf(inner, depth - 1); // Prisma's own codes look like an SQL state: the innermost counts
    if (state) return state;
  }
  return [originalCode, code].find(
    (state) => typeof state === 'string' && /^[0-9A-Z]{5}$/.test(state),
  ) as string;
}
