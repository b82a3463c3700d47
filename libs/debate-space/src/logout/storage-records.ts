import type { Records, RecordValues } from '../erasure/records.js';
import { isPromise } from '../is-promise.js';
import type { DebateSpaceStorage, StorageRow } from '../storage/storage.js';

type MaybePromise<T> = T | Promise<T>;

const PREFIX = 'erasure:';
const keyed = (values: RecordValues): RecordValues =>
  new Map([...values].map(([key, value]) => [`${PREFIX}${key}`, value]));
const unkeyed = (rows: readonly StorageRow[]): readonly StorageRow[] =>
  rows.map(([key, value]) => [key.slice(PREFIX.length), value]);

/** The erasures, in a family of the storage. Their longest key, of a reference of 128 characters, has about 1,200. */
export class StorageRecords implements Records {
  readonly #storage: DebateSpaceStorage;

  constructor(storage: DebateSpaceStorage) {
    this.#storage = storage;
  }

  get(keys: readonly string[]): MaybePromise<readonly (string | undefined)[]> {
    return this.#storage.get(keys.map((key) => `${PREFIX}${key}`));
  }

  range(from: string, to: string, limit: number): MaybePromise<readonly StorageRow[]> {
    const rows = this.#storage.range(`${PREFIX}${from}`, `${PREFIX}${to}`, { limit });
    return isPromise(rows) ? rows.then(unkeyed) : unkeyed(rows);
  }

  change(expected: RecordValues, changes: RecordValues): MaybePromise<boolean> {
    return this.#storage.commit(keyed(expected), keyed(changes));
  }
}
