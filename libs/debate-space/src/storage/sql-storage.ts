import type { Database } from './database.js';
import type { HostTransaction } from './storage.js';

export interface SqlStorageOptions {
  /** Of the names of the tables: a schema with a dot, or the beginning of each name. */
  readonly prefix?: string;
  /** The database in a transaction of the host's; absent where there is none. */
  readonly within?: (transaction: HostTransaction) => Database;
}

/** The operations in SQL, for every engine that has it. */
export class SqlStorage {
  readonly #database: Database;

  constructor(
    database: Database,
    readonly application: string,
    readonly options: SqlStorageOptions = {},
  ) {
    this.#database = database;
  }

  /** @throws {@link StorageError} when the tables are those of a newer version */
  open(): Promise<void> {
    return Promise.resolve();
  }

  close(): Promise<void> {
    return this.#database.close();
  }
}
