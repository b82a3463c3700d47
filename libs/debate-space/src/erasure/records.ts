type MaybePromise<T> = T | Promise<T>;

/** By key; `undefined`: there is no such record. */
export type RecordValues = ReadonlyMap<string, string | undefined>;

/**
 * Where an outbox engine keeps the erasures: texts by key, in the order of the keys, which are ASCII and at most 1,500
 * characters long. Several processes may have the same records open. A promise rejects with an `StorageError` when the
 * engine cannot be reached; a change may have been made none the less.
 */
export interface Records {
  /** In the order of the keys asked for. */
  get(keys: readonly string[]): MaybePromise<readonly (string | undefined)[]>;
  /** At most `limit` records, from one key to – and without – the other. */
  range(from: string, to: string, limit: number): MaybePromise<readonly (readonly [string, string])[]>;
  /**
   * Makes all changes or none: they are made if every expected record is still as expected.
   * @returns whether they were made, when they are as durable as the engine makes them
   */
  change(expected: RecordValues, changes: RecordValues): MaybePromise<boolean>;
}
