import type { StorageEngine } from 'durable-jobs';
import {
  postgresMigration as migration,
  postgresStorage as storageInPostgres,
  type PostgresQuery,
} from 'durable-jobs/postgres';
import { ownError } from './errors.js';

export type { PostgresQuery } from 'durable-jobs/postgres';

/** How the storage reaches Postgres, and in which table it keeps its rows. */
export interface PostgresStorageOptions {
  /** The host's own connection or pool, which stays the host's: the storage does not close it. */
  readonly query: PostgresQuery;
  /** As in SQL, such as `app.debate_space`. Applications may share one. @defaultValue `public.debate_space` */
  readonly table?: string;
  /** How long one call may take before it is given up with an unknown outcome, in ms. @defaultValue 5000 */
  readonly timeoutMs?: number;
}

const TABLE = 'debate_space';

/**
 * Keeps everything in one table of Postgres 12 or later, through the host's own connection. When the table is missing,
 * opening creates it; a role that may not needs {@link postgresMigration} to have run.
 *
 * @example
 * storage: postgresStorage({ query: (text, values) => pool.query(text, values), table: 'app.debate_space' })
 */
export function postgresStorage({ table = TABLE, ...options }: PostgresStorageOptions): StorageEngine {
  return storageInPostgres({ table, ...options });
}

/**
 * The SQL that sets up the storage: one table and one function. It is one statement, may run any number of times and
 * in several processes at a time, and changes nothing that is there already. The schema must exist.
 *
 * The storage runs it when the table is missing. Where the role of the app may not create tables, run it as a
 * migration, and grant the role of the app `USAGE` on the schema and `SELECT, INSERT, UPDATE, DELETE` on the table.
 *
 * @param options.table as given to `postgresStorage`
 * @throws `StorageError` when the name is not usable
 *
 * @example
 * await queryRunner.query(postgresMigration({ table: 'app.debate_space' }));
 */
export function postgresMigration(options: { readonly table?: string } = {}): string {
  const { table = TABLE } = options;
  try {
    return migration({ table });
  } catch (error) {
    throw ownError(error);
  }
}
